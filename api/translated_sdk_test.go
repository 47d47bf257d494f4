package api_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
	"modelrelay/storage/ledger"
)

// The answers of an upstream of each format, whole and in pieces: "Hello", for 11 tokens of input, 5 of them cached, and 7 of output.
const (
	chatHello = `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":5}}}`
	chatHelloEvents = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` +
		"\n\n" +
		`data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"up","choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18,"prompt_tokens_details":{"cached_tokens":5}}}` + "\n\n" +
		"data: [DONE]\n\n"
	responseHello = `{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"completed","previous_response_id":null,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"completed",` +
		`"content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":11,"input_tokens_details":{"cached_tokens":5},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":18}}`
	responseHelloEvents = `event: response.created` + "\n" +
		`data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","output":[]}}` + "\n\n" +
		`event: response.output_item.added` + "\n" +
		`data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}}` + "\n\n" +
		`event: response.output_text.delta` + "\n" +
		`data: {"type":"response.output_text.delta","sequence_number":2,"output_index":0,"item_id":"msg_1","content_index":0,"delta":"Hel"}` +
		"\n\n" +
		`event: response.output_text.delta` + "\n" +
		`data: {"type":"response.output_text.delta","sequence_number":3,"output_index":0,"item_id":"msg_1","content_index":0,"delta":"lo"}` +
		"\n\n" +
		`event: response.completed` + "\n" + `data: {"type":"response.completed","sequence_number":4,"response":` + responseHello + "}\n\n"
	messageHello = `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"Hello"}],` +
		`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":6,"cache_read_input_tokens":5,"output_tokens":7}}`
	messageHelloEvents = "event: message_start\ndata: " +
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up",` +
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":6,"cache_read_input_tokens":5,"output_tokens":1}}}` +
		"\n\n" +
		"event: content_block_start\ndata: " + `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
		"event: ping\ndata: {\"type\": \"ping\"}\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}` + "\n\n" +
		"event: content_block_delta\ndata: " + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}` + "\n\n" +
		anthropicEnd
	geminiHello = `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP","index":0}],` +
		`"usageMetadata":{"promptTokenCount":11,"cachedContentTokenCount":5,"candidatesTokenCount":7,"totalTokenCount":18},"modelVersion":"up"}`
	geminiHelloEvents = `data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":11,"cachedContentTokenCount":5,"candidatesTokenCount":1}}` + "\r\n\r\n" +
		`data: {"candidates":[{"content":{"parts":[{"text":"lo"}],"role":"model"},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":11,"cachedContentTokenCount":5,"candidatesTokenCount":7}}` + "\r\n\r\n"
)

// foreign are channels whose upstreams speak one format each.
func foreign() map[string]providers.Channel {
	return map[string]providers.Channel{
		"chat":      {Vendor: "openai", Dialect: providers.DialectChat},
		"responses": {Vendor: "openai", Dialect: providers.DialectResponses},
		"messages":  {Vendor: "anthropic"},
		"gemini":    {Vendor: "gemini"},
	}
}

// says answers in every vendor's format by the path that it is asked at.
func says(w http.ResponseWriter, r *http.Request) {
	verb := r.URL.Path[strings.LastIndexAny(r.URL.Path, ":/")+1:]
	whole, pieces := map[string]string{
		"completions": chatHello, "responses": responseHello, "messages": messageHello, "generateContent": geminiHello,
		"count_tokens": `{"input_tokens":42}`, "countTokens": `{"totalTokens":42}`,
		"input_tokens": `{"object":"response.input_tokens","input_tokens":42}`,
		"embeddings":   `{"object":"list","model":"up","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]}],"usage":{"prompt_tokens":3,"total_tokens":3}}`,
		"embedContent": `{"embedding":{"values":[0.6,0.8]},"usageMetadata":{"promptTokenCount":3}}`,
	}[verb], map[string]string{
		"completions": chatHelloEvents, "responses": responseHelloEvents, "messages": messageHelloEvents,
		"streamGenerateContent": geminiHelloEvents,
	}[verb]
	body := make([]byte, r.ContentLength)
	_, _ = r.Body.Read(body)
	if verb == "streamGenerateContent" || strings.Contains(string(body), `"stream":true`) {
		answer(w, 200, "text/event-stream", pieces)
		return
	}
	answer(w, 200, "application/json", whole)
}

