package translate_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// ended is an upstream's answer "Hi" that ended for a reason in its own words: a status and a reason of Responses', "" for none.
func ended(upstream, reason, usage string) string {
	switch upstream {
	case "chat":
		return `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"` + reason + `"}],"usage":{` + usage + `}}`
	case "responses":
		status, details := "completed", "null"
		if reason != "" {
			status, details = "incomplete", `{"reason":"`+reason+`"}`
		}
		return `{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"` + status + `","incomplete_details":` + details +
			`,"output":[{"type":"message","id":"msg_1","role":"assistant","status":"` + status +
			`","content":[{"type":"output_text","text":"Hi","annotations":[]}]}],"usage":{` + usage + `}}`
	case "messages":
		return `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"Hi"}],"stop_reason":"` + reason +
			`","stop_sequence":null,"usage":{` + usage + `}}`
	}
	return `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"` + reason + `"}],"usageMetadata":{` +
		usage + `},"modelVersion":"up","responseId":"r"}`
}

// answerOf is the client's document of an upstream's.
func answerOf(t *testing.T, client, upstream peer, document string) string {
	t.Helper()
	tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], leastCall(client.name)+"}", false)
	if fault != nil {
		t.Fatal(fault)
	}
	return read(t, tr, document, false)
}

// TestWhyAnswersEnd: each upstream's reason in each client's words. Those of chat completions are in Choice.finish_reason and of
// Responses in Response.IncompleteDetails of openai-node 7.55, of Anthropic in the type StopReason of anthropic-sdk-go (with
// https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons), of Google in FinishReason of google.golang.org/genai.
func TestWhyAnswersEnd(t *testing.T) {
	t.Parallel()
	type reasons = map[string]string
	end := reasons{"chat": "stop", "responses": "completed", "messages": "end_turn", "gemini": "STOP"}
	long := reasons{"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens", "gemini": "MAX_TOKENS"}
	filtered := reasons{"chat": "content_filter", "responses": "content_filter", "messages": "refusal", "gemini": "SAFETY"}
	other := reasons{"chat": "stop", "responses": "completed", "messages": "end_turn", "gemini": "OTHER"}
	want := map[string]map[string]reasons{
		"chat":      {"stop": end, "length": long, "content_filter": filtered, "tool_calls": end, "function_call": end, "what_is_new": other},
		"responses": {"": end, "max_output_tokens": long, "content_filter": filtered},
		"messages": {
			"end_turn": end, "stop_sequence": end, "max_tokens": long, "refusal": filtered, "model_context_window_exceeded": long,
			"pause_turn": long, "what_is_new": other,
		},
		"gemini": {
			"STOP": end, "MAX_TOKENS": long, "OTHER": other, "LANGUAGE": other, "NO_IMAGE": other, "WHAT_IS_NEW": other,
			"SAFETY": filtered, "RECITATION": filtered, "BLOCKLIST": filtered, "PROHIBITED_CONTENT": filtered, "SPII": filtered,
			"IMAGE_SAFETY":             filtered,
			"IMAGE_PROHIBITED_CONTENT": filtered, "IMAGE_RECITATION": filtered,
		},
	}
	word := map[string]*regexp.Regexp{
		"chat": regexp.MustCompile(`"finish_reason":"(\w+)"`), "messages": regexp.MustCompile(`"stop_reason":"(\w+)"`),
		"gemini":    regexp.MustCompile(`"finishReason":"(\w+)"`),
		"responses": regexp.MustCompile(`"(?:incomplete_details":\{"reason|object":"response","created_at":\d+,"status)":"(\w+)"`),
	}
	others(func(client, upstream peer) {
		for reason, words := range want[upstream.name] {
			answer := answerOf(t, client, upstream, ended(upstream.name, reason, ""))
			got := ""
			for _, found := range word[client.name].FindAllStringSubmatch(answer, -1) {
				if got = found[1]; got != "incomplete" {
					break
				}
			}
			if got != words[client.name] {
				t.Errorf("%q of %s is %q for %s, want %q: %s", reason, upstream.name, got, client.name, words[client.name], answer)
			}
		}
		for _, id := range map[string][]string{
			"chat":      {`"id":"chatcmpl-\w{24}"`, `"model":"m"`, `"object":"chat.completion"`},
			"responses": {`"id":"resp_[0-9a-v]{26}"`, `"id":"msg_\w+"`, `"model":"m"`}, "messages": {`"id":"msg_\w{24}"`, `"model":"m"`},
			"gemini": {`"responseId":"[\w-]+"`, `"modelVersion":"m"`},
		}[client.name] {
			reason := map[string]string{"chat": "stop", "messages": "end_turn", "gemini": "STOP"}[upstream.name]
			if answer := answerOf(t, client, upstream, ended(upstream.name, reason, "")); !regexp.MustCompile(id).MatchString(answer) {
				t.Errorf("%s from %s: no %s in %s", client.name, upstream.name, id, answer)
			}
		}
	})
}

