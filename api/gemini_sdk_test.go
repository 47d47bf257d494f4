package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"modelrelay/activities"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// geminiSDK is the unmodified SDK of format B against a gateway.
func geminiSDK(t *testing.T, g *gateway, version, key string) *genai.Client {
	t.Helper()
	server := serve(t, g)
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: server.Client(),
		HTTPOptions: genai.HTTPOptions{BaseURL: server.URL, APIVersion: version},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// geminiUpstream checks what every call must bring.
func geminiUpstream(t *testing.T, uri string, reply func(w http.ResponseWriter, r *http.Request)) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI != uri || r.Header.Get("X-Goog-Api-Key") != channelKey || r.Header.Get("Authorization") != "" {
			t.Errorf("got %s %v, want %s", r.RequestURI, r.Header, uri)
		}
		reply(w, r)
	}
}

const (
	geminiAnswer = `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP","index":0}],` +
		`"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2,"totalTokenCount":10},"modelVersion":"up"}`
	geminiCall = `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"weather","args":{"city":"Zürich"}}}],"role":"model"},` +
		`"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":8}}`
	geminiPiece = `{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"}}],"usageMetadata":{"promptTokenCount":8}}`
	geminiLast  = `{"candidates":[{"content":{"parts":[{"text":"b"}],"role":"model"},"finishReason":"STOP"}],` +
		`"usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":2}}`
	geminiEvents = "data: " + geminiPiece + "\r\n\r\n" + "data: " + geminiLast + "\r\n\r\n"
	geminiArray  = "[" + geminiPiece + "\n,\r\n" + geminiLast + "\n]"
	geminiBody   = `{"contents":[{"parts":[{"text":"hi"}]}]}`
)

func TestGeminiSDKGenerate(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1beta", "v1"} {
		for model, path := range map[string]string{"m": "up", "org/m:70b": "org/m:70b"} {
			g := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/"+path+":generateContent",
				func(w http.ResponseWriter, r *http.Request) {
					if body, _ := bodyOf(t, r); body["contents"] == nil || body["model"] != nil {
						t.Errorf("got %v", body)
					}
					answer(w, 200, "application/json; charset=UTF-8", geminiAnswer)
				}))
			client := geminiSDK(t, g, version, goodKey)
			got, err := client.Models.GenerateContent(t.Context(), model, genai.Text("hi"), nil)
			if err != nil || got.Text() != "Hello" || got.UsageMetadata.CandidatesTokenCount != 2 {
				t.Errorf("%s %s: got %+v, %v", version, model, got, err)
			}
			want := ledger.Entry{Token: "good", Model: model, Channel: "main", Requests: 1, InputTokens: 8, OutputTokens: 2}
			testwait.Eventually(t, "the ledger has it", patience, func() bool {
				g.ledger.mu.Lock()
				defer g.ledger.mu.Unlock()
				return len(g.ledger.entries) == 1 && g.ledger.entries[0] == want
			})
			if strings.Contains(g.log.String(), goodKey) {
				t.Error("the log has the key")
			}
		}
	}
}

func TestGeminiSDKStream(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:streamGenerateContent?alt=sse",
		func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "text/event-stream", geminiEvents)
		}))
	client := geminiSDK(t, g, "", goodKey)
	text := ""
	for got, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hi"), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text += got.Text()
	}
	if text != "ab" {
		t.Errorf("got %q", text)
	}
	rec := g.do(t, request("POST", "/v1beta/models/m:streamGenerateContent?alt=sse&key="+goodKey, geminiBody, "Authorization", ""))
	if rec.Code != 200 || rec.Body.String() != geminiEvents {
		t.Errorf("got %d %q, want the upstream's bytes and no more", rec.Code, rec.Body)
	}
	if strings.Contains(g.log.String(), goodKey) {
		t.Error("the log has the key of the query")
	}
}

// TestGeminiBackgroundStream: the worker of a streamed call reads events, whatever its client reads.
func TestGeminiBackgroundStream(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:streamGenerateContent?alt=sse",
		func(w http.ResponseWriter, _ *http.Request) {
			answer(w, 200, "text/event-stream", geminiEvents)
		}))
	const path = "/v1beta/models/m:streamGenerateContent"
	for query, array := range map[string]bool{"": true, "?alt=sse": false} {
		g.tasks.creates = nil
		if rec := g.do(t, request("POST", path+query, geminiBody, "Prefer", "respond-async")); rec.Code != http.StatusAccepted {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		staged := g.tasks.creates[0].Call.StagedCall
		if !staged.Stream || staged.Array != array {
			t.Errorf("%q: staged %+v", query, staged)
		}
		rec := httptest.NewRecorder()
		g.serveCall(t.Context(), rec, staged.Path+query, geminiBody, new(activities.CallRun))
		if rec.Code != 200 || rec.Body.String() != geminiEvents || rec.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%q: got %d %v %q", query, rec.Code, rec.Header(), rec.Body)
		}
	}
}

