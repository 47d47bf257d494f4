package translate_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// markedCalls returns calls of each format with a cache mark at MARK: CacheControlEphemeral of @anthropic-ai/sdk 1.11 and
// prompt_cache_breakpoint of openai-node 7.55. Chat clients of gateways write the first one:
// https://docs.litellm.ai/docs/completion/prompt_caching.
func markedCalls() map[string]map[string]string {
	const (
		image = `iVBORw0KGgo=`
		chat  = `{"model":"m","messages":[%s]}`
	)
	return map[string]map[string]string{
		"messages": {
			"system":             `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"MARK}],"messages":[{"role":"user","content":"x"}]}`,
			"a text":             `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x"MARK}]}]}`,
			"a text by an image": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x"MARK},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}}]}]}`,
			"an image":           `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}MARK}]}]}`,
			"an answer":          `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"MARK}]},{"role":"user","content":"y"}]}`,
			"an answer's second": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"MARK}]},{"role":"user","content":"y"}]}`,
			"a call":             `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}MARK}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
			"a result":           `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"MARK}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
			"within a result":    `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"MARK}]}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
			"an image of a result": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image +
				`"}MARK}]}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
			"a tool":   `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"type":"object"}MARK}]}`,
			"the call": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]MARK}`,
		},
		"chat": {
			"system":             fmt.Sprintf(chat, `{"role":"system","content":[{"type":"text","text":"s"MARK}]},{"role":"user","content":"x"}`),
			"a message":          fmt.Sprintf(chat, `{"role":"user","content":"x"MARK}`),
			"a text":             fmt.Sprintf(chat, `{"role":"user","content":[{"type":"text","text":"x"MARK}]}`),
			"a text by an image": fmt.Sprintf(chat, `{"role":"user","content":[{"type":"text","text":"x"MARK},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+image+`"}}]}`),
			"an image": fmt.Sprintf(chat, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+image+
				`"}MARK}]}`),
			"an answer": fmt.Sprintf(chat, `{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"a"MARK}]},{"role":"user","content":"y"}`),
			"a result":  fmt.Sprintf(chat, `{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"r"MARK}]}`),
			"a tool":    `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}MARK}]}`,
		},
		"responses": {
			"system":             `{"model":"m","input":[{"role":"system","content":[{"type":"input_text","text":"s"MARK}]},{"role":"user","content":"x"}]}`,
			"a text":             `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"MARK}]}]}`,
			"a text by an image": `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"MARK},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,` + image + `"}]}]}`,
			"a result":           `{"model":"m","input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"MARK}]}]}`,
		},
	}
}

// TestMarksReachTheirUpstream: a cache mark is in the upstream's call, or the answer's header reports that it is dropped.
func TestMarksReachTheirUpstream(t *testing.T) {
	t.Parallel()
	marks := map[string][2]string{
		"messages":  {`,"cache_control":{"type":"ephemeral"}`, "cache_control"},
		"chat":      {`,"cache_control":{"type":"ephemeral"}`, "cache_control"},
		"responses": {`,"prompt_cache_breakpoint":{"mode":"explicit"}`, "prompt_cache_breakpoint"},
	}
	others(func(client, upstream peer) {
		models := upstream.models
		if upstream.name == "chat" {
			models = append(models, "gpt-5.6") // which takes breakpoints
		}
		for where, body := range markedCalls()[client.name] {
			for _, model := range models {
				mark := marks[client.name]
				tr, fault := ask(t, new(translate.Translator), client, upstream, model, strings.Replace(body, "MARK", mark[0], 1), false)
				if fault != nil {
					t.Errorf("%s of %s to %s: %v", where, client.name, model, fault)
					continue
				}
				call := bytes.Join(tr.Call.Pieces, nil)
				header := make(http.Header)
				tr.Header(header)
				stands := bytes.Count(call, []byte(`"cache_control":{"type":"ephemeral"}`)) +
					bytes.Count(call, []byte(`"prompt_cache_breakpoint":{"mode":"explicit"}`))
				named := strings.Contains(header.Get("X-Relay-Dropped"), mark[1])
				if stands > 1 || named != (stands == 0) {
					t.Errorf("%s of %s to %s: %d marks, dropped %q: %s", where, client.name, model, stands, header.Get("X-Relay-Dropped"), call)
				}
				if upstream.name == "messages" && stands != 1 {
					t.Errorf("%s of %s to %s: no mark in %s", where, client.name, model, call)
				}
			}
		}
	})
}

