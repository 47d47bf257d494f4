package e2e_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"modelrelay/dev/e2e/stack"
)

// genai is the unmodified SDK of format B; version "" is its own choice of the path.
func (f *formats) genai(t *testing.T, version, key string) *genai.Client {
	t.Helper()
	sdk, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: f.http, HTTPOptions: genai.HTTPOptions{BaseURL: f.URL(), APIVersion: version},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sdk
}

func testGemini(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	for _, version := range []string{"v1beta", "v1"} {
		sdk := f.genai(t, version, stack.Token)
		t.Run(version+" generate", func(t *testing.T) { f.generate(t, sdk) })
		t.Run(version+" count and embed", func(t *testing.T) { f.countAndEmbed(t, sdk, version) })
		t.Run(version+" models", func(t *testing.T) {
			var names []string
			for model, err := range sdk.Models.All(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, model.Name)
			}
			if !slices.Contains(names, "models/gemini-mapped") || !slices.Contains(names, "models/gpt-4o") {
				t.Errorf("got %v", names)
			}
			one, err := sdk.Models.Get(t.Context(), "gemini-2.5-flash", nil)
			if err != nil || one.Name != "models/gemini-2.5-flash" || !slices.Contains(one.SupportedActions, "generateContent") {
				t.Errorf("got %+v, %v", one, err)
			}
		})
	}
	sdk := f.genai(t, "", stack.Token)
	t.Run("tools and vision", func(t *testing.T) { f.geminiTools(t, sdk) })
	t.Run("images", func(t *testing.T) {
		answer, err := sdk.Models.GenerateContent(t.Context(), "gemini-2.5-flash", genai.Text("a lighthouse"), &genai.GenerateContentConfig{
			ResponseModalities: []string{"TEXT", "IMAGE"}, ImageConfig: &genai.ImageConfig{AspectRatio: "16:9", ImageSize: "1K"},
		})
		if err != nil || len(answer.Candidates[0].Content.Parts) != 2 ||
			!bytes.HasPrefix(answer.Candidates[0].Content.Parts[1].InlineData.Data, []byte("\x89PNG")) {
			t.Fatalf("got %+v, %v", answer, err)
		}
		f.passed(t, "generate", "gemini-2.5-flash")
	})
	t.Run("errors", func(t *testing.T) { f.geminiErrors(t, sdk) })
}

func (f *formats) generate(t *testing.T, sdk *genai.Client) {
	t.Helper()
	ask := genai.Text("Where is the lighthouse?")
	answer, err := sdk.Models.GenerateContent(t.Context(), "gemini-mapped", ask, &genai.GenerateContentConfig{Temperature: new(float32(0.25))})
	if err != nil || answer.Text() != said || answer.UsageMetadata.CandidatesTokenCount == 0 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "generate", "gemini-2.5-pro")
	text, chunks := "", 0
	for chunk, err := range sdk.Models.GenerateContentStream(t.Context(), "gemini-mapped", ask, nil) {
		if err != nil {
			t.Fatal(err)
		}
		text += chunk.Text()
		chunks++
	}
	if text != said || chunks < 3 {
		t.Errorf("streamed: got %q in %d chunks", text, chunks)
	}
	f.passed(t, "stream", "gemini-2.5-pro")
}

