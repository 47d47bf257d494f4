package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// patience bounds every wait of these tests, on a machine that does much else as well.
const patience = time.Minute

// dialog is a gateway with a realtime upstream, over real sockets.
type dialog struct {
	*gateway

	url    string       // of the gateway's realtime path
	client *http.Client // that reaches it; nil: any does
	// shakes are the handshakes the upstream saw.
	shakes chan *http.Request
}

// dialogOptions change a dialog; nil functions change nothing.
type dialogOptions struct {
	relay relay.Options
	api   func(*api.Options)
	// models of the one channel; nil: gpt-realtime.
	models map[string]string
	// silent makes an upstream that answers no ping.
	silent bool
}

// newDialog starts both servers.
func newDialog(t *testing.T, opts dialogOptions, talk func(ctx context.Context, conn *websocket.Conn)) *dialog {
	t.Helper()
	d := &dialog{shakes: make(chan *http.Request, 100)}
	d.start(t, opts, httptest.NewServer(d.upstream(t, opts, talk)))
	return d
}

// newDialogInABubble is newDialog within a bubble of testing/synctest.
func newDialogInABubble(t *testing.T, opts dialogOptions, talk func(ctx context.Context, conn *websocket.Conn)) *dialog {
	t.Helper()
	d := &dialog{shakes: make(chan *http.Request, 100)}
	upstream := &http.Server{Handler: d.upstream(t, opts, talk), ReadHeaderTimeout: patience}
	d.open(t, opts, newWire(t, upstream), "http://upstream.test")
	d.client = newWire(t, d.HTTPServer("", d.Handler(), nil))
	d.url = "http://gateway.test" + realtimePath
	return d
}

// upstream hands each conversation to talk and closes it afterwards.
func (d *dialog) upstream(t *testing.T, opts dialogOptions, talk func(ctx context.Context, conn *websocket.Conn)) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.shakes <- r
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			OnPingReceived: func(context.Context, []byte) bool { return !opts.silent },
		})
		if err != nil {
			t.Errorf("upstream: %v", err)
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(64 << 20)
		talk(context.WithoutCancel(r.Context()), conn)
	})
}

const realtimePath = "/v1/realtime?model=gpt-realtime"

// start opens a gateway to the upstreams over real sockets.
func (d *dialog) start(t *testing.T, opts dialogOptions, upstreams ...*httptest.Server) {
	t.Helper()
	var urls []string
	for _, upstream := range upstreams {
		t.Cleanup(upstream.Close)
		urls = append(urls, upstream.URL)
	}
	d.open(t, opts, upstream.NewClient(nil), urls...)
	front := httptest.NewServer(d.Handler())
	t.Cleanup(front.Close)
	d.url = front.URL + realtimePath
}

// open makes the gateway, with a channel for each upstream.
func (d *dialog) open(t *testing.T, opts dialogOptions, client *http.Client, upstreams ...string) {
	t.Helper()
	if opts.models == nil {
		opts.models = map[string]string{"gpt-realtime": ""}
	}
	vendors := vendors.New(client)
	var channels []providers.Channel
	for i, upstream := range upstreams {
		channels = append(channels, providers.Channel{
			Name: "up" + string(rune('0'+i)), Vendor: "openai", BaseURL: upstream + "/v1", Keys: []providers.Secret{"up-key"},
			Models: opts.models, Groups: []string{"default"}, Priority: -i,
		})
	}
	router := router.New(vendors, channels, nil)
	d.gateway = newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Router, o.Relay = router, relay.New(router, vendors, &opts.relay)
		if opts.api != nil {
			opts.api(o)
		}
	})
}

// dial opens a conversation with the good key.
func (d *dialog) dial(t *testing.T, headers ...string) *websocket.Conn {
	t.Helper()
	conn, answer, err := d.try(t, d.url, headers...)
	if err != nil {
		t.Fatalf("dial: %v %s", err, answer.body)
	}
	return conn
}

// shake is the gateway's answer to a handshake.
type shake struct {
	status int
	header http.Header
	body   []byte
}