// TestMarksAtMessages is what of marks the vendor takes: four, none on an empty text, and a life of an hour.
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching; five are refused: Wei-Shaw/sub2api #176.
func TestMarksAtMessages(t *testing.T) {
	t.Parallel()
	const mark = `"cache_control":{"type":"ephemeral"}`
	marked := func(text string) string { return `{"type":"text","text":"` + text + `",` + mark + `}` }
	for name, test := range map[string]struct {
		body    string
		texts   []string // that keep their marks
		lost    []string // that do not
		changed string
		hour    bool
	}{
		"five of turns": {
			body: `{"model":"m","messages":[{"role":"user","content":[` +
				strings.Join([]string{marked("t1"), marked("t2"), marked("t3"), marked("t4"), marked("t5")}, ",") + `]}]}`,
			texts: []string{"t2", "t3", "t4", "t5"}, lost: []string{"t1"}, changed: "messages[].content[].cache_control",
		},
		"five of the system and one of a turn": {
			body: `{"model":"m","messages":[{"role":"system","content":[` +
				strings.Join([]string{marked("t1"), marked("t2"), marked("t3"), marked("t4"), marked("t5")}, ",") + `]},{"role":"user","content":[` +
				marked("t6") + `]}]}`,
			texts: []string{"t2", "t3", "t4", "t5"}, lost: []string{"t1", "t6"}, changed: "messages[].content[].cache_control",
		},
		"an hour": {
			body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"t1","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}`, hour: true,
		},
		"of a breakpoint's half an hour": {
			body: `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"t1","prompt_cache_breakpoint":{"mode":"explicit","ttl":"30m"}}]}]}`, hour: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, fault := ask(t, new(translate.Translator), peers()[0], peers()[2], "claude-sonnet-4-5", test.body, false)
			if fault != nil {
				t.Fatal(fault)
			}
			call := string(bytes.Join(tr.Call.Pieces, nil))
			for _, text := range test.texts {
				if !strings.Contains(call, `"text":"`+text+`",`+mark) {
					t.Errorf("no mark behind %s: %s", text, call)
				}
			}
			for _, text := range test.lost {
				if !strings.Contains(call, `"text":"`+text+`"}`) {
					t.Errorf("%s is marked: %s", text, call)
				}
			}
			if got := strings.Contains(call, `"ttl":"1h"`); got != test.hour {
				t.Errorf("for an hour: %t: %s", got, call)
			}
			header := make(http.Header)
			tr.Header(header)
			if got := header.Get("X-Relay-Changed"); !strings.Contains(got, test.changed) {
				t.Errorf("changed %q, want %q", got, test.changed)
			}
		})
	}
	// A mark of the whole call continues the last block that is not empty.
	call := &providers.Call{
		Model: "m", Endpoint: peers()[2].asks,
		Content: providers.Content{Body: []byte(`{"model":"m","max_tokens":9,"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":" "}]}]}`)},
	}
	tr, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "gpt-5.6"}, vendorOf(peers()[1].takes...))
	if fault != nil {
		t.Fatal(fault)
	}
	if got := string(bytes.Join(tr.Call.Pieces, nil)); !strings.Contains(got, `"text":"x","prompt_cache_breakpoint":{"mode":"explicit"}`) {
		t.Errorf("no mark on the last block: %s", got)
	}
}