// TestBrokenAnswers: Gemini's reasons for an answer that is none, before any content, are a failure, 502: FinishReason of
// google.golang.org/genai has MALFORMED_FUNCTION_CALL, UNEXPECTED_TOOL_CALL, MALFORMED_RESPONSE and TOO_MANY_TOOL_CALLS.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	for _, client := range peers()[:3] {
		for _, reason := range []string{"MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"} {
			tr, fault := ask(t, new(translate.Translator), client, peers()[3], "gemini-2.5-pro", leastCall(client.name)+"}", false)
			if fault != nil {
				t.Fatal(fault)
			}
			document := `{"candidates":[{"finishReason":"` + reason + `"}]}`
			fault = tr.Answer(strings.NewReader(document), false, int64(len(document))).Begin()
			if fault == nil || fault.Kind != providers.Upstream {
				t.Errorf("%s for %s: got %+v, want a failure", reason, client.name, fault)
			}
		}
	}
}

// TestCountsOfEveryUpstream: 100 tokens of input, of which 20 came from the cache and 10 went into it, 4 of these for an hour, and 50 of
// output, of which 7 were thought, as each upstream reports and each client reads them. Gemini has no count of what went in.
func TestCountsOfEveryUpstream(t *testing.T) {
	t.Parallel()
	usage := map[string]string{
		"chat":      `"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":7}`,
		"responses": `"input_tokens":100,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":10},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":150`,
		"messages":  `"input_tokens":70,"cache_read_input_tokens":20,"cache_creation_input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":4,"ephemeral_5m_input_tokens":6},"output_tokens":50,"output_tokens_details":{"thinking_tokens":7}`,
		"gemini":    `"promptTokenCount":95,"toolUsePromptTokenCount":5,"cachedContentTokenCount":20,"candidatesTokenCount":43,"thoughtsTokenCount":7,"totalTokenCount":150`,
	}
	last := map[string]string{"chat": "stop", "messages": "end_turn", "gemini": "STOP"}
	others(func(client, upstream peer) {
		written, hour := 10, 0
		switch upstream.name {
		case "gemini":
			written = 0
		case "messages":
			hour = 4
		}
		want := map[string][]string{
			"chat": {
				`"prompt_tokens":100,"completion_tokens":50,"total_tokens":150`, `"cached_tokens":20`,
				fmt.Sprintf(`"cache_write_tokens":%d`, written), `"reasoning_tokens":7`,
			},
			"responses": {
				`"input_tokens":100`, `"cached_tokens":20`, fmt.Sprintf(`"cache_write_tokens":%d`, written), `"output_tokens":50`,
				`"reasoning_tokens":7`, `"total_tokens":150`,
			},
			"messages": {
				fmt.Sprintf(`"input_tokens":%d`, 80-written), fmt.Sprintf(`"cache_creation_input_tokens":%d`, written), `"cache_read_input_tokens":20`,
				fmt.Sprintf(`"ephemeral_1h_input_tokens":%d`, hour), `"output_tokens":50`, `"thinking_tokens":7`,
			},
			"gemini": {
				`"promptTokenCount":100`, `"cachedContentTokenCount":20`, `"candidatesTokenCount":43`, `"thoughtsTokenCount":7`,
				`"totalTokenCount":150`,
			},
		}[client.name]
		answer := answerOf(t, client, upstream, ended(upstream.name, last[upstream.name], usage[upstream.name]))
		for _, part := range want {
			if !strings.Contains(answer, part) {
				t.Errorf("%s from %s: no %s in %s", client.name, upstream.name, part, answer)
			}
		}
		// What is not said is 0 and never null.
		bare := answerOf(t, client, upstream, ended(upstream.name, last[upstream.name], ""))
		if at := max(strings.Index(bare, `"usage":`), strings.Index(bare, `"usageMetadata":`)); at < 0 {
			t.Errorf("%s from %s: no counts in %s", client.name, upstream.name, bare)
		} else if counts := bare[at:]; regexp.MustCompile(`(?i)tokens?(Count)?":null`).MatchString(counts) {
			t.Errorf("%s from %s: got %s", client.name, upstream.name, counts)
		}
	})
}

