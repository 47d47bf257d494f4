package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"modelrelay/dev/e2e/stack"
)

// openai is the unmodified SDK of the OpenAI format.
func (f *formats) openai(options ...option.RequestOption) openai.Client {
	return f.SDK(append([]option.RequestOption{option.WithHTTPClient(f.http), option.WithMaxRetries(0)}, options...)...)
}

func chatOf(model string, parts ...openai.ChatCompletionContentPartUnionParam) openai.ChatCompletionNewParams {
	parts = append(parts, openai.TextContentPart("Where is the lighthouse?"))
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}}
}

// drain reads a stream of an SDK to its end.
func drain[T any](t *testing.T, stream *ssestream.Stream[T]) (events []T) {
	t.Helper()
	defer stream.Close()
	for stream.Next() {
		events = append(events, stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Errorf("stream: %v", err)
	}
	return events
}

func testOpenAI(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	sdk := f.openai()
	t.Run("chat", func(t *testing.T) { f.chat(t, sdk) })
	t.Run("tools", func(t *testing.T) { f.chatTools(t, sdk) })
	t.Run("vision", func(t *testing.T) {
		seen := picture()
		answer, err := sdk.Chat.Completions.New(t.Context(), chatOf("gpt-4o",
			openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: dataURL(seen), Detail: "high"})))
		if err != nil || !strings.Contains(answer.Choices[0].Message.Content, "lighthouse") {
			t.Fatalf("got %+v, %v", answer, err)
		}
		if got := f.passed(t, "chat", "gpt-4o"); got.Size < len(seen)*4/3 {
			t.Errorf("the upstream got %d bytes", got.Size)
		}
	})
	t.Run("responses", func(t *testing.T) { f.responses(t, sdk) })
	t.Run("embeddings", func(t *testing.T) { f.embeddings(t, sdk) })
	t.Run("completions", func(t *testing.T) { f.completions(t, sdk) })
	t.Run("moderations", func(t *testing.T) {
		for _, model := range []string{"", "omni-moderation-latest"} {
			answer, err := sdk.Moderations.New(t.Context(), openai.ModerationNewParams{
				Model: model, Input: openai.ModerationNewParamsInputUnion{OfStringArray: []string{"violence at the lighthouse", "peace"}},
			})
			if err != nil || len(answer.Results) != 2 || !answer.Results[0].Categories.Violence || answer.Results[1].Flagged {
				t.Fatalf("got %+v, %v", answer, err)
			}
			if model == "" {
				f.passed(t, "moderations", "omni-moderation-latest", "{", `{"model":"omni-moderation-latest",`)
			} else {
				f.passed(t, "moderations", model)
			}
		}
	})
	t.Run("rerank", func(t *testing.T) {
		var answer struct {
			Results []struct {
				Index    int             `json:"index"`
				Document json.RawMessage `json:"document"`
			} `json:"results"`
		}
		err := sdk.Post(t.Context(), "rerank", map[string]any{
			"model": "rerank-v3.5", "query": "lighthouse keeper", "top_n": 2, "return_documents": true,
			"documents": []any{"a harbour", map[string]string{"text": "the keeper of the lighthouse"}, "a lighthouse"},
		}, &answer)
		if err != nil || len(answer.Results) != 2 || answer.Results[0].Index != 1 || answer.Results[1].Index != 2 {
			t.Fatalf("got %+v, %v", answer, err)
		}
		f.passed(t, "rerank", "rerank-v3.5")
	})
	t.Run("models", func(t *testing.T) {
		pages := sdk.Models.ListAutoPaging(t.Context())
		var names []string
		for pages.Next() {
			names = append(names, pages.Current().ID)
		}
		for _, want := range []string{"gpt-4o", "mapped", "org/llama:70b", "claude-sonnet-4-5", "gemini-2.5-flash"} {
			if !slices.Contains(names, want) {
				t.Errorf("%s is missing in %v, %v", want, names, pages.Err())
			}
		}
		one, err := sdk.Models.Get(t.Context(), "org/llama:70b")
		if err != nil || one.ID != "org/llama:70b" || one.Created == 0 {
			t.Errorf("got %+v, %v", one, err)
		}
		if _, err := sdk.Models.Get(t.Context(), "gpt-4o-mini"); stack.ErrorStatus(err) != http.StatusNotFound {
			t.Errorf("an upstream's name: got %v, want 404", err)
		}
	})
}

