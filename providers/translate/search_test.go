package translate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
	"modelrelay/providers/translate/translatetest"
)

// searching is a client's least call with a web search.
func searching(client string) string {
	return leastCall(client) + map[string]string{
		"chat":      `,"web_search_options":{"search_context_size":"low","user_location":{"type":"approximate","approximate":{"country":"FR","city":"Paris"}}}`,
		"responses": `,"tools":[{"type":"web_search","filters":{"allowed_domains":["a.example"]},"user_location":{"type":"approximate","country":"FR"},"search_context_size":"low"}]`,
		"messages":  `,"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3,"allowed_domains":["a.example"],"user_location":{"type":"approximate","country":"FR"}}]`,
		"gemini":    `,"tools":[{"googleSearch":{}}]`,
	}[client]
}

// TestSearchIsAsked: a web search becomes the target's own tool; what has no counterpart is dropped and named. A target that cannot search
// is called without an unforced search, and refuses a forced one under the tool's name.
func TestSearchIsAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ client, upstream, model, rest, has, dropped, refused string }{
		"responses to messages": {
			"responses", "messages", "claude-sonnet-4-5", "",
			`{"type":"web_search_20250305","name":"web_search","allowed_domains":["a.example"],"user_location":{"type":"approximate","country":"FR"}}`, "tools[].search_context_size", "",
		},
		"messages to responses": {
			"messages", "responses", "gpt-5", "",
			`{"type":"web_search","filters":{"allowed_domains":["a.example"]},"user_location":{"type":"approximate","country":"FR"}}`,
			"tools[].max_uses", "",
		},
		"responses to gemini": {
			"responses", "gemini", "gemini-2.5-pro", "", `"tools":[{"googleSearch":{}}]`,
			"tools[].allowed_domains, tools[].search_context_size, tools[].user_location", "",
		},
		"gemini to messages": {"gemini", "messages", "claude-sonnet-4-5", "", `{"type":"web_search_20250305","name":"web_search"}`, "", ""},
		"chat to messages": {
			"chat", "messages", "claude-sonnet-4-5", "",
			`"user_location":{"type":"approximate","country":"FR","city":"Paris"}`, "web_search_options.search_context_size", "",
		},
		"messages to chat": {
			"messages", "chat", "gpt-4o-search-preview", "",
			`"web_search_options":{"user_location":{"type":"approximate","approximate":{"country":"FR"}}}`,
			"tools[].allowed_domains, tools[].max_uses", "",
		},
		"no search in chat":  {"messages", "chat", "gpt-4o", "", `"messages":[`, "tools[]", ""},
		"forced without it":  {"messages", "chat", "gpt-4o", `,"tool_choice":{"type":"tool","name":"web_search"}`, "", "", "tools[0]"},
		"required and alone": {"responses", "chat", "mistral-large", `,"tool_choice":"required"`, "", "", "tools[0]"},
		"forced": {
			"responses", "messages", "claude-sonnet-4-5", `,"tool_choice":{"type":"web_search_preview"}`,
			`"tool_choice":{"type":"tool","name":"web_search"}`, "tools[].search_context_size", "",
		},
		"forced back": {
			"messages", "responses", "gpt-5", `,"tool_choice":{"type":"tool","name":"web_search"}`,
			`"tool_choice":{"type":"web_search"}`, "tools[].max_uses", "",
		},
	} {
		from, to := between(t, tc.client, tc.upstream)
		tr, fault := ask(t, new(translate.Translator), from, to, tc.model, searching(tc.client)+tc.rest+"}", false)
		if tc.refused != "" {
			if fault == nil || fault.Param != tc.refused || !strings.Contains(fault.Message, "web_search") {
				t.Errorf("%s: got %+v, want a refusal of %s", name, fault, tc.refused)
			}
			continue
		}
		if fault != nil {
			t.Errorf("%s: %+v", name, fault)
			continue
		}
		sent, header := "", make(map[string][]string)
		for _, piece := range tr.Call.Pieces {
			sent += string(piece)
		}
		tr.Header(header)
		dropped := strings.Split(strings.Join(header["X-Relay-Dropped"], ""), ", ")
		for want := range strings.SplitSeq(tc.dropped, ", ") {
			if !strings.Contains(strings.Join(dropped, ", "), want) || tc.dropped == "" && dropped[0] != "" {
				t.Errorf("%s: dropped %v, want %s", name, dropped, tc.dropped)
			}
		}
		if !strings.Contains(sent, tc.has) {
			t.Errorf("%s: sent %s, want %s", name, sent, tc.has)
		}
	}
	// Its search for further tools is left out everywhere.
	sent, _ := sentTo(t, "responses", "messages", "claude-sonnet-4-5",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"tool_search","execution":"client"}]}`)
	if strings.Contains(sent, "tool_search") || !strings.Contains(sent, `"name":"f"`) {
		t.Errorf("tool_search: sent %s", sent)
	}
	// Codex always sends its search next to functions, which a Gemini model does not take together.
	sent, _ = sentTo(t, "responses", "gemini", "gemini-2.5-pro",
		`{"model":"m","input":"x","tools":[{"type":"function","name":"f"},{"type":"web_search","external_web_access":true}]}`)
	if strings.Contains(sent, "googleSearch") || !strings.Contains(sent, "functionDeclarations") {
		t.Errorf("with functions: sent %s", sent)
	}
}

// searched is an upstream's stream: a search for "go 1.30", a text "Go é is out" whose last words cite a page.
func searched(upstream string) string {
	switch upstream {
	case "chat":
		return `data: {"choices":[{"index":0,"delta":{"content":"Go é is out"}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{"annotations":[{"type":"url_citation","url_citation":{"start_index":5,"end_index":11,"url":"https://go.dev/","title":"Go"}}]}}]}` + "\n\n" +
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	case "responses":
		item := `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"go 1.30","sources":[{"type":"url","url":"https://go.dev/"}]}}`
		annotation := `{"type":"url_citation","start_index":5,"end_index":11,"url":"https://go.dev/","title":"Go"}`
		message := `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Go é is out","annotations":[` + annotation + `]}]}`
		event := func(kind, rest string) string {
			return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + rest + "}\n\n"
		}
		return event("response.created", `"response":{"status":"in_progress"}`) +
			event("response.output_item.added", `"output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}`) +
			event("response.output_item.done", `"output_index":0,"item":`+item) +
			event("response.output_item.added", `"output_index":1,"item":{"type":"message","id":"msg_1","content":[]}`) +
			event("response.output_text.delta", `"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Go é is out"`) +
			event("response.output_text.annotation.added",
				`"item_id":"msg_1","output_index":1,"content_index":0,"annotation_index":0,"annotation":`+annotation) +
			event("response.output_item.done", `"output_index":1,"item":`+message) +
			event("response.completed", `"response":{"status":"completed","output":[`+item+`,`+message+
				`],"usage":{"input_tokens":5,"output_tokens":6}}`)
	case "messages":
		event := func(data string) string {
			var typed struct{ Type string }
			_ = json.Unmarshal([]byte(data), &typed)
			return "event: " + typed.Type + "\ndata: " + data + "\n\n"
		}
		return event(`{"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":5,"output_tokens":1}}}`) +
			event(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`) +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}`) +
			event(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" \"go 1.30\"}"}}`) +
			event(`{"type":"content_block_stop","index":0}`) +
			event(`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.dev/","title":"Go","encrypted_content":"e","page_age":null}]}}`) +
			event(`{"type":"content_block_stop","index":1}`) +
			event(`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`) +
			event(`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Go é "}}`) +
			event(`{"type":"content_block_stop","index":2}`) +
			event(`{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"","citations":[]}}`) +
			event(`{"type":"content_block_delta","index":3,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://go.dev/","title":"Go","encrypted_index":"i","cited_text":"c"}}}`) +
			event(`{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"is out"}}`) +
			event(`{"type":"content_block_stop","index":3}`) +
			event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":6,"server_tool_use":{"web_search_requests":1}}}`) + event(`{"type":"message_stop"}`)
	}
	return `data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Go é is out"}]}}]}` + "\n\n" +
		`data: {"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["go 1.30"],"groundingChunks":[{"web":{"uri":"https://go.dev/","title":"Go"}}],` +
		`"groundingSupports":[{"segment":{"startIndex":6,"endIndex":12,"text":"is out"},"groundingChunkIndices":[0]}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6}}` + "\n\n"
}