// TestLaterZerosEraseNothing: the counts of a translated stream merge by member.
func TestLaterZerosEraseNothing(t *testing.T) {
	t.Parallel()
	others(func(client, upstream peer) {
		if upstream.name != "messages" {
			return
		}
		tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0],
			leastCall(client.name)+map[string]string{"chat": `,"stream_options":{"include_usage":true}`}[client.name]+"}", true)
		if fault != nil {
			t.Fatal(fault)
		}
		got := read(t, tr, `event: message_start
data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":12}}

event: message_stop
data: {"type":"message_stop"}

`, true)
		for _, part := range map[string][]string{
			"chat":      {`"prompt_tokens":16`, `"completion_tokens":12`, `"cached_tokens":5`},
			"responses": {`"input_tokens":16`, `"output_tokens":12`, `"cached_tokens":5`},
			"gemini":    {`"promptTokenCount":16`, `"candidatesTokenCount":12`, `"cachedContentTokenCount":5`},
		}[client.name] {
			if !strings.Contains(got, part) {
				t.Errorf("%s: no %s in %s", client.name, part, got)
			}
		}
	})
}

// TestRefusalsRepeatNothing: the message of a refused call names fields and never their values.
func TestRefusalsRepeatNothing(t *testing.T) {
	t.Parallel()
	const secret = "PRIVATE-WORDS"
	calls := map[string][]string{
		"chat": {
			`"stop":["` + secret + `"],"n":2`, `"tools":[{"type":"` + secret + `"}]`, `"tool_choice":"` + secret + `"`,
			`"response_format":{"type":"` + secret + `"}`,
			`"modalities":["` + secret + `"]`, `"function_call":{"name":"` + secret + `"},"functions":[{"name":"f"}]`,
		},
		"responses": {
			`"previous_response_id":"` + secret + `"`, `"tools":[{"type":"` + secret + `"}]`, `"text":{"format":{"type":"` + secret + `"}}`,
			`"tool_choice":{"type":"` + secret + `"}`,
			`"moderation":{"model":"` + secret + `"},"tool_choice":"` + secret + `"`,
		},
		"messages": {
			`"container":"` + secret + `"`, `"tools":[{"type":"` + secret + `","name":"` + secret + `"}]`,
			`"mcp_servers":[{"name":"` + secret + `"}]`, `"output_config":{"format":{"type":"` + secret + `"}}`,
		},
		"gemini": {
			`"cachedContent":"` + secret + `"`, `"tools":[{"codeExecution":{"a":"` + secret + `"}}]`,
			`"generationConfig":{"responseMimeType":"` + secret + `"}`,
			`"generationConfig":{"thinkingConfig":{"thinkingLevel":"` + secret + `"}}`,
			`"toolConfig":{"functionCallingConfig":{"mode":"` + secret + `"}}`,
		},
	}
	others(func(client, upstream peer) {
		for _, call := range calls[client.name] {
			tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], leastCall(client.name)+","+call+"}", false)
			switch {
			case fault == nil && client.name == "chat" && upstream.name == "gemini" && strings.Contains(call, `"n":2`):
				if !bytes.Contains(bytes.Join(tr.Call.Pieces, nil), []byte(secret)) {
					t.Errorf("%s is lost", call)
				}
			case fault == nil:
				t.Errorf("%s to %s: %s is taken", client.name, upstream.name, call)
			case fault.Kind != providers.Invalid || fault.Param == "" || strings.Contains(fault.Message+fault.Param, secret):
				t.Errorf("%s to %s: %s: got %+v", client.name, upstream.name, call, fault)
			}
		}
	})
}