// foreignGateway is a gateway whose one channel is given, at an upstream of the test's. "m" stands for "up" there, and "asked"
// for "m".
func foreignGateway(t *testing.T, channel providers.Channel, handler http.HandlerFunc) *gateway {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	channel.Name, channel.BaseURL, channel.Keys = "main", server.URL, []providers.Secret{channelKey}
	channel.Models, channel.Groups = map[string]string{"m": "up"}, []string{"default"}
	routes := router.New(vendors, []providers.Channel{channel},
		&router.Options{Reaches: translate.Reaches, Aliases: map[string]string{"asked": "m"}})
	return newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Relay, o.Router = relay.New(routes, vendors, &relay.Options{MaxAttempts: 1}), routes
	})
}

// heard is what a client has read of an answer.
type heard struct {
	text, model, stop     string
	input, cached, output int64
}

// sdks ask a gateway by an unmodified SDK each, for a whole answer or in pieces.
func sdks() map[string]func(t *testing.T, g *gateway, stream bool) (heard, error) {
	return map[string]func(t *testing.T, g *gateway, stream bool) (heard, error){
		"chat": func(t *testing.T, g *gateway, stream bool) (heard, error) {
			t.Helper()
			client := sdk(t, g)
			ask := openai.ChatCompletionNewParams{Model: "asked", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")}}
			var whole *openai.ChatCompletion
			var err error
			if stream {
				ask.StreamOptions.IncludeUsage = openai.Bool(true)
				events := client.Chat.Completions.NewStreaming(t.Context(), ask)
				defer events.Close()
				sum := openai.ChatCompletionAccumulator{}
				for events.Next() {
					if !sum.AddChunk(events.Current()) {
						t.Errorf("the SDK cannot add %s", events.Current().RawJSON())
					}
				}
				whole, err = &sum.ChatCompletion, events.Err()
			} else {
				whole, err = client.Chat.Completions.New(t.Context(), ask)
			}
			if err != nil {
				return heard{}, err
			}
			return heard{
				whole.Choices[0].Message.Content, whole.Model, whole.Choices[0].FinishReason,
				whole.Usage.PromptTokens, whole.Usage.PromptTokensDetails.CachedTokens, whole.Usage.CompletionTokens,
			}, nil
		},
		"responses": func(t *testing.T, g *gateway, stream bool) (heard, error) {
			t.Helper()
			client := sdk(t, g)
			ask := responses.ResponseNewParams{Model: "asked", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
			var whole *responses.Response
			var err error
			if stream {
				events := client.Responses.NewStreaming(t.Context(), ask)
				defer events.Close()
				text := ""
				for events.Next() {
					switch event := events.Current(); event.Type {
					case "response.output_text.delta":
						text += event.Delta
					case "response.completed":
						completed := event.AsResponseCompleted().Response
						whole = &completed
					}
				}
				if err = events.Err(); err == nil && (whole == nil || whole.OutputText() != text) {
					t.Errorf("got %q in pieces, and whole %+v", text, whole)
				}
			} else {
				whole, err = client.Responses.New(t.Context(), ask)
			}
			if err != nil {
				return heard{}, err
			}
			return heard{
				whole.OutputText(), whole.Model, string(whole.Status),
				whole.Usage.InputTokens, whole.Usage.InputTokensDetails.CachedTokens, whole.Usage.OutputTokens,
			}, nil
		},
		"messages": func(t *testing.T, g *gateway, stream bool) (heard, error) {
			t.Helper()
			client := anthropicSDK(t, g)
			ask := anthropicQuestion()
			ask.Model = "asked"
			var whole anthropic.Message
			if stream {
				events := client.Messages.NewStreaming(t.Context(), ask)
				defer events.Close()
				for events.Next() {
					if err := whole.Accumulate(events.Current()); err != nil {
						t.Error(err)
					}
				}
				if err := events.Err(); err != nil {
					return heard{}, err
				}
			} else {
				got, err := client.Messages.New(t.Context(), ask)
				if err != nil {
					return heard{}, err
				}
				whole = *got
			}
			return heard{
				whole.Content[0].Text, whole.Model, string(whole.StopReason),
				whole.Usage.InputTokens + whole.Usage.CacheReadInputTokens, whole.Usage.CacheReadInputTokens, whole.Usage.OutputTokens,
			}, nil
		},
		"gemini": func(t *testing.T, g *gateway, stream bool) (heard, error) {
			t.Helper()
			client := geminiSDK(t, g, "", goodKey)
			said := heard{}
			read := func(got *genai.GenerateContentResponse) {
				said.text, said.model = said.text+got.Text(), got.ModelVersion
				if reason := got.Candidates[0].FinishReason; reason != "" {
					said.stop = string(reason)
				}
				if u := got.UsageMetadata; u != nil {
					said.input, said.cached, said.output = int64(u.PromptTokenCount), int64(u.CachedContentTokenCount), int64(u.CandidatesTokenCount)
				}
			}
			if stream {
				for got, err := range client.Models.GenerateContentStream(t.Context(), "asked", genai.Text("hi"), nil) {
					if err != nil {
						return heard{}, err
					}
					read(got)
				}
				return said, nil
			}
			got, err := client.Models.GenerateContent(t.Context(), "asked", genai.Text("hi"), nil)
			if err != nil {
				return heard{}, err
			}
			read(got)
			return said, nil
		},
	}
}

// TestSDKsOnEveryUpstream: each vendor's unmodified SDK reads the answers of all other vendors' models, under the name that it
// asked for, and what was used is counted as the upstream does.
func TestSDKsOnEveryUpstream(t *testing.T) {
	t.Parallel()
	stops := map[string]string{"chat": "stop", "responses": "completed", "messages": "end_turn", "gemini": "STOP"}
	for source, ask := range sdks() {
		for target, channel := range foreign() {
			if source == target {
				continue
			}
			for _, stream := range []bool{false, true} {
				t.Run(source+" on "+target, func(t *testing.T) {
					t.Parallel()
					g := foreignGateway(t, channel, says)
					got, err := ask(t, g, stream)
					if want := (heard{"Hello", "asked", stops[source], 11, 5, 7}); err != nil || got != want {
						t.Errorf("stream %v: got %+v, %v, want %+v", stream, got, err, want)
					}
					counted(t, g, 11, 5, 7)
				})
			}
		}
	}
}

// TestSDKsCountAndEmbed: tokens are counted and texts embedded by other vendors' upstreams.
func TestSDKsCountAndEmbed(t *testing.T) {
	t.Parallel()
	reasons := map[string][]string{"up": {"reasons"}}
	for target, tc := range map[string]struct {
		channel providers.Channel
		want    int64 // 0: an estimate
	}{
		"messages": {foreign()["messages"], 42},
		"gemini":   {foreign()["gemini"], 42},
		"responses": {
			providers.Channel{Vendor: "openai", Dialect: providers.DialectResponses, ModelFacts: providers.ModelFacts{Traits: reasons}},
			42,
		},
		"both": {providers.Channel{Vendor: "openai", ModelFacts: providers.ModelFacts{Traits: reasons}}, 42},
		"chat": {foreign()["chat"], 0},
	} {
		g := foreignGateway(t, tc.channel, says)
		if target != "messages" {
			client := anthropicSDK(t, g)
			got, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
				Model: "asked", Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(strings.Repeat("word ", 100)))},
			})
			if err != nil || tc.want > 0 && got.InputTokens != tc.want || tc.want == 0 && (got.InputTokens < 100 || got.InputTokens > 200) {
				t.Errorf("%s: got %+v, %v", target, got, err)
			}
		}
		if target != "gemini" {
			got, err := geminiSDK(t, g, "", goodKey).Models.CountTokens(t.Context(), "asked", genai.Text(strings.Repeat("word ", 100)), nil)
			if err != nil || tc.want > 0 && int64(got.TotalTokens) != tc.want || tc.want == 0 && (got.TotalTokens < 100 || got.TotalTokens > 200) {
				t.Errorf("%s: got %+v, %v", target, got, err)
			}
		}
		g.ledger.mu.Lock()
		for _, entry := range g.ledger.entries {
			if want := (ledger.Entry{Token: "good", Model: "m", Channel: "main", Requests: 1}); entry != want {
				t.Errorf("%s: got %+v, want %+v", target, entry, want)
			}
		}
		g.ledger.mu.Unlock()
	}
	rec := foreignGateway(t, foreign()["chat"], says).do(t,
		request("POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, "anthropic-version",
			"2023-06-01"))
	if rec.Code != 200 || rec.Header().Get("X-Relay-Changed") != "input_tokens" || rec.Header().Get("X-Relay-Translated") != "openai.chat" {
		t.Errorf("got %d %v %s", rec.Code, rec.Header(), rec.Body)
	}

	g := foreignGateway(t, foreign()["gemini"], says)
	client := sdk(t, g)
	vectors, err := client.Embeddings.New(t.Context(),
		openai.EmbeddingNewParams{Model: "asked", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("text")}})
	if err != nil || len(vectors.Data) != 1 || len(vectors.Data[0].Embedding) != 2 || vectors.Model != "asked" ||
		vectors.Usage.PromptTokens != 3 {
		t.Errorf("got %+v, %v", vectors, err)
	}
	counted(t, g, 3, 0, 0)
	g = foreignGateway(t, foreign()["chat"], says)
	embedded, err := geminiSDK(t, g, "", goodKey).Models.EmbedContent(t.Context(), "asked", genai.Text("text"), nil)
	if err != nil || len(embedded.Embeddings) != 1 || len(embedded.Embeddings[0].Values) != 2 {
		t.Errorf("got %+v, %v", embedded, err)
	}
	counted(t, g, 3, 0, 0)
}