// try opens a conversation or returns how it was refused.
func (d *dialog) try(t *testing.T, url string, headers ...string) (*websocket.Conn, shake, error) {
	t.Helper()
	header := http.Header{"Authorization": {"Bearer " + goodKey}}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Del(headers[i])
		if headers[i+1] != "" {
			header.Set(headers[i], headers[i+1])
		}
	}
	var protocols []string
	if offered := header.Get("Sec-Websocket-Protocol"); offered != "" {
		protocols = strings.Split(offered, ", ")
	}
	header.Del("Sec-Websocket-Protocol")
	conn, resp, err := websocket.Dial(within(t), url,
		&websocket.DialOptions{HTTPClient: d.client, HTTPHeader: header, Subprotocols: protocols})
	if resp == nil {
		t.Fatalf("no answer: %v", err)
	}
	answer := shake{status: resp.StatusCode, header: resp.Header}
	if err != nil {
		answer.body, _ = io.ReadAll(resp.Body)
		return nil, answer, err
	}
	conn.SetReadLimit(64 << 20)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, answer, nil
}

// within is a context that ends with the patience.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// echo sends every message back until the gateway closes.
func echo(ctx context.Context, conn *websocket.Conn) {
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if err := conn.Write(ctx, kind, message); err != nil {
			return
		}
	}
}

// mustEcho sends a message and expects it back.
func mustEcho(t *testing.T, conn *websocket.Conn, kind websocket.MessageType, message []byte) {
	t.Helper()
	ctx := within(t)
	if err := conn.Write(ctx, kind, message); err != nil {
		t.Fatal(err)
	}
	gotKind, got, err := conn.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if gotKind != kind || !bytes.Equal(got, message) {
		t.Errorf("got %v of %d bytes, want %v of %d", gotKind, len(got), kind, len(message))
	}
}

