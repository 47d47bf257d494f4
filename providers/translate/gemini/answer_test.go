package gemini_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

// shown writes events a line each, so that they can be compared. Ids that the gateway made are "made".
func shown(events []form.Event) (lines []string) {
	for _, e := range events {
		at := fmt.Sprintf("%d/%d", e.Choice, e.Block)
		switch e.Kind {
		case form.EventStart:
			lines = append(lines, "start")
		case form.EventText:
			lines = append(lines, "text "+at+" "+string(e.Text)+string(e.Logprobs))
		case form.EventThought:
			lines = append(lines, "thought "+at+" "+string(e.Text))
		case form.EventRefusal:
			lines = append(lines, "refusal "+at+" "+string(e.Text))
		case form.EventState:
			lines = append(lines, fmt.Sprintf("state %s %c %s", at, e.State.Kind, e.State.Data))
		case form.EventCallBegin:
			id := e.Call.ID
			if strings.HasPrefix(id, "call_") && len(id) == len("call_")+22 {
				id = "made"
			}
			lines = append(lines, "call "+at+" "+id+" "+e.Call.Name)
		case form.EventCallArgs:
			lines = append(lines, "args "+at+" "+e.Text.String())
		case form.EventCallEnd:
			lines = append(lines, "end "+at)
		case form.EventMedia:
			lines = append(lines, "media "+at)
		case form.EventStop:
			lines = append(lines, fmt.Sprintf("stop %d %d", e.Choice, e.Stop.Reason))
		case form.EventCounts:
			lines = append(lines, fmt.Sprintf("counts %+v", *e.Counts))
		case form.EventFailed:
			lines = append(lines, "failed "+string(e.Fault.Kind)+" "+e.Fault.Code+" "+e.Fault.UpstreamMessage)
		case form.EventPing, form.EventEnd:
			lines = append(lines, "?")
		}
	}
	return lines
}