// TestSDKsReadForeignRefusals: the message of an upstream about the client's request comes as an error of the client's SDK, with its
// status and its words, and no field of another format.
func TestSDKsReadForeignRefusals(t *testing.T) {
	t.Parallel()
	refusals := map[string]string{
		"chat":      `{"error":{"message":"Their words about upstream-key.","type":"invalid_request_error","param":"messages[0]","code":"x"}}`,
		"responses": `{"error":{"message":"Their words about upstream-key.","type":"invalid_request_error","param":"input[0]","code":"x"}}`,
		"messages":  `{"type":"error","error":{"type":"invalid_request_error","message":"Their words about upstream-key."},"request_id":"r"}`,
		"gemini":    `{"error":{"code":422,"message":"Their words about upstream-key.","status":"INVALID_ARGUMENT"}}`,
	}
	for source, ask := range sdks() {
		for target, channel := range foreign() {
			if source == target {
				continue
			}
			t.Run(source+" on "+target, func(t *testing.T) {
				t.Parallel()
				g := foreignGateway(t, channel, func(w http.ResponseWriter, _ *http.Request) { answer(w, 422, "application/json", refusals[target]) })
				_, err := ask(t, g, false)
				status, message := 0, ""
				var a *anthropic.Error
				var o *openai.Error
				var b genai.APIError
				switch {
				case errors.As(err, &a):
					status, message = a.StatusCode, a.RawJSON()
				case errors.As(err, &o):
					status, message = o.StatusCode, o.Message
					if o.Param != "" || o.Code != "invalid_request" {
						t.Errorf("got param %q, code %q", o.Param, o.Code)
					}
				case errors.As(err, &b):
					status, message = b.Code, b.Message
				}
				if status != 422 || !strings.Contains(message, "Their words about ") || strings.Contains(message, channelKey) {
					t.Errorf("got %d %q of %v", status, message, err)
				}
			})
		}
	}
}

