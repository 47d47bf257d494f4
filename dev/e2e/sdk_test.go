package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// anthropicVersion is the version of the vendor's interface that its SDKs name.
const anthropicVersion = "2023-06-01"

// promptWord is in all prompts of these tests.
const promptWord = "lighthouse"

// formats is a gateway with channels of every vendor, as the tests of the formats need it. Its fake upstreams check what
// they get as the vendors do, and tell what it was.
type formats struct {
	*stack.Gateway
	wire *wire
	http *http.Client // sends through wire
}

// spoiledModels are the models with a channel of their own, because after a failure a channel cools down, and what becomes of their
// calls. The vendor's name stands before them.
func spoiledModels() map[string]map[string]any {
	return map[string]map[string]any{
		"-says-400":  {"action": "status", "status": http.StatusBadRequest, "message": "That was refused."},
		"-says-401":  {"action": "status", "status": http.StatusUnauthorized},
		"-says-429":  {"action": "status", "status": http.StatusTooManyRequests},
		"-says-500":  {"action": "status", "status": http.StatusInternalServerError},
		"-says-503":  {"action": "status", "status": http.StatusServiceUnavailable},
		"-says-html": {"action": "garbage", "body": "<html>", "headers": map[string]string{"Content-Type": "text/html"}},
		"-cut":       {"action": "cut", "chunks": 2},
		"-breaks":    {"action": "cut", "chunks": 2},
		"-is-full":   {"action": "status", "status": http.StatusTooManyRequests},
		"-limits":    {"action": "status", "status": http.StatusTooManyRequests},
		"-fails":     {"action": "status", "status": http.StatusInternalServerError},
	}
}

// newFormats starts a stack and a gateway before its upstreams of all vendors.
func newFormats(t *testing.T, sections ...string) *stack.Gateway {
	t.Helper()
	s := stack.Shared(t)
	models := map[string]string{
		"openai": "gpt-4o: , gpt-4o-2s: , mapped: gpt-4o-mini, \"org/llama:70b\": , text-embedding-3-small: , gpt-3.5-turbo-instruct: , whisper-1: , tts-1: , " +
			"gpt-image-1: , omni-moderation-latest: , rerank-v3.5: , gpt-realtime: , sora-2: , sora-2-fast: , sora-2-fast-fail: ",
		"anthropic": "claude-sonnet-4-5: , claude-mapped: claude-haiku-4-5",
		"gemini":    "gemini-2.5-flash: , gemini-mapped: gemini-2.5-pro, gemini-embedding-001: ",
	}
	var channels strings.Builder
	for vendor, path := range map[string]string{"openai": "/openai/v1", "anthropic": "/anthropic", "gemini": "/gemini"} {
		channel := func(name, models string) {
			fmt.Fprintf(&channels, "  - {name: %s, vendor: %s, base_url: \"http://%s%s\", keys: [sk-upstream-%s], groups: [default], models: {%s}}\n",
				name, vendor, s.UpstreamAt, path, name, models)
		}
		channel(vendor, models[vendor])
		for suffix, rule := range spoiledModels() {
			channel(vendor+suffix, vendor+suffix+": ")
			rule = maps.Clone(rule)
			rule["vendor"], rule["model"] = vendor, vendor+suffix
			s.Control.AddRule(rule)
		}
	}
	return s.StartGateway(stack.GatewayOptions{
		Channels: channels.String() + strings.Join(sections, ""), Relay: "moderation_model: omni-moderation-latest, realtime_model: gpt-realtime",
		AdminKey: stack.AdminKey,
	})
}

// overWire gives a test a wire of its own to the gateway.
func overWire(g *stack.Gateway) *formats {
	w := &wire{}
	return &formats{Gateway: g, wire: w, http: &http.Client{Transport: w}}
}

// wire keeps the body of the last request an SDK sent.
type wire struct {
	mu   sync.Mutex
	body []byte
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
		req = req.Clone(req.Context())
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	w.mu.Lock()
	w.body = body
	w.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

// sent returns the body of the last request.
func (w *wire) sent() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body
}

// seen is one request as it reached a fake upstream.
type seen struct {
	Vendor string      `json:"vendor"`
	Key    string      `json:"key"`
	Target string      `json:"target"`
	Header http.Header `json:"header"`
	SHA256 string      `json:"sha256"`
	Size   int         `json:"size"`
	Head   []byte      `json:"head"` // the body's first 64 KiB
}