// mustEnd expects the conversation to end with the code and, unless it is "*", the reason.
func mustEnd(t *testing.T, conn *websocket.Conn, code websocket.StatusCode, reason string) {
	t.Helper()
	for {
		_, _, err := conn.Read(within(t))
		if err == nil {
			continue
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != code || reason != "*" && closed.Reason != reason {
			t.Errorf("ended with %v, want %d %q", err, code, reason)
		}
		return
	}
}

func TestRealtimePassesMessages(t *testing.T) {
	t.Parallel()
	d := newDialog(t, dialogOptions{}, echo)
	conn := d.dial(t)
	mustEcho(t, conn, websocket.MessageText, []byte(`{"type":"session.update","x":1.50}`))
	mustEcho(t, conn, websocket.MessageText, nil)
	for _, size := range []int{1, 32<<10 - 1, 32 << 10, 32<<10 + 1, 16 << 20, 32 << 20} {
		message := make([]byte, size)
		_, _ = rand.Read(message)
		mustEcho(t, conn, websocket.MessageBinary, message)
	}
	if err := conn.Ping(conn.CloseRead(within(t))); err != nil {
		t.Errorf("ping: %v", err)
	}
}

func TestRealtimeHandshake(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, query string
		headers     []string
		wantQuery   string
		protocol    string
		beta        string
	}{
		{
			name: "bearer", query: "?model=fast", wantQuery: "model=gpt-realtime-mini",
			headers: []string{"OpenAI-Beta", "realtime=v1", "OpenAI-Organization", "org", "Cookie", "a=b"}, beta: "realtime=v1",
		},
		{
			name: "query", query: "?model=a%2Fb&key=" + goodKey + "&x=y&intent=transcription", headers: []string{"Authorization", ""},
			wantQuery: "intent=transcription&model=a%2Fb&x=y",
		},
		{name: "x-api-key", query: "?model=a/b", headers: []string{"Authorization", "", "X-Api-Key", goodKey}, wantQuery: "model=a%2Fb"},
		{name: "transcription without a model", query: "?intent=transcription&api_token=" + goodKey, wantQuery: "intent=transcription"},
		{name: "default model", query: "", wantQuery: "model=gpt-realtime-mini"},
		{
			name: "browser", query: "?model=a/b", wantQuery: "model=a%2Fb", protocol: "realtime", beta: "realtime=v1",
			headers: []string{
				"Authorization", "", "Origin", "https://elsewhere.example", "Sec-Websocket-Protocol",
				"realtime, openai-insecure-api-key." + goodKey + ", openai-beta.realtime-v1",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDialog(t, dialogOptions{
				models: map[string]string{"fast": "gpt-realtime-mini", "a/b": ""},
				api:    func(o *api.Options) { o.DefaultRealtimeModel = "fast" },
			}, echo)
			base, _, _ := strings.Cut(d.url, "?")
			conn, answer, err := d.try(t, base+tc.query, tc.headers...)
			if err != nil {
				t.Fatal(err)
			}
			if answer.header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
			if got := conn.Subprotocol(); got != tc.protocol {
				t.Errorf("got subprotocol %q, want %q", got, tc.protocol)
			}
			mustEcho(t, conn, websocket.MessageText, []byte("{}"))
			asked := <-d.shakes
			if asked.URL.Path != "/v1/realtime" || asked.URL.RawQuery != tc.wantQuery {
				t.Errorf("upstream was asked for %s, want query %s", asked.URL, tc.wantQuery)
			}
			if got := asked.Header.Get("OpenAI-Beta"); got != tc.beta {
				t.Errorf("got OpenAI-Beta %q, want %q", got, tc.beta)
			}
			if got := asked.Header.Get("Authorization"); got != "Bearer up-key" {
				t.Errorf("got Authorization %q", got)
			}
			var seen bytes.Buffer
			_ = asked.Header.Write(&seen)
			if strings.Contains(seen.String(), goodKey) || strings.Contains(asked.URL.String(), goodKey) {
				t.Errorf("the client's key went upstream:\n%s", &seen)
			}
			for name := range asked.Header {
				if !slices.Contains([]string{
					"Authorization", "Openai-Beta", "User-Agent", "Connection", "Upgrade", "Sec-Websocket-Key",
					"Sec-Websocket-Version",
				}, name) {
					t.Errorf("header %s went upstream", name)
				}
			}
			if log := d.log.String(); strings.Contains(log, goodKey) {
				t.Errorf("the log has the key:\n%s", log)
			}
		})
	}
}

func TestRealtimeRefusesBeforeTheUpgrade(t *testing.T) {
	t.Parallel()
	// The upstream's own refusals: OpenAI's error bodies.
	refuse := func(status int, body string, headers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i+1 < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	const noModel = `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`
	for _, tc := range []struct {
		name     string
		upstream http.HandlerFunc
		query    string
		headers  []string
		status   int
		code     string
		after    string
	}{
		{name: "key refused", upstream: refuse(401, `{"error":{"message":"Incorrect API key up-key"}}`), status: 502, code: "upstream_error"},
		{name: "unknown model there", upstream: refuse(404, noModel), status: 404, code: "model_not_found"},
		{name: "rate", upstream: refuse(429, `{}`, "Retry-After", "7"), status: 429, code: "rate_limit_exceeded", after: "7"},
		{name: "broken", upstream: refuse(500, `oops`), status: 502, code: "upstream_error"},
		{name: "no websocket there", upstream: refuse(200, `{}`), status: 502, code: "upstream_error"},
		{name: "no token", headers: []string{"Authorization", ""}, status: 401, code: "invalid_api_key"},
		{name: "wrong token as subprotocol", headers: []string{
			"Authorization", "", "Sec-Websocket-Protocol",
			"realtime, openai-insecure-api-key.sk-wrong",
		}, status: 401, code: "invalid_api_key"},
		{name: "unknown model", query: "?model=other", status: 404, code: "model_not_found"},
		{
			name: "model the token may not see", headers: []string{"Authorization", "Bearer sk-few"}, query: "?model=x", status: 404,
			code: "model_not_found",
		},
		{name: "no model", query: "?", status: 400, code: "invalid_request"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.upstream == nil {
				tc.upstream = func(http.ResponseWriter, *http.Request) { t.Error("the upstream was called") }
			}
			d := &dialog{}
			d.start(t, dialogOptions{models: map[string]string{"gpt-realtime": "", "x": ""}}, httptest.NewServer(tc.upstream))
			url := d.url
			if tc.query != "" {
				url = strings.TrimSuffix(url, "?model=gpt-realtime") + tc.query
			}
			_, answer, err := d.try(t, url, tc.headers...)
			if err == nil {
				t.Fatal("the conversation was opened")
			}
			var body openAIError
			decode(t, answer.body, &body)
			if answer.status != tc.status || body.Error.Code != tc.code || answer.header.Get("Retry-After") != tc.after {
				t.Errorf("got %d %s after %q, want %d %s after %q", answer.status, answer.body, answer.header.Get("Retry-After"), tc.status, tc.code,
					tc.after)
			}
			if bytes.Contains(answer.body, []byte("up-key")) {
				t.Errorf("the upstream's words on our key reached the client: %s", answer.body)
			}
		})
	}
}

