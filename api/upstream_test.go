package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

const upstreamKey = "sk-upstream"

// fakeOpenAI is an OpenAI upstream that checks what every request must be and keeps the last one.
type fakeOpenAI struct {
	tb   testing.TB
	mu   sync.Mutex
	last received
}

// received is a request as it came.
type received struct {
	path, contentType string
	body              []byte
}

// newOpenAI makes a gateway whose one channel is a fake OpenAI upstream, reached through the real relay and vendor.
// Every model exists; "fast" is "up/fast:1" there, and the channel "open" takes values the contract does not list.
func newOpenAI(tb testing.TB, change func(*api.Options)) (*gateway, *fakeOpenAI) {
	tb.Helper()
	up := &fakeOpenAI{tb: tb}
	server := httptest.NewServer(up)
	tb.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	tb.Cleanup(client.CloseIdleConnections)
	catalog := providers.Catalog{"openai": {
		Name: "openai", Relay: openai.NewRelayer(client), Endpoints: openai.Endpoints(), Usage: openai.Usage(),
	}}
	channel := providers.Channel{
		Name: "main", Vendor: "openai", BaseURL: server.URL + "/base/v1", Keys: []providers.Secret{upstreamKey},
		Models: map[string]string{"fast": "up/fast:1", providers.AnyModel: ""}, Groups: []string{"default"},
	}
	open := channel
	open.Name, open.OpenValues, open.Models = "open", true, map[string]string{"open": ""}
	router := router.New(catalog, []providers.Channel{channel, open}, nil)
	g := newGateway(tb, nil, func(_ *gateway, o *api.Options) {
		o.Router, o.Relay = router, relay.New(router, catalog, &relay.Options{MaxAttempts: 1})
		if change != nil {
			change(o)
		}
		if o.Tracer != nil {
			o.Relay = relay.New(router, catalog, &relay.Options{MaxAttempts: 1, Tracer: o.Tracer})
		}
	})
	return g, up
}

// took returns the last request.
func (u *fakeOpenAI) took() received {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last
}