// TestForeignStreamsBreakOff: a stream that breaks off ends in an error of the client's own format, and costs what came.
func TestForeignStreamsBreakOff(t *testing.T) {
	t.Parallel()
	streams := map[string]string{
		"chat": chatHelloEvents, "responses": responseHelloEvents, "messages": messageHelloEvents,
		"gemini": geminiHelloEvents,
	}
	ends := map[string]string{
		"/v1/chat/completions": `data: {"error":{"message":"`, "/v1/responses": "event: response.failed\n",
		"/v1/messages": "event: error\ndata: ", "/v1beta/models/m:streamGenerateContent?alt=sse": `data: {"error":{"code":502,`,
		"/v1beta/models/m:streamGenerateContent": `{"error":{"code":502,`,
	}
	bodies := map[string]string{
		"/v1/chat/completions": `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`,
		"/v1/responses":        `{"model":"m","stream":true,"input":"x"}`,
		"/v1/messages":         `{"model":"m","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"x"}]}`,
	}
	for path, end := range ends {
		for target, stream := range streams {
			if strings.Contains(path, map[string]string{
				"chat": "/chat/", "responses": "/responses", "messages": "/messages",
				"gemini": "v1beta",
			}[target]) {
				continue
			}
			t.Run(path+" on "+target, func(t *testing.T) {
				t.Parallel()
				cut := stream[:strings.Index(stream, "lo\"")-40]
				g := foreignGateway(t, foreign()[target], func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = w.Write([]byte(cut))
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				})
				body := bodies[path]
				if body == "" {
					body = geminiBody
				}
				rec := g.do(t, request("POST", path, body, "anthropic-version",
					map[bool]string{true: "2023-06-01"}[strings.Contains(path, "messages")]))
				got := rec.Body.String()
				if rec.Code != 200 || !strings.Contains(got, "Hel") || !strings.Contains(got, end) || strings.Contains(got, "[DONE]") {
					t.Errorf("got %d %s, want an end in %s", rec.Code, got, end)
				}
				if strings.HasPrefix(path, "/v1/responses") && !strings.Contains(got[strings.Index(got, end):], "event: error\n") {
					t.Errorf("got %s", got)
				}
				g.ledger.mu.Lock()
				defer g.ledger.mu.Unlock()
				if len(g.ledger.entries) != 1 || !g.ledger.entries[0].Failed || g.ledger.entries[0].InputTokens == 0 ||
					g.ledger.entries[0].OutputTokens == 0 {
					t.Errorf("got ledger %+v, want one call that failed and costs what came", g.ledger.entries)
				}
			})
		}
	}
}

