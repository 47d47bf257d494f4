package api_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// anthropicSDK is the unmodified SDK of format A against a gateway.
func anthropicSDK(t *testing.T, g *gateway, options ...option.RequestOption) anthropic.Client {
	t.Helper()
	server := serve(t, g)
	return anthropic.NewClient(append([]option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(server.URL), option.WithAPIKey(goodKey),
		option.WithHTTPClient(server.Client()), option.WithMaxRetries(0),
	}, options...)...)
}

func anthropicQuestion() anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
}

// anthropicUpstream checks what every call must bring.
func anthropicUpstream(t *testing.T, path string, reply func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path || r.Header.Get("X-Api-Key") != channelKey || r.Header.Get("Anthropic-Version") != "2023-06-01" ||
			r.Header.Get("Authorization") != "" || r.URL.RawQuery != "" {
			t.Errorf("got %s %v", r.URL, r.Header)
		}
		reply(w, r)
	}
}

const (
	anthropicMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"Hello"}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":1,"cache_read_input_tokens":5,"output_tokens":7}}`
	anthropicToolMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"tool_use","id":"toolu_1",` +
		`"name":"weather","input":{"city":"Zürich"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	anthropicStart = "event: message_start\ndata: " +
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up",` +
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"cache_read_input_tokens":5,"output_tokens":1}}}` +
		"\n\n" +
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}` + "\n\n"
	anthropicEnd = "event: content_block_stop\ndata: " + `{"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\ndata: " + `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}` + "\n\n" +
		"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

func TestAnthropicSDKMessage(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]option.RequestOption{
		"x-api-key": nil, "bearer": {option.WithHeaderDel("x-api-key"), option.WithAuthToken(goodKey)},
		"the contract's version header": {
			option.WithHeaderDel("anthropic-version"), option.WithHeader("vendorA-version", "2023-06-01"),
		},
	} {
		g := vendorGateway(t, "anthropic", anthropicUpstream(t, "/v1/messages", func(w http.ResponseWriter, r *http.Request) {
			body, _ := bodyOf(t, r)
			if body["model"] != "up" || body["max_tokens"] != 100.0 || body["speed"] != nil || r.Header.Get("Anthropic-Beta") != "a,b" {
				t.Errorf("got %v, beta %q", body, r.Header.Get("Anthropic-Beta"))
			}
			answer(w, 200, "application/json", anthropicMessage)
		}))
		client := anthropicSDK(t, g, append(options, option.WithHeader("anthropic-beta", "a,b"))...)
		got, err := client.Messages.New(t.Context(), anthropicQuestion())
		if err != nil || got.Content[0].Text != "Hello" || got.Usage.OutputTokens != 7 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		want := ledger.Entry{Token: "good", Model: "m", Channel: "main", Requests: 1, InputTokens: 17, CachedTokens: 5, OutputTokens: 7}
		testwait.Eventually(t, "the ledger has it", patience, func() bool {
			g.ledger.mu.Lock()
			defer g.ledger.mu.Unlock()
			return len(g.ledger.entries) == 1 && g.ledger.entries[0] == want
		})
	}
}

func TestAnthropicSDKStream(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "anthropic", anthropicUpstream(t, "/v1/messages", func(w http.ResponseWriter, r *http.Request) {
		if body, _ := bodyOf(t, r); body["stream"] != true {
			t.Errorf("got %v", body)
		}
		answer(w, 200, "text/event-stream; charset=utf-8", anthropicStart+anthropicEnd)
	}))
	client := anthropicSDK(t, g)
	stream := client.Messages.NewStreaming(t.Context(), anthropicQuestion())
	var whole anthropic.Message
	for stream.Next() {
		if err := whole.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if stream.Err() != nil || whole.Content[0].Text != "Hello" || whole.StopReason != "end_turn" || whole.Usage.OutputTokens != 7 {
		t.Errorf("got %+v, %v", whole, stream.Err())
	}
	_ = stream.Close()

	// Heartbeats and event lines pass as they are.
	rec := g.do(t, request("POST", "/v1/messages", `{"model":"m","messages":[],"max_tokens":1,"stream":true}`, "anthropic-version",
		"2023-06-01"))
	if rec.Code != 200 || rec.Body.String() != anthropicStart+anthropicEnd {
		t.Errorf("got %d %q, want the upstream's bytes", rec.Code, rec.Body)
	}
}

// TestAnthropicSDKStreamError: a stream that breaks off ends with an error of the SDK's.
func TestAnthropicSDKStreamError(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "anthropic", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, anthropicStart)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	client := anthropicSDK(t, g)
	stream := client.Messages.NewStreaming(t.Context(), anthropicQuestion())
	n := 0
	for stream.Next() {
		n++
	}
	var failed *anthropic.Error
	if !errors.As(stream.Err(), &failed) || failed.Type() != "api_error" || n != 3 {
		t.Errorf("got %d events and %v, want three and an api_error", n, stream.Err())
	}
	_ = stream.Close()
}

func TestAnthropicSDKTools(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	image := bytes.Repeat([]byte{0x89, 'P', 'N', 'G'}, size/4)
	g := vendorGateway(t, "anthropic", anthropicUpstream(t, "/v1/messages", func(w http.ResponseWriter, r *http.Request) {
		body, n := bodyOf(t, r)
		messages, _ := body["messages"].([]any)
		tools, _ := body["tools"].([]any)
		choice, _ := body["tool_choice"].(map[string]any)
		if len(tools) != 1 || choice["name"] != "weather" || n < size*4/3 {
			t.Errorf("got tools %v, choice %v, %d bytes", tools, choice, n)
		}
		if len(messages) == 1 {
			answer(w, 200, "application/json", anthropicToolMessage)
			return
		}
		answer(w, 200, "application/json", anthropicMessage)
	}))
	client := anthropicSDK(t, g)
	params := anthropicQuestion()
	params.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(
		anthropic.NewImageBlockBase64("image/png", base64.StdEncoding.EncodeToString(image)),
		anthropic.NewTextBlock("where is it, and how warm?"),
	)}
	params.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"city": map[string]string{"type": "string"}},
	}, "weather")}
	params.ToolChoice = anthropic.ToolChoiceUnionParam{OfTool: &anthropic.ToolChoiceToolParam{Name: "weather"}}
	got, err := client.Messages.New(t.Context(), params)
	if err != nil || got.StopReason != "tool_use" || string(got.Content[0].Input) != `{"city":"Zürich"}` {
		t.Fatalf("got %+v, %v", got, err)
	}
	params.Messages = append(params.Messages, got.ToParam(),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock(got.Content[0].ID, "21 °C", false)))
	if got, err = client.Messages.New(t.Context(), params); err != nil || got.Content[0].Text != "Hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnthropicSDKCountTokens(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "anthropic", anthropicUpstream(t, "/v1/messages/count_tokens", func(w http.ResponseWriter, r *http.Request) {
		if body, _ := bodyOf(t, r); body["model"] != "up" {
			t.Errorf("got %v", body)
		}
		answer(w, 200, "application/json", `{"input_tokens":14}`)
	}))
	client := anthropicSDK(t, g)
	got, err := client.Messages.CountTokens(t.Context(),
		anthropic.MessageCountTokensParams{Model: "m", Messages: anthropicQuestion().Messages})
	if err != nil || got.InputTokens != 14 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnthropicSDKErrors(t *testing.T) {
	t.Parallel()
	const theirs = `{"type":"error","error":{"type":"invalid_request_error","message":"messages: at least one message is required"},"request_id":"req_up"}`
	for _, test := range []struct {
		name, reply string
		upstream    int
		change      func(*anthropic.MessageNewParams)
		options     []option.RequestOption
		status      int
		class       string
		says        string
	}{
		{name: "wrong key", options: []option.RequestOption{option.WithAPIKey("sk-wrong")}, status: 401, class: "authentication_error"},
		{
			name: "no version", options: []option.RequestOption{option.WithHeaderDel("anthropic-version")}, status: 400,
			class: "invalid_request_error", says: "vendorA-version",
		},
		{
			name: "unknown model", change: func(p *anthropic.MessageNewParams) { p.Model = "none" }, status: 404, class: "not_found_error",
			says: "none",
		},
		{
			name: "bad field", options: []option.RequestOption{option.WithJSONSet("max_tokens", "many")}, status: 400,
			class: "invalid_request_error", says: "max_tokens",
		},
		{
			name: "bad enum", options: []option.RequestOption{option.WithJSONSet("speed", "warp")}, status: 400, class: "invalid_request_error",
			says: "speed",
		},
		{name: "their 400", upstream: 400, reply: theirs, status: 400, class: "invalid_request_error", says: "at least one message"},
		{
			name: "overloaded", upstream: 529, reply: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, status: 529,
			class: "overloaded_error",
		},
		{
			name: "our key", upstream: 401, reply: `{"type":"error","error":{"type":"authentication_error","message":"bad"}}`, status: 502,
			class: "api_error",
		},
		{
			name: "rate", upstream: 429, reply: `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, status: 429,
			class: "rate_limit_error",
		},
		{name: "broken", upstream: 200, reply: `<html>`, status: 502, class: "api_error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := vendorGateway(t, "anthropic", func(w http.ResponseWriter, _ *http.Request) {
				contentType := "application/json"
				if strings.HasPrefix(test.reply, "<") {
					contentType = "text/html"
				}
				answer(w, test.upstream, contentType, test.reply)
			})
			client, params := anthropicSDK(t, g, test.options...), anthropicQuestion()
			if test.change != nil {
				test.change(&params)
			}
			_, err := client.Messages.New(t.Context(), params)
			var failed *anthropic.Error
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, want an error of the SDK", err)
			}
			if failed.StatusCode != test.status || string(failed.Type()) != test.class || !strings.Contains(failed.RawJSON(), test.says) {
				t.Errorf("got %d %s %s", failed.StatusCode, failed.Type(), failed.RawJSON())
			}
			if id := failed.Response.Header.Get("X-Request-Id"); id == "" || failed.RequestID != id ||
				test.upstream != 400 && !strings.Contains(failed.RawJSON(), `"request_id":"`+id+`"`) {
				t.Errorf("got request id %q, header %q in %s", failed.RequestID, id, failed.RawJSON())
			}
		})
	}
}

func TestAnthropicSDKModels(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "anthropic", nil)
	for name, options := range map[string][]option.RequestOption{
		"x-api-key": nil, "bearer": {option.WithHeaderDel("x-api-key"), option.WithAuthToken(goodKey)},
	} {
		client := anthropicSDK(t, g, options...)
		pages := client.Models.ListAutoPaging(t.Context(), anthropic.ModelListParams{})
		var ids []string
		for pages.Next() {
			ids = append(ids, pages.Current().ID)
		}
		if got := strings.Join(ids, " "); pages.Err() != nil || got != "m org/m:70b" {
			t.Errorf("%s: got %s, %v", name, got, pages.Err())
		}
		got, err := client.Models.Get(t.Context(), "org/m:70b", anthropic.ModelGetParams{})
		if err != nil || got.ID != "org/m:70b" || got.Type != "model" || got.CreatedAt.IsZero() {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		var missing *anthropic.Error
		if _, err = client.Models.Get(t.Context(), "none", anthropic.ModelGetParams{}); !errors.As(err, &missing) ||
			missing.Type() != "not_found_error" {
			t.Errorf("%s: got %v, want not_found_error", name, err)
		}
	}
}
