package stack

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// Command runs the gateway's command line with the configuration.
func (g *Gateway) Command(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, Bin.Gateway, append(args, "--config", g.ConfigFile)...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// Run runs the gateway's command line with the gateway's configuration, which must succeed, and returns what it prints.
func (g *Gateway) Run(args ...string) string {
	g.Stack.T.Helper()
	stdout, stderr, err := g.Command(g.Stack.T.Context(), args...)
	if err != nil {
		g.Stack.T.Fatalf("gateway %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout
}

// Gateway is one gateway process with its own address and configuration.
type Gateway struct {
	Stack      *Stack
	Address    string
	ConfigFile string
	Binary     string // what Launch runs
	args       []string
	*Process
}

// GatewayOptions change a gateway's configuration.
type GatewayOptions struct {
	TemporalAt string   // instead of the stack's
	RedisAt    string   // instead of the stack's
	ArchiveAt  string   // instead of the stack's
	RedisQuery string   // of Redis's URL
	Args       []string // of the command line, "serve" by default
	Video      string   // members of the video section
	Relay      string   // members of the relay section
	Calls      string   // members of the calls section
	Channels   string   // instead of the usual ones, as YAML list items; {self} is the gateway's own address
	Tokens     string   // in addition to the usual ones, as YAML list items
	Webhooks   string   // members of the webhooks section
	AdminKey   string   // opens /admin
	Temporal   string   // members of the temporal section, each with a comma before it
	More       string   // sections in addition to the usual ones
	Binary     string   // of another version
}

// StartGateway writes a configuration, starts a gateway and waits until it is ready.
func (s *Stack) StartGateway(o GatewayOptions) *Gateway {
	s.T.Helper()
	g := s.Configure(o)
	g.Start()
	return g
}

// StartWorker is StartGateway of a worker that takes tasks when StartWorker returns.
func (s *Stack) StartWorker(o GatewayOptions) *Gateway {
	s.T.Helper()
	o.Args = []string{"worker"}
	w := s.StartGateway(o)
	testwait.Eventually(s.T, "the worker starts", ReadyTimeout, func() bool { return strings.Contains(w.Out.Text(), "worker started") })
	return w
}

// Configure is StartGateway of one that is not started yet, for its command line.
func (s *Stack) Configure(o GatewayOptions) *Gateway {
	s.T.Helper()
	if o.TemporalAt == "" {
		o.TemporalAt = s.TemporalAt
	}
	sentinel := ""
	if o.RedisAt == "" {
		o.RedisAt, sentinel = s.RedisAt, s.sentinel()
	}
	if o.ArchiveAt == "" {
		o.ArchiveAt = s.S3At
	}
	if len(o.Args) == 0 {
		o.Args = []string{"serve"}
		if s.relay {
			o.Args = append(o.Args, "--worker=false")
		}
	}
	if o.Video == "" {
		o.Video = "poll_min: 200ms, poll_max: 1s"
	}
	if o.Channels == "" {
		o.Channels = s.Channel("main", "sk-upstream-main", "")
	}
	if o.Binary == "" {
		o.Binary = Bin.Gateway
	}
	g := &Gateway{Stack: s, Address: testport.Address(s.T), Binary: o.Binary, args: o.Args}
	o.Channels = strings.ReplaceAll(o.Channels, "{self}", g.Address)
	g.ConfigFile = filepath.Join(s.dir, strings.ReplaceAll(g.Address, ":", "_")+".yaml")
	text := fmt.Sprintf(`listen: %s
metrics: {listen: 127.0.0.1:0}
admin_key: %q
log: {level: debug, format: text}
redis: {url: "redis://%s/0%s", prefix: "%s"%s}
temporal: {address: "%s", namespace: %s, task_queue: %s%s}
archive: {endpoint: http://%s, bucket: %s, access_key: %s, secret_key: %s}
video: {%s}
relay: {%s}
calls: {%s}
webhooks: {%s}
tokens:
  - {name: demo, key: %s, group: default, models: ["*"]}
  - {name: other, key: %s-other, group: default, models: ["*"]}
%s%schannels:
%s`, g.Address, o.AdminKey, o.RedisAt, o.RedisQuery, s.Prefix, sentinel, o.TemporalAt, s.Namespace, TaskQueue, o.Temporal, o.ArchiveAt, s.Bucket, AccessKey, SecretKey, o.Video, o.Relay, o.Calls, o.Webhooks, Token, Token, o.Tokens, o.More, o.Channels)
	if err := os.WriteFile(g.ConfigFile, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	return g
}

// Start runs the gateway, again after a kill, at the same address.
func (g *Gateway) Start() {
	g.Stack.T.Helper()
	g.Launch()
	if g.args[0] == "serve" {
		g.awaitReady()
	}
}

// Launch runs the gateway without waiting for it.
func (g *Gateway) Launch() {
	g.Stack.T.Helper()
	g.Process = g.Stack.Launch("gateway "+strings.Join(g.args, " "), g.Binary, append(g.args, "--config", g.ConfigFile)...)
}

// URL is the address of its HTTP interface.
func (g *Gateway) URL() string { return "http://" + g.Address }

func (g *Gateway) awaitReady() {
	g.Stack.T.Helper()
	testwait.Eventually(g.Stack.T, "gateway ready", ReadyTimeout, func() bool {
		select {
		case <-g.Done:
			g.Stack.T.Fatalf("gateway ended:\n%s", g.Out.Tail(40))
		default:
		}
		path := "/readyz?for=video"
		if g.Stack.relay {
			path = "/healthz" // it is not ready for tasks
		}
		resp, err := http.Get(g.URL() + path)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// WantNoSecretsLogged looks for credentials, and the words that are given, in the gateway's log.
func (g *Gateway) WantNoSecretsLogged(t *testing.T, words ...string) {
	t.Helper()
	text := g.Out.Text()
	for _, secret := range append(words, secrets()...) {
		if strings.Contains(text, secret) {
			t.Errorf("%q stands in the gateway's log", secret)
		}
	}
}

// secrets are in every credential of a stack.
func secrets() []string { return []string{Token, "sk-upstream", SecretKey} }

// WantNoSecrets looks for credentials in the gateway's log and in every history.
func (g *Gateway) WantNoSecrets(t *testing.T) {
	t.Helper()
	g.WantNoSecretsLogged(t)
	ctx, cancel := context.WithTimeout(t.Context(), ReadyTimeout)
	defer cancel()
	for id, events := range Histories(ctx, t, g.Stack.TemporalClient()) {
		for _, secret := range secrets() {
			if strings.Contains(events.String(), secret) {
				t.Errorf("%q stands in the history of %s", secret, id)
			}
		}
	}
}