// TestTranslatedArrayError: a stream of format B without events whose upstream breaks off ends with the error as the last
// element of its array, from upstreams of every format.
func TestTranslatedArrayError(t *testing.T) {
	t.Parallel()
	pieces := map[string]string{"chat": chatHelloEvents, "responses": responseHelloEvents, "messages": messageHelloEvents}
	for name, channel := range foreign() {
		stream := pieces[name]
		if stream == "" { // its own
			continue
		}
		last := strings.Index(stream, `"Hel"`)
		cut := last + strings.Index(stream[last:], "\n\n") + 2
		g := foreignGateway(t, channel, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream[:cut])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		rec := g.do(t, request("POST", "/v1beta/models/asked:streamGenerateContent", geminiBody))
		var elements []struct {
			Candidates []json.RawMessage
			Error      struct {
				Code   int
				Status string
			}
		}
		if err := json.Unmarshal(rec.Body.Bytes(), &elements); err != nil || rec.Code != 200 {
			t.Errorf("%s: got %d, %v: %s", name, rec.Code, err, rec.Body)
			continue
		}
		if n := len(elements); n < 2 || elements[n-1].Error.Code != 502 || elements[n-1].Error.Status != "INTERNAL" ||
			len(elements[0].Candidates) != 1 {
			t.Errorf("%s: got %s, want the text and the error behind it", name, rec.Body)
		}
	}
}
