package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/realtime"
	"golang.org/x/sync/errgroup"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

const (
	// operators is the page of the manual whose lines for proxies are tested.
	operators = "../../cmd/gateway/docs/operate/proxies.md"
	// clientAddr is where the clients of these tests come from: an address of the loopback that is no proxy's.
	clientAddr = "127.0.0.2"
	// refusedSize is that of an upload that is refused for its key, largestSize what the gateway takes.
	refusedSize, largestSize = 30 << 20, 64 << 20
	// streamClients at once, streamsOfClient each: Caddy without request_body cut about one stream in a thousand.
	streamClients, streamsOfClient = 64, 80
)

// proxy is a server that the operator's document has lines for.
type proxy struct {
	name     string            // of the program
	language string            // of the block in the document
	listen   map[string]string // what of the block stands for its own address, and what the test writes there; {at} is the address
	around   string            // a whole configuration; {block} is the document's
	args     []string          // {config} is the file
}

var inFront = []proxy{
	{
		name: "nginx", language: "nginx", listen: map[string]string{"listen 80;": "listen {at};"},
		// One process, which is ended with the test.
		around: "daemon off;\nmaster_process off;\npid nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\nclient_body_temp_path body;\n" +
			"proxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\nuwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n{block}}\n",
		args: []string{"-p", "{dir}", "-e", "stderr", "-c", "{config}"},
	},
	{
		name: "caddy", language: "caddyfile", listen: map[string]string{"api.example.com {": "http://{at} {"},
		around: "{\n\tadmin off\n\tauto_https off\n}\n{block}",
		args:   []string{"run", "--adapter", "caddyfile", "--config", "{config}"},
	},
	{
		name: "haproxy", language: "haproxy", listen: map[string]string{"bind :80\n": "bind {at}\n"},
		around: "{block}", args: []string{"-db", "-f", "{config}"},
	},
}

// TestBehindProxies drives a gateway through each proxy, set up with the lines of the operator's document. The gate's set has the
// first proxy, without load.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	s := stack.SharedRelay(t)
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.AnyModel(), More: "trusted_proxies: [127.0.0.1]\n", Tokens: nearAndFar(),
	})
	proxies := inFront
	if !stack.IsFull() {
		proxies = proxies[:1]
	}
	for _, p := range proxies {
		t.Run(p.name, func(t *testing.T) { // one after the other: they share the upstream's rules
			front := p.start(t, g)
			t.Run("uploads", front.uploads)
			t.Run("stream", front.stream)
			t.Run("streams", front.streams)
			t.Run("client leaves", front.leaves)
			t.Run("websocket", front.socket)
			t.Run("addresses", front.addresses)
		})
	}
}

// front is a gateway as it is seen through a proxy.
type front struct {
	*stack.Gateway
	model  string // for calls through this proxy alone
	client *http.Client
}

// TestBehindProxyProtocol drives a gateway through a haproxy that passes bytes on and says in the PROXY protocol, version 2, whose
// they are. The proxy has an address of its own, since what comes from a proxy's must begin with a header.
func TestBehindProxyProtocol(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	const proxyAddr = "127.0.0.3"
	s := stack.SharedRelay(t)
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.AnyModel(), More: "proxy_protocol: true\ntrusted_proxies: [" + proxyAddr + "]\n", Tokens: nearAndFar(),
	})
	p := proxy{name: "haproxy", args: []string{"-db", "-f", "{config}"}}
	at := testport.Address(t)
	front := p.run(t, g, at, fmt.Sprintf("defaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n"+
		"listen gateway\n bind %s\n server one %s send-proxy-v2 source %s\n", at, g.Address, proxyAddr))
	t.Run("stream", front.stream)
	t.Run("websocket", front.socket)
	t.Run("addresses", front.addresses)
}

// nearAndFar are tokens for the network of the tests' clients, and for another's.
func nearAndFar() string {
	return fmt.Sprintf("  - {name: near, key: %[1]s-near, models: [\"*\"], networks: [%[2]s]}\n"+
		"  - {name: far, key: %[1]s-far, models: [\"*\"], networks: [203.0.113.0/24]}\n", stack.Token, clientAddr)
}

// start runs the proxy in front of the gateway, with the lines of the operator's document.
func (p proxy) start(t *testing.T, g *stack.Gateway) *front {
	t.Helper()
	at, block := testport.Address(t), documentedBlock(t, p.language)
	replace := func(old, by string) {
		t.Helper()
		if strings.Count(block, old) != 1 {
			t.Fatalf("the lines for %s do not have %q once:\n%s", p.name, old, block)
		}
		block = strings.Replace(block, old, by, 1)
	}
	replace("127.0.0.1:8080", g.Address)
	for old, by := range p.listen {
		replace(old, strings.ReplaceAll(by, "{at}", at))
	}
	return p.run(t, g, at, strings.ReplaceAll(p.around, "{block}", block))
}

// run runs the proxy in front of the gateway, at an address that the text of its configuration has.
func (p proxy) run(t *testing.T, g *stack.Gateway, at, text string) *front {
	t.Helper()
	path, dir := p.installed(t), t.TempDir()
	config := filepath.Join(dir, p.name+".conf")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := make([]string, 0, len(p.args))
	for _, arg := range p.args {
		args = append(args, strings.NewReplacer("{dir}", dir, "{config}", config).Replace(arg))
	}
	running := stack.LaunchBy(t, func(cmd *exec.Cmd) error {
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
		return cmd.Start()
	}, p.name, path, args...)
	testwait.Eventually(t, p.name+" passes on", stack.ReadyTimeout, func() bool {
		select {
		case <-running.Done:
			t.Fatalf("%s ended:\n%s", p.name, running.Out.Tail(stack.ShownLines))
		default:
		}
		resp, err := http.Get("http://" + at + "/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: streamClients,
		DialContext:         (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddr)}}).DialContext,
	}}
	t.Cleanup(client.CloseIdleConnections)
	return &front{Gateway: &stack.Gateway{Stack: g.Stack, Address: at, Process: running}, model: "gpt-4o-" + p.name, client: client}
}