// TestSearchIsAnswered: a search and its citations come in each client's own form, in streams and whole, with ranges in the client's unit.
func TestSearchIsAnswered(t *testing.T) {
	t.Parallel()
	others(func(client, upstream peer) {
		model := upstream.models[0]
		if upstream.name == "chat" {
			model = "gpt-4o-search-preview"
		}
		if upstream.name == "messages" {
			model = "claude-sonnet-4-5"
		}
		for _, stream := range []bool{true, false} {
			tr, fault := ask(t, new(translate.Translator), client, upstream, model, searching(client.name)+"}", stream)
			if fault != nil {
				t.Errorf("%s to %s: %+v", client.name, upstream.name, fault)
				return
			}
			got := read(t, tr, searched(upstream.name), true)
			where := client.name + " from " + upstream.name
			var parts []string
			switch client.name {
			case "chat":
				parts = []string{`"annotations":[{"type":"url_citation","url_citation":{"start_index":5,"end_index":11,"title":"Go","url":"https://go.dev/"}}]`}
			case "responses":
				from := `"start_index":5,"end_index":11`
				if upstream.name == "messages" { // whose cited text is a block of its own
					from = `"start_index":0,"end_index":6`
				}
				parts = []string{`{"type":"url_citation",` + from + `,"url":"https://go.dev/","title":"Go"}`}
				if upstream.name != "chat" {
					parts = append(parts, `"type":"web_search_call"`, `"query":"go 1.30"`)
				}
				if stream {
					translatetest.CheckResponses(t, []byte(got))
				}
			case "messages":
				parts = []string{`"type":"web_search_result_location","url":"https://go.dev/","title":"Go"`, `"cited_text":"is out"`}
				if upstream.name != "chat" {
					title := "Go"
					if upstream.name == "responses" { // its searches have no titles
						title = "https://go.dev/"
					}
					parts = append(parts, `"type":"server_tool_use"`, `"web_search_requests":1`,
						`"type":"web_search_result","url":"https://go.dev/","title":"`+title+`"`, `go 1.30`)
				}
				if stream {
					translatetest.CheckMessages(t, []byte(got))
				}
			case "gemini":
				parts = []string{
					`"groundingSupports":[{"segment":{"startIndex":6,"endIndex":12,"text":"is out"},"groundingChunkIndices":[0]}]`,
					`"groundingChunks":[{"web":{"uri":"https://go.dev/","title":"Go"}}]`,
				}
				if upstream.name != "chat" {
					parts = append(parts, `"webSearchQueries":["go 1.30"]`)
				}
			}
			for _, part := range parts {
				if !strings.Contains(got, part) {
					t.Errorf("%s, stream %v: no %s in %s", where, stream, part, got)
				}
			}
		}
	})
}

