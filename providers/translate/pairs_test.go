package translate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/gemini"
	"modelrelay/providers/openai"
	"modelrelay/providers/translate"
)

var update = flag.Bool("update", false, "write what the tests got into their golden files")

// peer is one dialect, as a client and as an upstream.
type peer struct {
	name string
	// asks is the endpoint of its client's calls, takes those of its upstream.
	asks  providers.Endpoint
	takes []providers.Endpoint
	// models are upstreams' of generations that differ in what they take.
	models []string
}

func peers() []peer {
	chat := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}
	responses := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	gemini := providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}
	stream := providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}
	return []peer{
		{"chat", chat, []providers.Endpoint{chat}, []string{"gpt-4o", "gpt-5.1", "deepseek-chat"}},
		{"responses", responses, []providers.Endpoint{responses}, []string{"gpt-4o", "gpt-5", "gpt-5.6"}},
		{
			"messages", messages,
			[]providers.Endpoint{messages},
			[]string{"claude-3-5-haiku-latest", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-8", "claude-opus-5-5"},
		},
		{"gemini", gemini, []providers.Endpoint{gemini, stream}, []string{"gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-flash-preview"}},
	}
}

// others calls run for every pair of a client and an upstream of another dialect.
func others(run func(client, upstream peer)) {
	for _, client := range peers() {
		for _, upstream := range peers() {
			if client.name != upstream.name {
				run(client, upstream)
			}
		}
	}
}

// memory is a SignatureCache.
type memory struct {
	mu   sync.Mutex
	kept map[string][]byte
}

func (m *memory) Store(_ translate.Caller, name string, entry []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[string][]byte)
	}
	m.kept[name] = bytes.Clone(entry)
}

func (m *memory) Find(_ context.Context, _ translate.Caller, names []string) map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make(map[string][]byte)
	for _, name := range names {
		if entry, ok := m.kept[name]; ok {
			found[name] = entry
		}
	}
	return found
}

// vendorOf is the vendor that has the endpoints.
func vendorOf(takes ...providers.Endpoint) providers.Vendor {
	traits := map[providers.Format]func(string) providers.Traits{
		providers.OpenAI: openai.Traits, providers.Anthropic: anthropic.Traits, providers.Gemini: gemini.Traits,
	}
	return providers.Vendor{Takes: takes, Traits: traits[takes[0].Format]}
}

// ask makes the upstream's call of a client's.
func ask(
	t *testing.T, door *translate.Translator, client, upstream peer, model, body string, stream bool,
) (*translate.Translation, *providers.Fault) {
	t.Helper()
	call := &providers.Call{Endpoint: client.asks, Model: "m", Content: providers.Content{Body: []byte(body)}, Stream: stream, Token: "token"}
	if stream && client.name == "gemini" {
		call.Endpoint.Operation = providers.StreamContent
	}
	return door.Translate(t.Context(), call, providers.Target{Model: model}, vendorOf(upstream.takes...))
}

// sent is a call that was written for an upstream, or the field that it refuses. What is judged of it is in modelrelay/dev, which
// reads the golden files.
type sent struct {
	Client   string          `json:"client"`
	Began    string          `json:"began,omitempty"`
	Upstream string          `json:"upstream"`
	Model    string          `json:"model"`
	Refused  string          `json:"refused,omitempty"`
	Dropped  string          `json:"dropped,omitempty"`
	Changed  string          `json:"changed,omitempty"`
	Call     json.RawMessage `json:"call,omitempty"`
}

func written(t *testing.T, client, upstream peer, model string, tr *translate.Translation, fault *providers.Fault) sent {
	t.Helper()
	s := sent{Client: client.name, Upstream: upstream.name, Model: model}
	if fault != nil {
		if s.Refused = fault.Param; fault.Kind != providers.Invalid || fault.Param == "" {
			t.Errorf("%s to %s: refused with %+v", client.name, model, fault)
		}
		return s
	}
	header := make(http.Header)
	tr.Header(header)
	s.Dropped, s.Changed = header.Get("X-Relay-Dropped"), header.Get("X-Relay-Changed")
	s.Call = bytes.Join(tr.Call.Pieces, nil)
	if !json.Valid(s.Call) {
		t.Fatalf("%s to %s: wrote %s", client.name, model, s.Call)
	}
	return s
}