// streamed reads pieces of a stream, each as an event.
func streamed(pieces ...string) []string {
	reader := gemini.NewReader()
	var lines []string
	for _, piece := range pieces {
		lines = append(lines, shown(reader.Event(nil, []byte(piece), nil))...)
	}
	return append(lines, shown(reader.End(nil))...)
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// The shapes are those of GenerateContentResponse in google.golang.org/genai and of the examples on
// https://ai.google.dev/api/generate-content and https://ai.google.dev/gemini-api/docs/thought-signatures.
func TestReadsStreams(t *testing.T) {
	t.Parallel()
	const stop = `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}]}`
	for name, test := range map[string]struct {
		pieces []string
		want   []string
	}{
		"text": {
			pieces: []string{
				`{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4},"modelVersion":"m","responseId":"r"}`,
				`{"candidates":[{"content":{"parts":[{"text":"l\u00f6"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":6}}`,
			},
			want: []string{
				"start", `text 0/0 "Hel"`, "counts {Input:4 Read:0 Write:0 Write1h:0 Output:0 Reasoning:0 AudioIn:0 AudioOut:0}",
				`text 0/0 "l\u00f6"`, "counts {Input:4 Read:0 Write:0 Write1h:0 Output:2 Reasoning:0 AudioIn:0 AudioOut:0}", "stop 0 0",
			},
		},
		"counts": {
			pieces: []string{`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":3,"cachedContentTokenCount":4,
				"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":25,"promptTokensDetails":[{"modality":"TEXT","tokenCount":8},{"modality":"AUDIO","tokenCount":2}],
				"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":1}]}}`},
			want: []string{"start", "counts {Input:13 Read:4 Write:0 Write1h:0 Output:12 Reasoning:7 AudioIn:2 AudioOut:1}", "stop 0 0"},
		},
		// Parallel calls: the first alone is signed. STOP hides the calls.
		"calls": {
			pieces: []string{
				`{"candidates":[{"content":{"parts":[{"text":"plan","thought":true},{"functionCall":{"name":"f","args":{"a": 1.0, "b":[ ]}},"thoughtSignature":"QUJD"},{"functionCall":{"id":"x","name":"default_api:g"}}]}}]}`,
				stop,
			},
			want: []string{
				"start", `thought 0/0 "plan"`, "state 0/1 g QUJD", "call 0/1 made f", `args 0/1 {"a":1.0,"b":[]}`, "end 0/1",
				"call 0/2 x default_api:g", "args 0/2 {}", "end 0/2", "stop 0 3",
			},
		},
		"a signature on a text": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a","thoughtSignature":"QQ=="}]}}]}`, stop},
			want:   []string{"start", "state 0/0 g QQ==", `text 0/0 "a"`, "stop 0 0"},
		},
		"a signature on a later text": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thoughtSignature":"QQ=="}]}}]}`, stop},
			want:   []string{"start", `text 0/0 "a"`, `text 0/0 "b"`, "state 0/0 p QQ==", "stop 0 0"},
		},
		"a text and a call in one part": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a","functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"QQ=="}]}}]}`, stop},
			want:   []string{"start", `text 0/0 "a"`, "state 0/1 g QQ==", "call 0/1 c f", "args 0/1 {}", "end 0/1", "stop 0 3"},
		},
		"a signature in a last empty text": {
			pieces: []string{
				`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"QQ=="}]},"finishReason":"STOP"}]}`,
			},
			want: []string{"start", `text 0/0 "a"`, "state 0/0 p QQ==", "stop 0 0"},
		},
		"a signature on a thought": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a","thought":true,"thoughtSignature":"QQ=="},{"text":"b"}]}}]}`, stop},
			want:   []string{"start", `thought 0/0 "a"`, "state 0/1 g QQ==", `text 0/1 "b"`, "stop 0 0"},
		},
		"parts behind the finish": {
			pieces: []string{stop, `{"candidates":[{"content":{"parts":[{"text":"late"}]}}]}`},
			want:   []string{"start", `text 0/0 "late"`, "stop 0 0"},
		},
		"several candidates": {
			pieces: []string{
				`{"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0},{"content":{"parts":[{"text":"b"}]},"index":1,"finishReason":"MAX_TOKENS"}]}`,
				`{"candidates":[{"content":{"parts":[{"text":"c"}]},"index":0,"finishReason":"STOP"}]}`,
			},
			want: []string{"start", `text 0/0 "a"`, `text 1/0 "b"`, `text 0/0 "c"`, "stop 0 0", "stop 1 2"},
		},
		"a blocked prompt": {
			pieces: []string{`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}`},
			want:   []string{"start", "counts {Input:4 Read:0 Write:0 Write1h:0 Output:0 Reasoning:0 AudioIn:0 AudioOut:0}", "stop 0 5"},
		},
		"a prompt that was rated": {
			pieces: []string{`{"promptFeedback":{"safetyRatings":[{"category":"HARM_CATEGORY_HARASSMENT","probability":"LOW"}]}}`, stop},
			want:   []string{"start", "stop 0 0"},
		},
		"broken": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print("}]}`, stop},
			want:   []string{"start", `text 0/0 "a"`, "failed upstream MALFORMED_FUNCTION_CALL "},
		},
		"broken off": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`},
			want:   []string{"start", `text 0/0 "a"`, "failed upstream  "},
		},
		"nothing at all": {want: []string{"failed upstream  "}},
		"overloaded": {
			pieces: []string{`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`},
			want:   []string{"failed overloaded UNAVAILABLE "},
		},
		"an error in an array": {
			pieces: []string{`[{"error":{"code":400,"message":"Invalid value at 'contents'","status":"INVALID_ARGUMENT"}}]`},
			want:   []string{"failed invalid INVALID_ARGUMENT Invalid value at 'contents'"},
		},
		"an array": {pieces: []string{`[` + stop + `]`}, want: []string{"start", "stop 0 0"}},
		"words":    {pieces: []string{"[DONE]", stop}, want: []string{"start", "stop 0 0"}},
		"media alone": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]},"finishReason":"STOP"}]}`},
			want:   []string{"start", "media 0/0", "stop 0 0"},
		},
		"media with text": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"b"}]},"finishReason":"STOP"}]}`},
			want:   []string{"start", `text 0/0 "a"`, "media 0/1", `text 0/2 "b"`, "stop 0 0"},
		},
		"probabilities": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP","logprobsResult":{"topCandidates":[{"candidates":[{"token":"a","logProbability":-0.5}]}],
				"chosenCandidates":[{"token":"a","tokenId":1,"logProbability":-0.5}]}}]}`},
			want: []string{"start", `text 0/0 "a"[{"token":"a","logprob":-0.5,"bytes":null,"top_logprobs":[{"token":"a","logprob":-0.5,"bytes":null}]}]`, "stop 0 0"},
		},
		"unknown shapes": {
			pieces: []string{`{"candidates":[{"content":{"parts":[{"executableCode":{}},{},7]}},3,{"index":-1},{"index":1000}],"x":1}`, stop},
			want:   []string{"start", "stop 0 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, streamed(test.pieces...), test.want)
			// A document that is the array of the pieces has the same content; its counts are all the last ones.
			if name != "words" && name != "text" && !strings.Contains(name, "array") {
				compare(t, shown(gemini.NewReader().Document(rawjson.Value("["+strings.Join(test.pieces, ",")+"]"), nil)), test.want)
			}
		})
	}
}

