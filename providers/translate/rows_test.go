package translate_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/providers/translate"
)

// TestPairsRefuseVendorsTools: a vendor's own tools are no functions of that name: BerriAI/litellm #16962.
func TestPairsRefuseVendorsTools(t *testing.T) {
	t.Parallel()
	calls := map[string][2]string{
		"chat":      {`{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"code_interpreter"}]}`, "tools[0].type"},
		"responses": {`{"model":"m","input":"x","tools":[{"type":"code_interpreter"}]}`, "tools[0].type"},
		"messages":  {`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`, "tools[0].type"},
		"gemini":    {`{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"codeExecution":{}}]}`, "tools[0].codeExecution"},
	}
	others(func(client, upstream peer) {
		if _, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], calls[client.name][0], false); fault == nil ||
			fault.Param != calls[client.name][1] || client.name != "chat" && !strings.Contains(fault.Message, "the tool code") {
			t.Errorf("%s to %s: got %+v, want a fault of %s", client.name, upstream.name, fault, calls[client.name][1])
		}
	})
}

// TestPairsKeepPlaces: later instructions stay where they were said, and are not the assistant's: envoyproxy/ai-gateway #2206,
// router-for-me/CLIProxyAPI #654, diegosouzapw/OmniRoute #7056, ericc-ch/copilot-api #273, Alishahryar1/free-claude-code #1125. Empty
// texts are gone, and nothing stands for them: NousResearch/hermes-agent #11906, BiFangKNT/mtga #68, UKGovernmentBEIS/inspect_ai #2772.
func TestPairsKeepPlaces(t *testing.T) {
	t.Parallel()
	calls := conversations(t, "testdata/pairs/plain.json")
	others(func(client, upstream peer) {
		for _, model := range upstream.models {
			tr, fault := ask(t, new(translate.Translator), client, upstream, model, string(calls[client.name]), false)
			if fault != nil {
				t.Fatal(fault)
			}
			call := bytes.Join(tr.Call.Pieces, nil)
			for _, empty := range []string{`"text":""`, `"text":" "`, `"content":""`, `"content":[]`, `"parts":[]`, "(no content)"} {
				if bytes.Contains(call, []byte(empty)) {
					t.Errorf("%s to %s: %s in %s", client.name, model, empty, call)
				}
			}
			if client.name == "gemini" {
				continue // which has no later instructions
			}
			said, left, bye := bytes.Index(call, []byte("Hello.")), bytes.Index(call, []byte("The user left.")), bytes.Index(call, []byte("Bye."))
			if said < 0 || left < said || bye < left || bytes.Contains(call[said:left], []byte(`"assistant"`)) {
				t.Errorf("%s to %s: the later instruction is not in its place: %s", client.name, model, call)
			}
		}
	})
}

// TestMessagesCounts: clients of Messages know the input at the start, by an estimate where the upstream counts at its end (vercel/ai
// #17326), and all counts at the end (langchain-ai/langchainjs #11195), which overrule the first ones (envoyproxy/ai-gateway #2239).
func TestMessagesCounts(t *testing.T) {
	t.Parallel()
	client := peers()[2]
	for _, upstream := range []peer{peers()[0], peers()[1], peers()[3]} {
		begin := begins()[client.name]
		tr, fault := ask(t, new(translate.Translator), client, upstream, upstream.models[0], begin[0]+begin[1], true)
		if fault != nil {
			t.Fatal(fault)
		}
		_, stream := answers(t, upstream, "calls")
		var starts, ends int64
		for line := range strings.Lines(read(t, tr, stream, true)) {
			data, is := strings.CutPrefix(line, "data: ")
			if !is {
				continue
			}
			type usage struct {
				Input int64 `json:"input_tokens"`
				Read  int64 `json:"cache_read_input_tokens"`
			}
			var event struct {
				Type    string
				Message struct{ Usage usage }
				Usage   usage
			}
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				t.Fatal(err)
			}
			switch event.Type {
			case "message_start":
				starts = event.Message.Usage.Input + event.Message.Usage.Read
			case "message_delta":
				ends = event.Usage.Input + event.Usage.Read
			}
		}
		if starts <= 0 || ends != 142 {
			t.Errorf("from %s: %d tokens at the start, %d at the end, want some and 142", upstream.name, starts, ends)
		}
	}
}