func TestRealtimeFallsOver(t *testing.T) {
	t.Parallel()
	var refused atomic.Int64
	d := &dialog{}
	d.start(t, dialogOptions{}, httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refused.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		echo(context.WithoutCancel(r.Context()), conn)
	})))
	for range health.DefaultCooldownFailures + 2 {
		mustEcho(t, d.dial(t), websocket.MessageText, []byte("hi"))
	}
	if got := refused.Load(); got != health.DefaultCooldownFailures {
		t.Errorf("the failing channel was asked %d times, want %d, then left alone", got, health.DefaultCooldownFailures)
	}
}

func TestRealtimeTakesWebSocketsOnly(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	good := []string{
		"Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key",
		"AAAAAAAAAAAAAAAAAAAAAA==",
	}
	for _, tc := range []struct {
		name    string
		headers []string
	}{
		{"plain", []string{"Upgrade", "", "Connection", ""}},
		{"another upgrade", []string{"Upgrade", "h2c"}},
		{"connection kept", []string{"Connection", "keep-alive"}},
		{"old version", []string{"Sec-Websocket-Version", "8"}},
		{"no key", []string{"Sec-Websocket-Key", ""}},
		{"short key", []string{"Sec-Websocket-Key", "AAAA"}},
		{"no base64", []string{"Sec-Websocket-Key", "????"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rec := g.do(t, request(http.MethodGet, "/v1/realtime?model=gpt-4o", "", append(slices.Clone(good), tc.headers...)...))
			if code, _ := fault(t, rec); rec.Code != 400 || code != "invalid_request" {
				t.Errorf("got %d %s, want 400 invalid_request", rec.Code, code)
			}
		})
	}
}