// ServeHTTP implements http.Handler.
func (u *fakeOpenAI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.ContentLength != int64(len(body)) || r.Header.Get("Authorization") != "Bearer "+upstreamKey ||
		r.Method != http.MethodPost {
		u.tb.Errorf("upstream got %s %s, %d of %d bytes, %v, authorization %q", r.Method, r.URL, len(body), r.ContentLength, err,
			r.Header.Get("Authorization"))
	}
	for name, values := range r.Header {
		switch name {
		case "Accept", "Authorization", "Content-Length", "Content-Type", "User-Agent":
		default:
			u.tb.Errorf("upstream got header %s: %v", name, values)
		}
	}
	path, found := strings.CutPrefix(r.URL.Path, "/base/v1")
	if !found || r.URL.RawQuery != "" {
		u.tb.Errorf("upstream got %s", r.URL)
	}
	u.mu.Lock()
	u.last = received{path: path, contentType: r.Header.Get("Content-Type"), body: body}
	u.mu.Unlock()

	if status, answer, ok := spoiled(body); ok {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
		return
	}
	var asked struct {
		Stream         bool   `json:"stream"`
		StreamFormat   string `json:"stream_format"`
		EncodingFormat string `json:"encoding_format"`
	}
	_ = json.Unmarshal(body, &asked) // a form asks for nothing here
	if bytes.Contains(body, []byte("name=\"stream\"\r\n\r\ntrue")) || asked.StreamFormat == "sse" {
		asked.Stream = true
	}
	if events := streamOf(path); asked.Stream && events != "" {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
		if bytes.Contains(body, []byte("break off")) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		return
	}
	contentType, answer := answerOf(path, asked.EncodingFormat)
	if bytes.Contains(body, []byte("\r\n\r\nsrt\r\n")) {
		contentType, answer = "text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:00:01,000\nhello\n"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	_, _ = io.WriteString(w, answer)
}

// spoiled answers bodies that name a failure.
func spoiled(body []byte) (status int, answer string, ok bool) {
	switch {
	case bytes.Contains(body, []byte("fail 400")):
		return 400, `{"error":{"message":"Too long.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, true
	case bytes.Contains(body, []byte("fail 429")):
		return 429, `{"error":{"message":"Slow down.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`, true
	case bytes.Contains(body, []byte("fail 500")):
		return 500, `{"error":{"message":"sk-upstream is broken"}}`, true
	case bytes.Contains(body, []byte("fail 401")):
		return 401, `{"error":{"message":"Incorrect API key","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, true
	default:
		return 0, "", false
	}
}

const response = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"message","id":"msg_1",` +
	`"status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[]}]}],` +
	`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}}`

// sound is what speech answers: bytes that are no text.
var sound = strings.Repeat("\xff\xfb\x90\x00\x00ID3", 20_000)

// answerOf is the answer of a path that is not streamed, in the vendor's shapes as its Go SDK reads them.
func answerOf(path, encoding string) (contentType, body string) {
	switch path {
	case "/chat/completions":
		body = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop",` +
			`"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`
	case "/responses":
		body = response
	case "/responses/compact":
		body = `{"id":"resp_2","object":"response.compaction","created_at":1,"output":[{"type":"compaction","id":"cmp_1","encrypted_content":"x"}],` +
			`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":12}}`
	case "/embeddings":
		vector := "[0.5,-1]"
		if encoding == "base64" {
			vector = `"AAAAPwAAgL8="`
		}
		body = `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":` + vector +
			`}],"usage":{"prompt_tokens":5,"total_tokens":5}}`
	case "/completions":
		body = `{"id":"cmpl","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"hello","finish_reason":"stop","logprobs":null}],` +
			`"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}`
	case "/audio/transcriptions", "/audio/translations":
		body = `{"text":"hello","usage":{"type":"tokens","input_tokens":5,"output_tokens":7,"total_tokens":12}}`
	case "/audio/speech":
		return "audio/mpeg", sound
	case "/images/generations", "/images/edits":
		body = `{"created":1,"data":[{"b64_json":"aGk="}],"usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12,"input_tokens_details":{"image_tokens":1,"text_tokens":4}}}`
	case "/rerank":
		body = `{"model":"m","results":[{"index":1,"relevance_score":0.9}],"usage":{"prompt_tokens":5,"total_tokens":5}}`
	case "/moderations":
		body = `{"id":"modr","model":"m","results":[{"flagged":true,"categories":{"violence":true},"category_scores":{"violence":0.9}}]}`
	default:
		body = `{"error":"no such path"}`
	}
	return "application/json", body
}

// streamOf is the stream of a path, "" where it has none.
func streamOf(path string) string {
	switch path {
	case "/chat/completions":
		return chunk + chunk + usageChunk + done
	case "/completions":
		return `data: {"id":"cmpl","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"hel","finish_reason":null}]}` + "\n\n" +
			`data: {"id":"cmpl","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"lo","finish_reason":"stop"}]}` +
			"\n\n" +
			`data: {"id":"cmpl","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12}}` + "\n\n" + done
	case "/responses":
		return "event: response.created\ndata: " + `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","usage":null}}` + "\n\n" +
			": a heartbeat\n\n" +
			"event: response.output_text.delta\ndata: " +
			`{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"hello"}` +
			"\n\n" +
			"event: response.completed\ndata: " + `{"type":"response.completed","sequence_number":2,"response":` + response + "}\n\n"
	case "/audio/transcriptions":
		return `data: {"type":"transcript.text.delta","delta":"hello"}` + "\n\n" +
			`data: {"type":"transcript.text.done","text":"hello","usage":{"type":"tokens","input_tokens":5,"output_tokens":7,"total_tokens":12}}` +
			"\n\n"
	case "/audio/speech":
		return `data: {"type":"speech.audio.delta","audio":"aGk="}` + "\n\n" +
			`data: {"type":"speech.audio.done","usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}}` + "\n\n"
	case "/images/generations":
		return "event: image_generation.completed\ndata: " +
			`{"type":"image_generation.completed","b64_json":"aGk=","usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}}` + "\n\n"
	case "/images/edits":
		return "event: image_edit.completed\ndata: " +
			`{"type":"image_edit.completed","b64_json":"aGk=","usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}}` + "\n\n"
	default:
		return ""
	}
}
