package responses_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
	"modelrelay/providers/translate/translatetest"
)

// script answers the first call of a client with events, each further one with a text, and keeps the prompts it was asked.
type script struct {
	t       *testing.T
	first   []form.Event
	prompts []*form.Prompt
}

// ServeHTTP implements http.Handler.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	call := &providers.Call{Model: "m", Content: providers.Content{Body: body}, Stream: bytes.Contains(body, []byte(`"stream":true`))}
	var loss form.Loss
	p, ask, fault := responses.Read(call, &loss)
	if fault != nil || loss.Dropped != nil || loss.Changed != nil {
		s.t.Errorf("got %v, %+v", fault, loss)
	}
	ask.Declared, ask.Custom = form.Declared(p.Tools)
	events := answer(form.StopEnd, text(0, "it rains"))
	if s.prompts = append(s.prompts, p); len(s.prompts) == 1 {
		events = s.first
	}
	wire := written(ask, events...)
	w.Header().Set("Content-Type", "application/json")
	if call.Stream {
		translatetest.CheckResponses(s.t, wire)
		w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = w.Write(wire)
}

// TestSDK: OpenAI's own SDK accepts an answer and sends it back in the next call, with its state.
func TestSDK(t *testing.T) {
	t.Parallel()
	for name, streamed := range map[string]bool{"streamed": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, first: answer(form.StopCalls, thought(0, "hm"), state(0, form.StateAnthropic, "sig"), text(1, "I look."),
				state(2, form.StateGemini, "g"), call(2, "c1", "weather", `{"in":`, `"Oslo"}`), call(3, "c2", "patch", `{"input":"a\nb"}`))}
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			client := openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL(server.URL+"/v1"))
			params := sdk.ResponseNewParams{
				Model: "m", Instructions: param.NewOpt("be brief"), Store: param.NewOpt(false),
				Include:   []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent},
				Reasoning: shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto},
				Tools: []sdk.ToolUnionParam{
					sdk.ToolParamOfFunction("weather", map[string]any{"type": "object"}, true),
					{OfCustom: &sdk.CustomToolParam{Name: "patch"}},
				},
			}
			params.Input.OfInputItemList = sdk.ResponseInputParam{sdk.ResponseInputItemParamOfMessage("weather?", sdk.EasyInputMessageRoleUser)}
			got := ask(t, client, params, streamed)
			if got.Status != sdk.ResponseStatusCompleted || got.OutputText() != "I look." || got.Usage.InputTokens != 10 || got.Model != "m" {
				t.Errorf("got %s", got.RawJSON())
			}
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, again(t, got.Output)...)
			params.Input.OfInputItemList = append(params.Input.OfInputItemList, sdk.ResponseInputItemUnionParam{
				OfFunctionCallOutput: &sdk.ResponseInputItemFunctionCallOutputParam{
					CallID: param.NewOpt("c1"), Output: sdk.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: param.NewOpt("rain")},
				},
			})
			if got := ask(t, client, params, streamed); got.OutputText() != "it rains" {
				t.Errorf("got %s", got.RawJSON())
			}
			want := `instructions: text "be brief" at instructions
user text "weather?" at input[0].content
--
assistant thought  state a:sig at input[1]
assistant text "I look." at input[2].content[0]
assistant call c1 weather {"in":"Oslo"} state g:g at input[4]
assistant call c2 patch {"input":"a\nb"} custom at input[5]
--
user result c1 [text "rain" at input[6].output] at input[6]
--
tool weather  schema {"type":"object"} strict true at tools[0]
tool patch  custom  at tools[1]
thinking 2 "low" show true
`
			if got := said(s.prompts[1]); got != want {
				t.Errorf("the second call has\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func ask(t *testing.T, client openai.Client, params sdk.ResponseNewParams, streamed bool) sdk.Response {
	t.Helper()
	if !streamed {
		got, err := client.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return *got
	}
	stream := client.Responses.NewStreaming(t.Context(), params)
	var last sdk.Response
	for stream.Next() {
		if event := stream.Current(); event.Type == "response.completed" {
			last = event.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return last
}

// again makes input of what an answer gave.
func again(t *testing.T, output []sdk.ResponseOutputItemUnion) (input sdk.ResponseInputParam) {
	t.Helper()
	for _, item := range output {
		var given sdk.ResponseInputItemUnionParam
		switch item := item.AsAny().(type) {
		case sdk.ResponseOutputMessage:
			p := item.ToParam()
			given.OfOutputMessage = &p
		case sdk.ResponseReasoningItem:
			p := item.ToParam()
			given.OfReasoning = &p
		case sdk.ResponseFunctionToolCall:
			p := item.ToParam()
			given.OfFunctionCall = &p
		case sdk.ResponseCustomToolCall:
			p := item.ToParam()
			given.OfCustomToolCall = &p
		default:
			t.Fatalf("an item of %T", item)
		}
		if _, err := json.Marshal(given); err != nil {
			t.Fatal(err)
		}
		input = append(input, given)
	}
	return input
}