func TestRealtimeUsage(t *testing.T) {
	t.Parallel()
	d := newDialog(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
		for _, event := range []string{
			`{"type":"response.created","response":{"usage":null}}`,
			`{"type":"response.done","response":{"usage":{"total_tokens":30,"input_tokens":20,"output_tokens":10,"input_token_details":{"cached_tokens":5}}}}`,
			`{"type":"response.done","response":{"usage":{"total_tokens":3,"input_tokens":2,"output_tokens":1}}}`,
		} {
			_ = conn.Write(ctx, websocket.MessageText, []byte(event))
		}
		_ = conn.Write(ctx, websocket.MessageBinary, []byte(`{"response":{"usage":{"input_tokens":1000}}}`))
		_ = conn.Close(websocket.StatusNormalClosure, "done")
	})
	mustEnd(t, d.dial(t), websocket.StatusNormalClosure, "done")
	sum := ledger.Entry{Token: "good", Model: "gpt-realtime", Channel: "up0"}
	testwait.Eventually(t, "one request in the ledger", patience, func() bool {
		d.ledger.mu.Lock()
		defer d.ledger.mu.Unlock()
		sum.Requests, sum.InputTokens, sum.CachedTokens, sum.OutputTokens = 0, 0, 0, 0
		for _, entry := range d.ledger.entries {
			if entry.Token != sum.Token || entry.Model != sum.Model || entry.Channel != sum.Channel || entry.Failed {
				t.Errorf("unexpected entry %+v", entry)
			}
			sum.Requests += entry.Requests
			sum.InputTokens += entry.InputTokens
			sum.CachedTokens += entry.CachedTokens
			sum.OutputTokens += entry.OutputTokens
		}
		return sum.Requests == 1
	})
	if sum.InputTokens != 22 || sum.CachedTokens != 5 || sum.OutputTokens != 11 {
		t.Errorf("got %+v, want 22 input, 5 of them cached, and 11 output tokens", sum)
	}
	// it follows the ledger
	testwait.Eventually(t, "the line of the access log", patience, func() bool { return strings.Contains(d.log.String(), `"msg":"request"`) })
	if log := d.log.String(); !strings.Contains(log, `"status":101`) || !strings.Contains(log, `"input_tokens":22`) {
		t.Errorf("the access log does not say what happened:\n%s", log)
	}
}

// TestRealtimeTokensPerMinute: what a response used counts against its token while the conversation continues.
func TestRealtimeTokensPerMinute(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	d := newDialog(t, dialogOptions{api: func(o *api.Options) { o.Limits = redisLimits(t) }}, func(ctx context.Context, conn *websocket.Conn) {
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"response.done","response":{"usage":{"input_tokens":90,"output_tokens":10}}}`))
		_ = conn.Write(ctx, websocket.MessageText, []byte(`{"type":"session.updated"}`))
		<-over
	})
	defer close(over)
	d.tokens[goodKey] = &tokens.Token{ID: "one", Name: "one", Group: "default", Limits: tokens.Limits{TokensPerMinute: 100}}
	conn := d.dial(t)
	defer conn.CloseNow()
	for range 2 { // an event was counted when the next one comes
		if _, _, err := conn.Read(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	second, refused, err := d.try(t, d.url)
	if err == nil {
		_ = second.CloseNow()
		t.Fatal("a second conversation was opened with all tokens of the minute used")
	}
	if refused.status != http.StatusTooManyRequests || refused.header.Get("X-Ratelimit-Remaining-Tokens") != "0" {
		t.Errorf("got %d %v %s, want 429 and no token left", refused.status, refused.header, refused.body)
	}
}

// TestRealtimeBackPressure: a side that does not read stops the other one, so that the gateway buffers next to nothing.
func TestRealtimeBackPressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, realtimeBackPressure)
}

func realtimeBackPressure(t *testing.T) {
	const piece, total = 1 << 20, 32
	var sent atomic.Int64
	d := newDialogInABubble(t, dialogOptions{}, func(ctx context.Context, conn *websocket.Conn) {
		for range total {
			if err := conn.Write(ctx, websocket.MessageBinary, make([]byte, piece)); err != nil {
				return
			}
			sent.Add(1)
		}
		_ = conn.Close(websocket.StatusNormalClosure, "")
	})
	conn := d.dial(t)
	synctest.Wait() // nothing is read, so the sender waits
	if n := sent.Load(); n > total/4 {
		t.Errorf("%d MiB were sent to a client that reads nothing", n)
	}
	// It pings all the same and reads on only after the five seconds that the library gives an answer to get out, which
	// must not end the conversation.
	var pinging sync.WaitGroup
	pinging.Go(func() { _ = conn.Ping(within(t)) })
	<-time.After(6 * time.Second)
	received := 0
	for {
		_, message, err := conn.Read(within(t))
		if err != nil {
			if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("ended with %v", err)
			}
			break
		}
		received += len(message)
	}
	pinging.Wait()
	if received != total*piece {
		t.Errorf("received %d bytes, want %d", received, total*piece)
	}
}