// compare compares calls with those in a golden file, a line each.
func compare(t *testing.T, file string, got []sent) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, s := range got {
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	gotLines, wantLines := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i, line := range gotLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Fatalf("line %d: got\n%s\nwant\n%s", i+1, line, slices.Concat(wantLines, []string{""})[min(i, len(wantLines))])
		}
	}
	if len(gotLines) != len(wantLines) {
		t.Errorf("got %d lines, want %d", len(gotLines), len(wantLines))
	}
}

// conversations reads the calls of a file by dialect.
func conversations(t *testing.T, file string) map[string]json.RawMessage {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls map[string]json.RawMessage
	if err := json.Unmarshal(content, &calls); err != nil {
		t.Fatal(err)
	}
	if len(calls["source"]) == 0 {
		t.Fatal("the file does not say where it comes from")
	}
	return calls
}

// TestPairs writes each conversation for every upstream.
func TestPairs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/pairs/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			calls := conversations(t, file)
			door := new(translate.Translator)
			var got []sent
			others(func(client, upstream peer) {
				body := calls[client.name]
				for _, model := range upstream.models {
					if body == nil {
						continue
					}
					tr, fault := ask(t, door, client, upstream, model, string(body), false)
					got = append(got, written(t, client, upstream, model, tr, fault))
				}
			})
			compare(t, file+"l", got)
		})
	}
}

// answers reads an upstream's answers: its document, and its stream.
func answers(t *testing.T, upstream peer, name string) (document, stream string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata/answers", name, upstream.name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(content, []byte("# ")) {
		t.Fatal("the first line does not say where this comes from")
	}
	_, rest, _ := strings.Cut(string(content), "-- document --\n")
	document, stream, found := strings.Cut(rest, "-- stream --\n")
	if !found {
		t.Fatal("no stream")
	}
	return document, stream
}

// begins are the first calls of conversations that go on with what the model answers, by dialect, each up to where its turns
// end, and what ends it.
func begins() map[string][2]string {
	return map[string][2]string{
		"chat": {
			`{"model":"m","reasoning_effort":"medium","tools":[{"type":"function","function":{"name":"get_weather"}},{"type":"function","function":{"name":"now"}}],"messages":[{"role":"user","content":"Weather?"}`,
			`]}`,
		},
		"responses": {
			`{"model":"m","store":false,"reasoning":{"effort":"medium","summary":"auto"},"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"get_weather","parameters":null,"strict":false},{"type":"function","name":"now","parameters":null,"strict":false}],"input":[{"role":"user","content":"Weather?"}`,
			`]}`,
		},
		"messages": {
			`{"model":"m","max_tokens":20000,"thinking":{"type":"enabled","budget_tokens":8000},"tools":[{"name":"get_weather","input_schema":{"type":"object"}},{"name":"now","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"Weather?"}`,
			`]}`,
		},
		"gemini": {
			`{"generationConfig":{"thinkingConfig":{"thinkingBudget":8000,"includeThoughts":true}},"tools":[{"functionDeclarations":[{"name":"get_weather"},{"name":"now"}]}],"contents":[{"role":"user","parts":[{"text":"Weather?"}]}`,
			`]}`,
		},
	}
}