// TestGeminiArrayStream: without alt=sse the stream is one JSON array, each element of which arrives as it was sent.
func TestGeminiArrayStream(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	g := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:streamGenerateContent", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "["+geminiPiece)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, geminiArray[len("["+geminiPiece):])
	}))
	server := serve(t, g)
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/models/m:streamGenerateContent", strings.NewReader(geminiBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Goog-Api-Key", goodKey)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("["+geminiPiece))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "["+geminiPiece {
		t.Fatalf("got %q, %v, want the first element before the next is sent", first, err)
	}
	close(more)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(first)+string(rest) != geminiArray {
		t.Errorf("got %q, %v", rest, err)
	}
	want := ledger.Entry{Token: "good", Model: "m", Channel: "main", Requests: 1, InputTokens: 8, OutputTokens: 2}
	testwait.Eventually(t, "the ledger has it", patience, func() bool {
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		return len(g.ledger.entries) == 1 && g.ledger.entries[0] == want
	})
}

// TestGeminiArrayStreamError: an array that breaks off between two elements ends with the error as its last; within one it
// is cut, so that no client takes it for whole.
func TestGeminiArrayStreamError(t *testing.T) {
	t.Parallel()
	const broken = `{"error":{"code":502,"message":"The upstream ended its answer early.","status":"INTERNAL","details":[]}}`
	for sent, want := range map[string]string{
		"[" + geminiPiece:                      "[" + geminiPiece + ",\n" + broken + "\n]",
		"[" + geminiPiece + "\n,\r\n":          "[" + geminiPiece + "\n,\r\n" + "\n" + broken + "\n]",
		"[":                                    "[\n" + broken + "\n]",
		"[" + geminiPiece[:len(geminiPiece)-1]: "",
		`[{"text":"]}\"`:                       "",
		geminiArray:                            "",
	} {
		g := vendorGateway(t, "gemini", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, sent)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		server := serve(t, g)
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1beta/models/m:streamGenerateContent",
			strings.NewReader(geminiBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Goog-Api-Key", goodKey)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want == "" && err == nil || want != "" && (err != nil || string(got) != want) {
			t.Errorf("%q: got %q, %v, want %q", sent, got, err, want)
		}
	}
}

// TestGeminiSDKStreamError: a stream that breaks off ends with an error of the SDK's.
func TestGeminiSDKStreamError(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "gemini", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: %s\r\n\r\n", geminiPiece)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	client := geminiSDK(t, g, "", goodKey)
	n := 0
	var last error
	for got, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hi"), nil) {
		if last = err; err == nil {
			n += len(got.Text())
		}
	}
	var failed genai.APIError
	if n != 1 || !errors.As(last, &failed) || failed.Status != "INTERNAL" || failed.Code != 502 {
		t.Errorf("got %d and %v, want one and INTERNAL", n, last)
	}
}