// TestCompaction: a compaction is one call for a summary on any model. The summary is readable for the same token alone, as a message of
// the user, also by OpenAI itself.
func TestCompaction(t *testing.T) {
	t.Parallel()
	others(func(client, upstream peer) {
		if client.name != "responses" {
			return
		}
		var sealed string
		for _, stream := range []bool{true, false} {
			tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0],
				`{"model":"m","tools":[{"type":"function","name":"f"},{"type":"web_search"}],"input":[{"role":"user","content":"the work"},{"type":"compaction_trigger"}]}`, stream)
			if fault != nil {
				t.Errorf("%s: %+v", upstream.name, fault)
				return
			}
			sent := ""
			for _, piece := range tr.Call.Pieces {
				sent += string(piece)
			}
			if !strings.Contains(sent, "Summarize this conversation") || !strings.Contains(sent, "the work") ||
				strings.Contains(sent, "web_search") || strings.Contains(sent, "googleSearch") {
				t.Errorf("%s: sent %s", upstream.name, sent)
			}
			got := read(t, tr, ended(upstream.name, map[string]string{"chat": "stop", "messages": "end_turn", "gemini": "STOP"}[upstream.name], ""),
				false)
			if stream {
				translatetest.CheckResponses(t, []byte(got))
				continue
			}
			var response struct {
				Output []struct {
					Type    string
					Content string `json:"encrypted_content"`
				}
			}
			if err := json.Unmarshal([]byte(got), &response); err != nil || len(response.Output) != 1 || response.Output[0].Type != "compaction" ||
				strings.Contains(got, `"Hi"`) {
				t.Fatalf("%s: got %s, %v", upstream.name, got, err)
			}
			sealed = response.Output[0].Content
		}
		later := `{"model":"m","input":[{"type":"compaction","id":"cmp_1","encrypted_content":"` + sealed +
			`"},{"role":"user","content":"go on"}]}`
		sent, _ := sentTo(t, "responses", upstream.name, upstream.models[0], later)
		if !strings.Contains(sent, `Summary of the conversation so far:\n\nHi`) {
			t.Errorf("%s: sent %s", upstream.name, sent)
		}
		call := &providers.Call{Endpoint: client.asks, Token: "token", Content: providers.Content{Body: []byte(later)}}
		call.Edits = translate.Without(call)
		var native strings.Builder
		for _, piece := range call.Payload("m") {
			native.Write(piece)
		}
		if got := native.String(); !json.Valid([]byte(got)) ||
			!strings.Contains(got, `{"type":"message","role":"user","content":"Summary of the conversation so far:\n\nHi"}`) {
			t.Errorf("native: sent %s", got)
		}
		other := &providers.Call{Endpoint: client.asks, Model: "m", Content: providers.Content{Body: []byte(later)}, Token: "another"}
		if _, fault := new(translate.Translator).Translate(t.Context(), other, providers.Target{Model: upstream.models[0]},
			vendorOf(upstream.takes...)); fault == nil || fault.Param != "input[0].encrypted_content" {
			t.Errorf("%s: another token: %+v", upstream.name, fault)
		}
	})
}