func (f *formats) chat(t *testing.T, sdk openai.Client) {
	t.Helper()
	for model, upstream := range map[string]string{"gpt-4o": "gpt-4o", "mapped": "gpt-4o-mini", "org/llama:70b": "org/llama:70b"} {
		params := chatOf(model)
		params.Temperature, params.Seed = openai.Float(0.25), openai.Int(7)
		var own []option.RequestOption
		if model == upstream && model != "gpt-4o" { // the vendor itself refuses what it does not know
			params.ReasoningEffort = openai.ReasoningEffortMax
			own = append(own, option.WithJSONSet("own_field", json.RawMessage(`1.50`)))
		}
		answer, err := sdk.Chat.Completions.New(t.Context(), params, own...)
		if err != nil || answer.Choices[0].Message.Content != "You said: Where is the lighthouse?" || answer.Usage.TotalTokens == 0 {
			t.Fatalf("%s: got %+v, %v", model, answer, err)
		}
		f.passed(t, "chat", upstream, `"model":"`+model+`"`, `"model":"`+upstream+`"`)
	}
	for _, asks := range []bool{false, true} {
		params := chatOf("gpt-4o")
		if asks {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		stream := sdk.Chat.Completions.NewStreaming(t.Context(), params)
		var whole openai.ChatCompletionAccumulator
		for _, chunk := range drain(t, stream) {
			if !whole.AddChunk(chunk) {
				t.Errorf("a chunk does not fit: %s", chunk.RawJSON())
			}
		}
		if got := whole.Choices[0].Message.Content; got != "You said: Where is the lighthouse?" || (whole.Usage.TotalTokens > 0) != asks {
			t.Errorf("asks %v: got %q, usage %d", asks, got, whole.Usage.TotalTokens)
		}
		f.passedAsking(t, "chat", "gpt-4o")
	}
}

func (f *formats) chatTools(t *testing.T, sdk openai.Client) {
	t.Helper()
	params := chatOf("gpt-4o")
	params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
		Name: "look", Parameters: map[string]any{"type": "object", "properties": map[string]any{"echo": map[string]string{"type": "string"}}},
	})}
	params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "look"})
	answer, err := sdk.Chat.Completions.New(t.Context(), params)
	if err != nil || len(answer.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "chat", "gpt-4o")
	call := answer.Choices[0].Message.ToolCalls[0]
	const arguments = `{"echo":"Where is the lighthouse?"}`
	if call.Function.Name != "look" || call.Function.Arguments != arguments {
		t.Errorf("got the call %+v", call)
	}
	var whole openai.ChatCompletionAccumulator
	for _, chunk := range drain(t, sdk.Chat.Completions.NewStreaming(t.Context(), params)) {
		whole.AddChunk(chunk)
	}
	if calls := whole.Choices[0].Message.ToolCalls; len(calls) != 1 || calls[0].Function.Arguments != arguments {
		t.Errorf("streamed: got the calls %+v", calls)
	}
	params.Messages = append(params.Messages, answer.Choices[0].Message.ToParam(), openai.ToolMessage("by the harbour", call.ID))
	params.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{}
	answer, err = sdk.Chat.Completions.New(t.Context(), params)
	if err != nil || answer.Choices[0].Message.Content != "The tool said: by the harbour" {
		t.Errorf("got %+v, %v", answer, err)
	}
	f.passed(t, "chat", "gpt-4o")
}

