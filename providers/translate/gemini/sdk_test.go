package gemini_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/translatetest"
)

// script answers each call of a client with the events of one answer, and keeps the prompts it was asked.
type script struct {
	t       *testing.T
	answers [][]form.Event
	prompts []*form.Prompt
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	var loss form.Loss
	call := &providers.Call{
		Model: "m", Content: providers.Content{Body: body},
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent},
	}
	if strings.HasSuffix(r.URL.Path, ":countTokens") {
		p, _, fault := gemini.ReadCount(call, &loss)
		s.keep(p, fault, loss)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"totalTokens":42}`))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, ":streamGenerateContent") {
		w.Header().Set("Content-Type", "text/event-stream")
		call.Endpoint.Operation, call.Stream = providers.StreamContent, true
	}
	p, ask, fault := gemini.Read(call, &loss)
	s.keep(p, fault, loss)
	answer := answerOf(ask, s.answers[len(s.prompts)-1]...)
	translatetest.CheckGemini(s.t, answer)
	_, _ = w.Write(answer)
}

func (s *script) keep(p *form.Prompt, fault *providers.Fault, loss form.Loss) {
	if fault != nil || len(loss.Dropped)+len(loss.Changed) > 0 {
		s.t.Errorf("got %v, %+v", fault, loss)
	}
	s.prompts = append(s.prompts, p)
}

func client(t *testing.T, s *script) *genai.Client {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: server.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSDKChat: the vendor's own SDK accepts the writer's output, and the reader accepts what the SDK sends back: thoughts, parallel calls
// with another vendor's state on the first, and their results.
func TestSDKChat(t *testing.T) {
	t.Parallel()
	signed := form.State{Kind: form.StateAnthropic, Data: []byte("sig=="), Text: rawjson.Quote("plan")}
	s := &script{t: t, answers: [][]form.Event{
		slices.Concat([]form.Event{
			{Kind: form.EventStart},
			thought(0, "pl"), thought(0, "an"), state(0, signed), text(1, "I "),
			text(1, "look."),
		},
			call(2, "toolu_1", "weather", `{"city":`, `"Rome"}`), call(3, "toolu_2", "weather", `{"city":"Oslo"}`),
			[]form.Event{counts(form.Counts{Input: 20, Output: 9, Reasoning: 3}), stop(form.StopCalls)}),
		{text(0, "Sunny"), text(0, " both."), counts(form.Counts{Input: 40, Output: 2}), stop(form.StopEnd)},
	}}
	c := client(t, s)
	chat, err := c.Chats.Create(t.Context(), "m", &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("be brief", ""), ThinkingConfig: &genai.ThinkingConfig{IncludeThoughts: true},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "weather", Parameters: &genai.Schema{
				Type:       genai.TypeObject,
				Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString, Nullable: new(true)}},
			},
		}}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls []*genai.FunctionCall
	var said, thoughts string
	var last *genai.GenerateContentResponse
	for chunk, err := range chat.SendMessageStream(t.Context(), genai.Part{Text: "weather?"}) {
		if err != nil {
			t.Fatal(err)
		}
		calls, last = append(calls, chunk.FunctionCalls()...), chunk
		for _, part := range chunk.Candidates[0].Content.Parts {
			if part.Thought {
				thoughts += part.Text
			} else {
				said += part.Text
			}
		}
	}
	if thoughts != "plan" || said != "I look." || len(calls) != 2 || calls[0].ID != "toolu_1" || calls[1].Args["city"] != "Oslo" {
		t.Errorf("got %q, %q and %d calls", thoughts, said, len(calls))
	}
	if usage := last.UsageMetadata; usage == nil || usage.TotalTokenCount != 29 || usage.ThoughtsTokenCount != 3 ||
		usage.CandidatesTokenCount != 6 ||
		last.Candidates[0].FinishReason != genai.FinishReasonStop || last.ModelVersion != "m" {
		t.Errorf("got %+v", last)
	}
	var results []genai.Part
	for _, call := range calls {
		results = append(results, genai.Part{FunctionResponse: &genai.FunctionResponse{
			ID: call.ID, Name: call.Name,
			Response: map[string]any{"output": "sunny"},
		}})
	}
	answer, err := chat.SendMessage(t.Context(), results...)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Text() != "Sunny both." {
		t.Errorf("got %q", answer.Text())
	}
	p := s.prompts[1]
	if got := string(p.Tools[0].Schema); got != `{"properties":{"city":{"type":["string","null"]}},"type":"object"}` {
		t.Errorf("got the schema %s", got)
	}
	want := []string{
		`thought "plan" [a sig==]`, `text "I look."`, `call toolu_1 weather {"city":"Rome"}`, `call toolu_2 weather {"city":"Oslo"}`,
	}
	if got := outline(p.Turns[1].Blocks); !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if got := outline(p.Turns[2].Blocks); len(got) != 2 || got[1] != `result toolu_2 weather {"output":"sunny"} []` {
		t.Errorf("got %q", got)
	}
}

func TestSDKCountsAndFormats(t *testing.T) {
	t.Parallel()
	s := &script{t: t, answers: [][]form.Event{nil, {text(0, `{"a":1}`), stop(form.StopMaxTokens)}}}
	c := client(t, s)
	counted, err := c.Models.CountTokens(t.Context(), "m", genai.Text("hi"), nil)
	if err != nil || counted.TotalTokens != 42 {
		t.Errorf("got %+v, %v", counted, err)
	}
	answer, err := c.Models.GenerateContent(t.Context(), "m", genai.Text("hi"), &genai.GenerateContentConfig{
		ResponseMIMEType: "application/json", ResponseSchema: &genai.Schema{
			Type: genai.TypeArray, MinItems: new(int64(1)),
			Items: &genai.Schema{Type: genai.TypeInteger},
		},
		ThinkingConfig: &genai.ThinkingConfig{ThinkingBudget: new(int32(0))}, StopSequences: []string{"x"}, Temperature: new(float32(0)),
	})
	if err != nil || answer.Text() != `{"a":1}` || answer.Candidates[0].FinishReason != genai.FinishReasonMaxTokens {
		t.Errorf("got %+v, %v", answer, err)
	}
	p := s.prompts[1]
	if string(p.Output.Schema) == "" || p.Thinking.Mode != form.ThinkingOff || string(p.Sampling.Temperature) != "0" ||
		len(p.Limits.Stop) != 1 {
		t.Errorf("got %+v", p)
	}
	var schema struct {
		Type     string
		MinItems int
		Items    struct{ Type string }
	}
	if err := json.Unmarshal(p.Output.Schema, &schema); err != nil || schema.Type != "array" || schema.MinItems != 1 ||
		schema.Items.Type != "integer" {
		t.Errorf("got %s, %v", p.Output.Schema, err)
	}
}