// The words are those of FinishReason in google.golang.org/genai; MALFORMED_RESPONSE is on
// https://ai.google.dev/api/generate-content#FinishReason.
func TestReadsFinishReasons(t *testing.T) {
	t.Parallel()
	want := map[string]form.StopReason{
		"STOP": form.StopEnd, "MAX_TOKENS": form.StopMaxTokens, "CONTINUATION": form.StopMaxTokens, "SAFETY": form.StopFiltered,
		"RECITATION": form.StopFiltered, "BLOCKLIST": form.StopFiltered, "PROHIBITED_CONTENT": form.StopFiltered, "SPII": form.StopFiltered,
		"IMAGE_SAFETY": form.StopFiltered, "IMAGE_PROHIBITED_CONTENT": form.StopFiltered, "IMAGE_RECITATION": form.StopFiltered,
		"OTHER": form.StopOther, "LANGUAGE": form.StopOther, "NO_IMAGE": form.StopOther, "FINISH_REASON_UNSPECIFIED": form.StopOther,
		"NEW": form.StopOther,
	}
	for word, reason := range want {
		events := gemini.NewReader().Document(rawjson.Value(`{"candidates":[{"finishReason":"`+word+`"}]}`), nil)
		if got := events[len(events)-1]; got.Kind != form.EventStop || got.Stop.Reason != reason {
			t.Errorf("%s: got %+v, want %d", word, got, reason)
		}
	}
	for _, word := range []string{"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"} {
		events := gemini.NewReader().Document(rawjson.Value(`{"candidates":[{"finishReason":"`+word+`"}]}`), nil)
		if got := events[len(events)-1]; got.Kind != form.EventFailed || got.Fault.Kind != providers.Upstream || !got.Fault.Retryable() {
			t.Errorf("%s: got %+v", word, got)
		}
	}
	// Calls that were cut off are not calls to be made.
	events := gemini.NewReader().Document(rawjson.Value(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"MAX_TOKENS"}]}`), nil)
	if got := events[len(events)-1].Stop.Reason; got != form.StopMaxTokens {
		t.Errorf("got %d", got)
	}
}

// The codes are those of https://ai.google.dev/gemini-api/docs/troubleshooting; see also providers/gemini.
func TestReadsErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]providers.Fault{
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`: {
			Kind: providers.RateLimited, Blame: providers.BlameKey, Accepted: providers.NotAccepted, RetryAfter: 34 * time.Second,
		},
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]}]}}`: {
			Kind: providers.RateLimited, Blame: providers.BlameKey, Key: providers.KeyExhausted, Accepted: providers.NotAccepted,
		},
		`{"error":{"code":503,"status":"UNAVAILABLE"}}`: {Kind: providers.Overloaded, Blame: providers.BlameChannel},
		`{"error":{"code":500,"status":"INTERNAL"}}`:    {Kind: providers.Upstream, Blame: providers.BlameChannel},
		`{"error":{"code":504,"status":"DEADLINE_EXCEEDED"}}`: {
			Kind: providers.Upstream, Blame: providers.BlameChannel,
		},
		`{"error":{"code":400,"status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`: {
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Accepted: providers.NotAccepted,
		},
		`{"error":{"code":403,"status":"PERMISSION_DENIED"}}`: {
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyForbidden, Accepted: providers.NotAccepted,
		},
		`{"error":{"code":404,"status":"NOT_FOUND","message":"models/x is not found"}}`: {
			Kind:     providers.ModelNotFound,
			Accepted: providers.NotAccepted,
		},
		`{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"m"}}`: {
			Kind: providers.Invalid, UpstreamMessage: "m",
			Accepted: providers.NotAccepted,
		},
	} {
		events := gemini.NewReader().Event(nil, []byte(body), nil)
		if len(events) != 1 || events[0].Kind != form.EventFailed {
			t.Fatalf("%s: got %v", body, shown(events))
		}
		got := events[0].Fault
		if got.Kind != want.Kind || got.Blame != want.Blame || got.Key != want.Key || got.Accepted != want.Accepted ||
			got.UpstreamMessage != want.UpstreamMessage ||
			got.RetryAfter != want.RetryAfter || got.Message == "" {
			t.Errorf("%s: got %+v, want %+v", body, *got, want)
		}
	}
}