func (f *formats) responses(t *testing.T, sdk openai.Client) {
	t.Helper()
	params := responses.ResponseNewParams{
		Model: "mapped", Instructions: openai.String("Be short."),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Where is the lighthouse?")},
	}
	answer, err := sdk.Responses.New(t.Context(), params)
	if err != nil || answer.OutputText() != "You said: Where is the lighthouse?" || answer.Usage.OutputTokens == 0 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "responses", "gpt-4o-mini", `"mapped"`, `"gpt-4o-mini"`)
	events := drain(t, sdk.Responses.NewStreaming(t.Context(), params))
	if last := events[len(events)-1]; last.Type != "response.completed" || last.Response.OutputText() != answer.OutputText() ||
		last.SequenceNumber != int64(len(events)-1) {
		t.Errorf("got %d events, the last %s", len(events), last.RawJSON())
	}
	f.passed(t, "responses", "gpt-4o-mini", `"mapped"`, `"gpt-4o-mini"`)

	params.Model = "gpt-4o"
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("look",
		map[string]any{"type": "object", "properties": map[string]any{}}, false)}
	question := responses.ResponseInputMessageContentListParam{
		responses.ResponseInputContentParamOfInputText("Where is the lighthouse?"),
		{OfInputImage: &responses.ResponseInputImageParam{ImageURL: openai.String(dataURL(picture())), Detail: "auto"}},
	}
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser),
	}}
	if answer, err = sdk.Responses.New(t.Context(), params); err != nil || len(answer.Output) != 1 ||
		answer.Output[0].Type != "function_call" {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "responses", "gpt-4o")

	compacted, err := sdk.Responses.Compact(t.Context(), responses.ResponseCompactParams{
		Model: "gpt-4o", Input: responses.ResponseCompactParamsInputUnion{OfString: openai.String("a long talk of the lighthouse")},
	})
	if err != nil || len(compacted.Output) != 1 || compacted.Output[0].Type != "compaction" {
		t.Errorf("got %+v, %v", compacted, err)
	}
	f.passed(t, "responses.compact", "gpt-4o")
}

func (f *formats) embeddings(t *testing.T, sdk openai.Client) {
	t.Helper()
	params := openai.EmbeddingNewParams{
		Model: "text-embedding-3-small", Dimensions: openai.Int(3), EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
		Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a lighthouse", "a harbour"}},
	}
	answer, err := sdk.Embeddings.New(t.Context(), params)
	if err != nil || len(answer.Data) != 2 || len(answer.Data[1].Embedding) != 3 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "embeddings", "text-embedding-3-small")

	params.EncodingFormat = openai.EmbeddingNewParamsEncodingFormatBase64 // this SDK shows base64, it does not decode it
	var raw struct {
		Data []struct{ Embedding string }
	}
	if err := sdk.Post(t.Context(), "embeddings", params, &raw); err != nil || len(raw.Data) != 2 || len(raw.Data[0].Embedding) != 16 {
		t.Errorf("got %+v, %v", raw, err)
	}
	f.passed(t, "embeddings", "text-embedding-3-small")

	const member = `{"model":"org/llama:70b",`
	var engine openai.CreateEmbeddingResponse
	body := map[string]any{"input": "a lighthouse", "encoding_format": "float", "dimensions": 2}
	if err := sdk.Post(t.Context(), "engines/org%2Fllama:70b/embeddings", body, &engine); err != nil || len(engine.Data[0].Embedding) != 2 {
		t.Errorf("got %+v, %v", engine, err)
	}
	f.passed(t, "embeddings", "org/llama:70b", "{", member)
}

func (f *formats) completions(t *testing.T, sdk openai.Client) {
	t.Helper()
	params := openai.CompletionNewParams{
		Model: "gpt-3.5-turbo-instruct", Suffix: openai.String("!"), Echo: openai.Bool(true),
		Prompt: openai.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"A lighthouse."}},
	}
	const want = "A lighthouse.You said: A lighthouse.!"
	answer, err := sdk.Completions.New(t.Context(), params)
	if err != nil || answer.Choices[0].Text != want || answer.Usage.TotalTokens == 0 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "completions", "gpt-3.5-turbo-instruct")
	for _, asks := range []bool{false, true} {
		if asks {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		text, usage := "", int64(0)
		for _, chunk := range drain(t, sdk.Completions.NewStreaming(t.Context(), params)) {
			usage += chunk.Usage.TotalTokens
			for _, choice := range chunk.Choices {
				text += choice.Text
			}
		}
		if text != want || (usage > 0) != asks {
			t.Errorf("asks %v: got %q, usage %d", asks, text, usage)
		}
		f.passedAsking(t, "completions", "gpt-3.5-turbo-instruct")
	}
}