// goesOn is what a client sends back behind its turns: the answer as its SDK keeps it, and the results of the two calls in it.
func goesOn(t *testing.T, client peer, answer []byte) string {
	t.Helper()
	var doc struct {
		Choices         []struct{ Message json.RawMessage }
		Output, Content json.RawMessage
		Candidates      []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(answer, &doc); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	switch client.name {
	case "chat":
		return "," + string(doc.Choices[0].Message) +
			`,{"role":"tool","tool_call_id":"id_2","content":"Noon."},{"role":"tool","tool_call_id":"id_1","content":"Sun."}`
	case "responses":
		return "," + string(doc.Output[1:len(doc.Output)-1]) +
			`,{"type":"function_call_output","call_id":"id_2","output":"Noon."},{"type":"function_call_output","call_id":"id_1","output":"Sun."}`
	case "messages":
		return `,{"role":"assistant","content":` + string(doc.Content) +
			`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"id_2","content":"Noon."},{"type":"tool_result","tool_use_id":"id_1","content":"Sun."}]}`
	}
	return "," + string(doc.Candidates[0].Content) +
		`,{"role":"user","parts":[{"functionResponse":{"id":"id_2","name":"now","response":{"output":"Noon."}}},{"functionResponse":{"id":"id_1","name":"get_weather","response":{"output":"Sun."}}}]}`
}

// stateOf counts what each upstream's answer of two calls wants back, as it is in a call of its dialect.
func stateOf(upstream peer, call []byte) int {
	switch upstream.name {
	case "messages":
		return bytes.Count(call, []byte(`"signature":"sig:Let me \"look\"."`)) + bytes.Count(call, []byte(`"data":"data"`))
	case "gemini":
		return bytes.Count(call, []byte(`"thoughtSignature":"Z3NpZzpjYWxsOmdldF93ZWF0aGVy"`))
	case "responses":
		return bytes.Count(call, []byte(`"encrypted_content":"enc:"`))
	}
	return 0
}

// TestPairsGoOn has one upstream answer a client's call, with thoughts and two calls of tools, and sends what the client makes of
// that to every upstream: at the one that answered, what it wants back comes back once, and in place; at others it is gone.
// Portkey-AI/gateway #1442, maximhq/bifrost #1437, #2210, diegosouzapw/OmniRoute #9273; and nothing hides in ids:
// BerriAI/litellm #18160, #41534, leookun/cursor-byok #364; the names of results are those of the calls in the request:
// farion1231/cc-switch #2814.
func TestPairsGoOn(t *testing.T) {
	t.Parallel()
	want := map[string]int{"messages": 2, "gemini": 1, "responses": 1}
	var got []sent
	others(func(client, first peer) {
		door := &translate.Translator{Signatures: new(memory)}
		begin := begins()[client.name]
		model := first.models[len(first.models)-1]
		tr, fault := ask(t, door, client, first, model, begin[0]+begin[1], false)
		if fault != nil {
			t.Fatalf("%s to %s: %+v", client.name, model, fault)
		}
		document, _ := answers(t, first, "calls")
		answer := read(t, tr, document, false)
		for _, id := range []string{`"id_1"`, `"id_2"`, `"get_weather"`, `"now"`} {
			if !strings.Contains(answer, id) {
				t.Errorf("%s from %s: no %s in %s", client.name, first.name, id, answer)
			}
		}
		body := begin[0] + goesOn(t, client, []byte(answer)) + begin[1]
		for _, upstream := range peers() {
			for _, model := range upstream.models {
				if upstream.name == client.name {
					continue
				}
				tr, fault := ask(t, door, client, upstream, model, body, false)
				s := written(t, client, upstream, model, tr, fault)
				s.Began = first.name
				got = append(got, s)
				state, wanted := stateOf(upstream, s.Call), 0
				if upstream.name == first.name && (first.name != "responses" || model != "gpt-4o") && model != "claude-3-5-haiku-latest" {
					wanted = want[first.name]
				}
				if state != wanted || bytes.Contains(s.Call, []byte("mr1.")) || bytes.Contains(s.Call, []byte("bXIxL")) {
					t.Errorf("%s, begun at %s, goes on at %s: %d states, want %d:\n%s\n%s", client.name, first.name, model, state, wanted, s.Call, body)
				}
			}
		}
	})
	compare(t, "testdata/goeson.jsonl", got)
}

// read gives a client's answer of an upstream's.
func read(t *testing.T, tr *translate.Translation, upstream string, stream bool) string {
	t.Helper()
	answer := tr.Answer(strings.NewReader(upstream), stream, int64(len(upstream)))
	if fault := answer.Begin(); fault != nil {
		t.Fatalf("%+v", fault)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(answer); err != nil {
		t.Fatalf("%s: %v", out.String(), err)
	}
	return out.String()
}