func (f *formats) countAndEmbed(t *testing.T, sdk *genai.Client, version string) {
	t.Helper()
	counted, err := sdk.Models.CountTokens(t.Context(), "gemini-2.5-flash", genai.Text("Where is the lighthouse?"), nil)
	if err != nil || counted.TotalTokens == 0 {
		t.Fatalf("got %+v, %v", counted, err)
	}
	f.passed(t, "count_tokens", "gemini-2.5-flash")
	embedded, err := sdk.Models.EmbedContent(t.Context(), "gemini-embedding-001",
		[]*genai.Content{genai.NewContentFromText("a lighthouse", genai.RoleUser), genai.NewContentFromText("a harbour", genai.RoleUser)},
		&genai.EmbedContentConfig{OutputDimensionality: new(int32(3))})
	if err != nil || len(embedded.Embeddings) != 2 || len(embedded.Embeddings[1].Values) != 3 {
		t.Fatalf("got %+v, %v", embedded, err)
	}
	f.passed(t, "embed.batch", "gemini-embedding-001")

	// The SDK embeds through the batch alone.
	const body = `{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a lighthouse"}]},"outputDimensionality":3}`
	resp, err := f.http.Post(f.URL()+"/"+version+"/models/gemini-embedding-001:embedContent?key="+stack.Token, "application/json",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	single, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.HasPrefix(single, []byte(`{"embedding":{"values":[`)) {
		t.Errorf("got %d %s, %v", resp.StatusCode, single, err)
	}
	f.passed(t, "embed", "gemini-embedding-001")
}

func (f *formats) geminiTools(t *testing.T, sdk *genai.Client) {
	t.Helper()
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
		Name: "look", Parameters: &genai.Schema{Type: genai.TypeObject, Properties: map[string]*genai.Schema{"echo": {Type: genai.TypeString}}},
	}}}}}
	contents := []*genai.Content{genai.NewContentFromParts([]*genai.Part{
		genai.NewPartFromBytes(picture(), "image/png"), genai.NewPartFromText("Where is the lighthouse?"),
	}, genai.RoleUser)}
	answer, err := sdk.Models.GenerateContent(t.Context(), "gemini-2.5-flash", contents, config)
	if err != nil || len(answer.FunctionCalls()) != 1 || answer.FunctionCalls()[0].Args["echo"] != "[image/png]Where is the lighthouse?" {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "generate", "gemini-2.5-flash")
	contents = append(contents, answer.Candidates[0].Content, genai.NewContentFromParts([]*genai.Part{
		genai.NewPartFromFunctionResponse("look", map[string]any{"place": "by the harbour"}),
	}, genai.RoleUser))
	calls := ""
	for chunk, err := range sdk.Models.GenerateContentStream(t.Context(), "gemini-2.5-flash", contents, config) {
		if err != nil {
			t.Fatal(err)
		}
		calls += chunk.Text()
	}
	if !strings.HasPrefix(calls, "The tool said: ") || !strings.Contains(calls, "by the harbour") {
		t.Errorf("got %q", calls)
	}
	f.passed(t, "stream", "gemini-2.5-flash")
}

func (f *formats) geminiErrors(t *testing.T, sdk *genai.Client) {
	t.Helper()
	for _, test := range []struct {
		sdk    *genai.Client
		model  string
		config *genai.GenerateContentConfig
		code   int
		status string
	}{
		{sdk: f.genai(t, "", "sk-wrong"), model: "gemini-2.5-flash", code: 401, status: "UNAUTHENTICATED"},
		{model: "nobody", code: 404, status: "NOT_FOUND"},
		{model: "jimeng-fast", code: 404, status: "NOT_FOUND"}, // its channel cannot serve the operation
		{
			model: "gemini-2.5-flash", code: 400, status: "INVALID_ARGUMENT",
			config: &genai.GenerateContentConfig{ResponseModalities: []string{"SMELL"}},
		},
		{model: "gemini-says-400", code: 400, status: "INVALID_ARGUMENT"},
		{model: "gemini-says-401", code: 502, status: "INTERNAL"},
		{model: "gemini-says-429", code: 429, status: "RESOURCE_EXHAUSTED"},
		{model: "gemini-says-500", code: 502, status: "INTERNAL"},
		{model: "gemini-says-503", code: 503, status: "UNAVAILABLE"},
		{model: "gemini-says-html", code: 502, status: "INTERNAL"},
	} {
		if test.sdk == nil {
			test.sdk = sdk
		}
		_, err := test.sdk.Models.GenerateContent(t.Context(), test.model, genai.Text("a lighthouse"), test.config)
		var failed genai.APIError
		if !errors.As(err, &failed) || failed.Code != test.code || failed.Status != test.status || failed.Message == "" {
			t.Errorf("%s: got %v, want %d %s", test.model, err, test.code, test.status)
		}
	}
	chunks := 0
	var last error
	for _, err := range sdk.Models.GenerateContentStream(t.Context(), "gemini-cut", genai.Text("a lighthouse"), nil) {
		if last = err; err == nil {
			chunks++
		}
	}
	var failed genai.APIError
	if chunks != 2 || !errors.As(last, &failed) || failed.Code != 502 || failed.Status != "INTERNAL" {
		t.Errorf("cut: got %d chunks and %v", chunks, last)
	}
}