// upstream returns the last request of the operation for the upstream's model, after checking that it came with the
// channel's credential, in the vendor's own way, and with nothing of the client's but what may travel.
func (f *formats) upstream(t *testing.T, operation, model string) seen {
	t.Helper()
	var answer struct {
		Requests []seen `json:"requests"`
	}
	f.Stack.Control.Do(http.MethodGet, "/requests?"+url.Values{"operation": {operation}, "model": {model}, "last": {"1"}}.Encode(), nil,
		&answer)
	if len(answer.Requests) != 1 {
		t.Fatalf("no upstream saw a request of %s for %s", operation, model)
	}
	got := answer.Requests[0]
	credential := map[string]struct{ name, value string }{
		"openai":    {"Authorization", "Bearer " + got.Key},
		"anthropic": {"X-Api-Key", got.Key},
		"gemini":    {"X-Goog-Api-Key", got.Key},
	}[got.Vendor]
	if key := "sk-upstream-" + got.Vendor; got.Key != key && !strings.HasPrefix(got.Key, key+"-") {
		t.Errorf("%s: the upstream got the key %q", operation, got.Key)
	}
	for name, values := range got.Header {
		switch value := strings.Join(values, ","); {
		case strings.Contains(value, stack.Token):
			t.Errorf("%s: the client's token reached the upstream as %s", operation, name)
		case name == credential.name && value != credential.value:
			t.Errorf("%s: the upstream got %s: %s", operation, name, value)
		case name == credential.name, strings.HasPrefix(name, "Sec-Websocket-"):
		case slices.Contains([]string{
			"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Upgrade", "User-Agent",
			"Anthropic-Beta", "Anthropic-Version", "Openai-Beta",
		}, name):
		default:
			t.Errorf("%s: the upstream got the header %s: %s", operation, name, value)
		}
	}
	if got.Header.Get(credential.name) == "" || strings.Contains(got.Target, stack.Token) || strings.Contains(got.Target, "key=") {
		t.Errorf("%s: the upstream got %s with the header %v", operation, got.Target, got.Header)
	}
	if version := got.Header.Get("Anthropic-Version"); got.Vendor == "anthropic" && version != anthropicVersion {
		t.Errorf("%s: the upstream got the version %q", operation, version)
	}
	return got
}

// passed checks that the body the SDK sent last reached the upstream byte for byte, with old replaced by new at its
// first place if they are given.
func (f *formats) passed(t *testing.T, operation, model string, replaced ...string) seen {
	t.Helper()
	got, want := f.upstream(t, operation, model), f.wire.sent()
	if len(replaced) == 2 {
		if !bytes.Contains(want, []byte(replaced[0])) {
			t.Errorf("%s: the SDK did not send %s", operation, replaced[0])
		}
		want = bytes.Replace(want, []byte(replaced[0]), []byte(replaced[1]), 1)
	}
	sum := sha256.Sum256(want)
	if got.Size != len(want) || got.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%s: the upstream got %d bytes, %.300s…, want %d, %.300s…", operation, got.Size, got.Head, len(want), want)
	}
	return got
}

// passedAsking is passed for a stream whose usage the gateway asks for: that is all it adds.
func (f *formats) passedAsking(t *testing.T, operation, model string) {
	t.Helper()
	var got, want map[string]any
	if err := json.Unmarshal(f.upstream(t, operation, model).Head, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.wire.sent(), &want); err != nil {
		t.Fatal(err)
	}
	options, _ := got["stream_options"].(map[string]any)
	if options["include_usage"] != true {
		t.Errorf("%s: the upstream got stream_options %v", operation, got["stream_options"])
	}
	delete(got, "stream_options")
	delete(want, "stream_options")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: the upstream got %v, want %v", operation, got, want)
	}
}

// picture is several MB that compress to nothing less, as a photograph's.
func picture() []byte {
	const size = 4 << 20
	out := bytes.NewBufferString("\x89PNG\r\n\x1a\n")
	for block := sha256.Sum256([]byte("picture")); out.Len() < size; block = sha256.Sum256(block[:]) {
		out.Write(block[:])
	}
	return out.Bytes()
}

// dataURL is a picture as it is in JSON.
func dataURL(picture []byte) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture)
}

// TestFormats drives every synchronous operation with the vendors' unmodified SDKs: they are given a base URL and a key.
func TestFormats(t *testing.T) {
	t.Parallel()
	g := newFormats(t)
	t.Run("formats", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *stack.Gateway){
			"openai": testOpenAI, "openai media": testOpenAIMedia, "openai errors": testOpenAIErrors, "realtime": testRealtime,
			"anthropic": testAnthropic, "gemini": testGemini,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, g)
			})
		}
	})
	g.WantNoSecretsLogged(t, promptWord)
}