// TestSearchComesBack: the search steps of an earlier answer go to another vendor as the text that followed, and to Claude without what
// stood for another vendor's encrypted content.
func TestSearchComesBack(t *testing.T) {
	t.Parallel()
	const turns = `{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},` +
		`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://a","title":"A","encrypted_content":"mr1.s.x"}]},` +
		`{"type":"text","text":"found","citations":[{"type":"web_search_result_location","url":"https://a","title":"A","encrypted_index":"mr1.s.y","cited_text":"c"}]}]},{"role":"user","content":"y"}`
	sent, _ := sentTo(t, "messages", "chat", "gpt-4o", `{"model":"m","max_tokens":9,"messages":[`+turns+`]}`)
	if !strings.Contains(sent, "found") || strings.Contains(sent, "srvtoolu") {
		t.Errorf("sent %s", sent)
	}
	sent, _ = sentTo(t, "responses", "messages", "claude-sonnet-4-5",
		`{"model":"m","input":[{"role":"user","content":"x"},{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}},`+
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"found","annotations":[]}]},{"role":"user","content":"y"}]}`)
	if !strings.Contains(sent, "found") || strings.Contains(sent, "web_search") {
		t.Errorf("sent %s", sent)
	}
	call := &providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}, Model: "m",
		Content: providers.Content{Body: []byte(`{"model":"m","max_tokens":9,"messages":[` + turns + `]}`)},
	}
	call.Edits = translate.Without(call)
	var native strings.Builder
	for _, piece := range call.Payload("m") {
		native.Write(piece)
	}
	if got := native.String(); !json.Valid([]byte(got)) || strings.Contains(got, "mr1.") || strings.Contains(got, "srvtoolu") ||
		!strings.Contains(got, `{"type":"text","text":"found","citations":null}`) {
		t.Errorf("sent %s", got)
	}
}