// installed is where the program is, which need not be on the path of those who are not root.
func (p proxy) installed(t *testing.T) string {
	t.Helper()
	for _, name := range []string{p.name, "/usr/sbin/" + p.name} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("install %s", p.name)
	return ""
}

// documentedBlock is the only block of the language in the operator's document.
func documentedBlock(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile(operators)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```\n").FindAllSubmatch(text, -1)
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks of %s, want one", operators, len(found), language)
	}
	return string(found[0][1])
}

// uploads wants the gateway's own answers to large uploads.
func (f *front) uploads(t *testing.T) {
	for _, c := range []struct {
		name, key string
		size      int
		want      int
	}{
		{"an unknown key", "sk-wrong", refusedSize, http.StatusUnauthorized},
		{"too large", stack.Token, largestSize + refusedSize, http.StatusRequestEntityTooLarge},
		{"as large as may be", stack.Token, largestSize - 4<<10, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := chatBody(f.model, c.size)
			if got := postChat(t, f.Gateway, f.client, c.key, strings.NewReader(body)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
			if got := postChat(t, f.Gateway, f.client, c.key, io.MultiReader(strings.NewReader(body))); got != c.want { // of no known length
				t.Errorf("chunked: got %d, want %d", got, c.want)
			}
		})
	}
}

// stream wants the first events while the upstream holds the rest.
func (f *front) stream(t *testing.T) {
	model := f.model + "-10chunks-1ms"
	f.Stack.Control.AddRule(map[string]any{"operation": "chat", "model": model, "action": "stall", "chunks": 4})
	req, err := streamRequest(t.Context(), f.URL(), model)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := newWords(resp.Body)
	for i := range 10 {
		if i == 2 {
			f.Stack.Control.Clear()
		}
		if err := events.next(); err != nil {
			t.Fatal(err)
		}
	}
	if err := events.end(); err != nil {
		t.Error(err)
	}
}

// streams wants every answer whole under load: a proxy of Go may cut one of a client whose request body it still reads.
func (f *front) streams(t *testing.T) {
	stack.Full(t)
	var work errgroup.Group
	for range streamClients {
		work.Go(func() error {
			for range streamsOfClient {
				if err := f.wholeStream(t.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Error(err)
	}
}

// wholeStream reads a short stream to its end.
func (f *front) wholeStream(ctx context.Context) error {
	req, err := streamRequest(ctx, f.URL(), f.model+"-4chunks-1ms")
	if err != nil {
		return err
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events := newWords(resp.Body)
	for range 4 {
		if err := events.next(); err != nil {
			return err
		}
	}
	return events.end()
}

// leaves checks that the upstream learns of a client that leaves before the first byte of its answer.
func (f *front) leaves(t *testing.T) {
	model := f.model + "-left"
	f.Stack.Control.AddRule(map[string]any{"operation": "chat", "model": model, "action": "hang"})
	defer f.Stack.Control.Clear()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := streamRequest(ctx, f.URL(), model)
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if resp, err := f.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	f.Stack.Control.Await("chat", model, "", 1)
	cancel()
	<-left
	f.Stack.Control.Await("chat", model, "canceled", 1)
}

// socket has a conversation.
func (f *front) socket(t *testing.T) {
	sdk := f.SDK(option.WithMaxRetries(0))
	conn, err := sdk.Realtime.Connect(t.Context(), realtime.RealtimeConnectionOptions{}, option.WithQuery("model", f.model))
	if err != nil {
		t.Fatal(err)
	}
	converse(t, conn, f.model)
}

// addresses wants tokens judged by the address that the proxy heard, whatever the client says of itself.
func (f *front) addresses(t *testing.T) {
	for _, c := range []struct {
		key    string
		header map[string]string
		want   int
	}{
		{stack.Token + "-near", nil, http.StatusOK},
		{stack.Token + "-near", map[string]string{"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.7"}, http.StatusOK},
		{stack.Token + "-far", nil, http.StatusForbidden},
		{stack.Token + "-far", map[string]string{"X-Forwarded-For": "203.0.113.7"}, http.StatusForbidden},
		{stack.Token + "-far", map[string]string{"Forwarded": "for=203.0.113.7"}, http.StatusForbidden},
	} {
		if got := f.Call(t, stack.Request{Path: "/v1/models", Token: c.key, Header: c.header, Client: f.client}); got.Status != c.want {
			t.Errorf("%s with %v: got %d, want %d", c.key, c.header, got.Status, c.want)
		}
	}
}

// postChat posts a body to the chat operation and returns the status of its whole answer, which must be JSON.
func postChat(t *testing.T, g *stack.Gateway, client *http.Client, key string, body io.Reader) int {
	t.Helper()
	got := g.Call(t, stack.Request{Method: http.MethodPost, Path: "/v1/chat/completions", Token: key, Body: body, Client: client})
	if kind := got.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Fatalf("got %d with %.200q of %q; want JSON", got.Status, got.Body, kind)
	}
	return got.Status
}