func TestGeminiSDKTools(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	g := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:generateContent", func(w http.ResponseWriter, r *http.Request) {
		body, n := bodyOf(t, r)
		contents, _ := body["contents"].([]any)
		tools, _ := body["tools"].([]any)
		if len(tools) != 1 || n < size*4/3 {
			t.Errorf("got tools %v, %d bytes", tools, n)
		}
		if len(contents) == 1 {
			answer(w, 200, "application/json", geminiCall)
			return
		}
		answer(w, 200, "application/json", geminiAnswer)
	}))
	client := geminiSDK(t, g, "", goodKey)
	config := &genai.GenerateContentConfig{
		ResponseModalities: []string{"TEXT", "IMAGE"}, ImageConfig: &genai.ImageConfig{AspectRatio: "16:9", ImageSize: "1K"},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "weather", Parameters: &genai.Schema{
				Type:       genai.TypeObject,
				Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString}},
			},
		}}}},
	}
	contents := []*genai.Content{genai.NewContentFromParts([]*genai.Part{
		genai.NewPartFromBytes(bytes.Repeat([]byte{0x89, 'P', 'N', 'G'}, size/4), "image/png"), genai.NewPartFromText("how warm is it?"),
	}, genai.RoleUser)}
	got, err := client.Models.GenerateContent(t.Context(), "m", contents, config)
	if err != nil || len(got.FunctionCalls()) != 1 || got.FunctionCalls()[0].Args["city"] != "Zürich" {
		t.Fatalf("got %+v, %v", got, err)
	}
	contents = append(contents, got.Candidates[0].Content, genai.NewContentFromParts([]*genai.Part{
		genai.NewPartFromFunctionResponse("weather", map[string]any{"temperature": 21}),
	}, genai.RoleUser))
	if got, err = client.Models.GenerateContent(t.Context(), "m", contents, config); err != nil || got.Text() != "Hello" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestGeminiSDKCountAndEmbed(t *testing.T) {
	t.Parallel()
	count := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:countTokens", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, "application/json", `{"totalTokens":14}`)
	}))
	counted, err := geminiSDK(t, count, "", goodKey).Models.CountTokens(t.Context(), "m", genai.Text("hi"), nil)
	if err != nil || counted.TotalTokens != 14 {
		t.Errorf("got %+v, %v", counted, err)
	}
	// The SDK embeds through the batch, and names the model in each request.
	embed := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:batchEmbedContents",
		func(w http.ResponseWriter, r *http.Request) {
			body, _ := bodyOf(t, r)
			requests, _ := body["requests"].([]any)
			for _, request := range requests {
				if one, _ := request.(map[string]any); one["model"] != "models/up" {
					t.Errorf("got %v, want the upstream's name", one)
				}
			}
			answer(w, 200, "application/json", `{"embeddings":[{"values":[0.5]},{"values":[0.25]}]}`)
		}))
	embedded, err := geminiSDK(t, embed, "", goodKey).Models.EmbedContent(t.Context(), "m",
		[]*genai.Content{genai.NewContentFromText("a", genai.RoleUser), genai.NewContentFromText("b", genai.RoleUser)}, nil)
	if err != nil || len(embedded.Embeddings) != 2 || embedded.Embeddings[1].Values[0] != 0.25 {
		t.Errorf("got %+v, %v", embedded, err)
	}
	single := vendorGateway(t, "gemini", geminiUpstream(t, "/v1beta/models/up:embedContent", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, "application/json", `{"embedding":{"values":[0.5]}}`)
	}))
	rec := single.do(t, request("POST", "/v1beta/models/m:embedContent", `{"model":"models/m","content":{"parts":[{"text":"a"}]}}`))
	if rec.Code != 200 || rec.Body.String() != `{"embedding":{"values":[0.5]}}` {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestGeminiNames: what a body repeats of the model's name goes upstream as the upstream's.
func TestGeminiNames(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ verb, body, want, param string }{
		{"embedContent", `{"model":"models/m","content":{}}`, `{"model":"models/up","content":{}}`, ""},
		{"embedContent", `{"content":{}, "model" : "m" }`, `{"content":{}, "model" : "up" }`, ""},
		{"embedContent", `{"model":"models\/m","content":{}}`, `{"model":"models\/up","content":{}}`, ""},
		{"embedContent", `{"model":null,"content":{}}`, `{"model":null,"content":{}}`, ""},
		{"embedContent", `{"model":"models/x","content":{}}`, "", "model"},
		{
			"batchEmbedContents", `{"requests":[ {"content":{},"model":"models/m"},{"model":"models/m","content":{}} ,{"content":{}}]}`,
			`{"requests":[ {"content":{},"model":"models/up"},{"model":"models/up","content":{}} ,{"content":{}}]}`, "",
		},
		{"batchEmbedContents", `{"requests":[{"model":"models/m","content":{}},{"model":"models/x","content":{}}]}`, "", "requests.model"},
		{"batchEmbedContents", `{"requests":[]}`, `{"requests":[]}`, ""},
		{
			"countTokens", `{"generateContentRequest":{"contents":[],"model":"models/m"}}`,
			`{"generateContentRequest":{"contents":[],"model":"models/up"}}`, "",
		},
		{"countTokens", `{"generateContentRequest":{"model":"models/x"}}`, "", "generateContentRequest.model"},
		{
			"generateContent", `{"contents":[{"role":null,"parts":[{"text":"a","x":1.00}]}],"x":{"model":"models/m"}}`,
			`{"contents":[{"role":null,"parts":[{"text":"a","x":1.00}]}],"x":{"model":"models/m"}}`, "",
		},
	} {
		got := ""
		g := vendorGateway(t, "gemini", func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			got = string(raw)
			answer(w, 200, "application/json", `{}`)
		})
		rec := g.do(t, request("POST", "/v1beta/models/m:"+test.verb, test.body))
		if got != test.want || test.param != "" && (rec.Code != 400 || !strings.Contains(rec.Body.String(), "'"+test.param+"'")) {
			t.Errorf("%s: sent %s, got %d %s, want %s", test.body, got, rec.Code, rec.Body, test.want)
		}
	}
}

func TestGeminiSDKErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, model, key, reply string
		upstream                int
		config                  *genai.GenerateContentConfig
		code                    int
		status, says            string
	}{
		{name: "wrong key", key: "sk-wrong", code: 401, status: "UNAUTHENTICATED"},
		{name: "unknown model", model: "none", code: 404, status: "NOT_FOUND", says: "none"},
		{
			name: "bad enum", config: &genai.GenerateContentConfig{ResponseModalities: []string{"SMELL"}}, code: 400, status: "INVALID_ARGUMENT",
			says: "generationConfig.responseModalities[0]",
		},
		{
			name: "their 400", upstream: 400, reply: `{"error":{"code":400,"message":"Unable to process input image","status":"INVALID_ARGUMENT"}}`,
			code: 400, status: "INVALID_ARGUMENT", says: "input image",
		},
		{
			name: "our key", upstream: 400, reply: `{"error":{"code":400,"message":"bad key","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`,
			code: 502, status: "INTERNAL",
		},
		{
			name: "overloaded", upstream: 503, reply: `{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}`, code: 503,
			status: "UNAVAILABLE",
		},
		{
			name: "rate", upstream: 429, reply: `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`, code: 429,
			status: "RESOURCE_EXHAUSTED",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := vendorGateway(t, "gemini", func(w http.ResponseWriter, _ *http.Request) {
				answer(w, test.upstream, "application/json", test.reply)
			})
			model, key := test.model, test.key
			if model == "" {
				model = "m"
			}
			if key == "" {
				key = goodKey
			}
			_, err := geminiSDK(t, g, "", key).Models.GenerateContent(t.Context(), model, genai.Text("hi"), test.config)
			var failed genai.APIError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, want an error of the SDK", err)
			}
			if failed.Code != test.code || failed.Status != test.status || !strings.Contains(failed.Message, test.says) {
				t.Errorf("got %+v", failed)
			}
		})
	}
}

// TestGeminiRoutes: what no verb is, is nothing.
func TestGeminiRoutes(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "gemini", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "application/json", `{}`) })
	for _, test := range []struct {
		path, key string
		status    int
		says      string
	}{
		{"/v1beta/models/m:fly", goodKey, 404, `"status":"NOT_FOUND"`},
		{"/v1/models/m:fly", goodKey, 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/m", goodKey, 405, `"status":"INVALID_ARGUMENT"`},
		{"/v1beta/models/:generateContent", goodKey, 400, `"status":"INVALID_ARGUMENT"`},
		{"/v1beta/models/m:generateContent", "", 401, `"status":"UNAUTHENTICATED"`},
		{"/v1beta/models/org%2Fm%3A70b:generateContent", goodKey, 200, `{}`},
		{"/v1beta/models/org/m:70b%3AgenerateContent", goodKey, 200, `{}`},
	} {
		key := test.key
		if key != "" {
			key = "Bearer " + key
		}
		rec := g.do(t, request("POST", test.path, geminiBody, "Authorization", key))
		if rec.Code != test.status || !strings.Contains(rec.Body.String(), test.says) {
			t.Errorf("%s: got %d %s, want %d %s", test.path, rec.Code, rec.Body, test.status, test.says)
		}
	}
}

func TestGeminiSDKModels(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "gemini", nil)
	for _, version := range []string{"v1beta", "v1"} {
		client := geminiSDK(t, g, version, goodKey)
		var names []string
		for model, err := range client.Models.All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, model.Name)
			want := []string{"generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"}
			if !slices.Equal(model.SupportedActions, want) {
				t.Errorf("got %v, want %v", model.SupportedActions, want)
			}
		}
		if got := strings.Join(names, " "); got != "models/m models/org/m:70b" {
			t.Errorf("%s: got %s", version, got)
		}
		one, err := client.Models.Get(t.Context(), "org/m:70b", nil)
		if err != nil || one.Name != "models/org/m:70b" {
			t.Errorf("%s: got %+v, %v", version, one, err)
		}
		var missing genai.APIError
		if _, err := client.Models.Get(t.Context(), "none", nil); !errors.As(err, &missing) || missing.Status != "NOT_FOUND" {
			t.Errorf("%s: got %v, want NOT_FOUND", version, err)
		}
	}
}
