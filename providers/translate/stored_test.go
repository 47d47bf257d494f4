package translate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// memoryOfResponses stores responses up to a size.
type memoryOfResponses struct {
	size   int
	stored []translate.Response
	tokens []string
}

func (m *memoryOfResponses) Store(_ context.Context, token string, response translate.Response) bool {
	m.tokens, m.stored = append(m.tokens, token), append(m.stored, response)
	return true
}

func (m *memoryOfResponses) MaxSize() int { return m.size }

// TestStoredAnswers: what a later call continues from is stored of an answer to a Responses client that does not refuse it, and of no
// other.
func TestStoredAnswers(t *testing.T) {
	t.Parallel()
	const document = `{"content":[{"type":"text","text":"Hi"},{"type":"tool_use","id":"c","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":1}}`
	client, upstream := peers()[1], peers()[2]
	for name, test := range map[string]struct {
		client peer
		body   string
		chain  providers.Chain
		size   int
		// What is stored; "-": nothing is.
		earlier, input string
		dropped        string
	}{
		"a text": {
			client, `{"model":"m","input":"a"}`,
			providers.Chain{},
			1 << 20, ``, `{"type":"message","role":"user","content":"a"}`,
			"",
		},
		"wanted": {
			client, `{"model":"m","input":"a","store":true}`,
			providers.Chain{},
			1 << 20, ``,
			`{"type":"message","role":"user","content":"a"}`, "",
		},
		"a chain": {
			client, `{"model":"m","input":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
			providers.Chain{Previous: "resp_0", Earlier: 1},
			1 << 20, `{"role":"user","content":"a"}`, `{"role":"user","content":"b"}`, "",
		},
		"not wanted": {client, `{"model":"m","input":"a","store":false}`, providers.Chain{}, 1 << 20, "-", "", ""},
		"too long":   {client, `{"model":"m","input":"aaaaaaaaaaaaaaaaaaaaa","store":true}`, providers.Chain{}, 20, "-", "", "store"},
		"another form": {
			peers()[0], `{"model":"m","messages":[{"role":"user","content":"a"}],"store":true}`,
			providers.Chain{},
			1 << 20, "-", "",
			"store",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := &memoryOfResponses{size: test.size}
			door := &translate.Translator{Responses: memory}
			call := &providers.Call{
				Endpoint: test.client.asks, Model: "m", Content: providers.Content{Body: []byte(test.body)}, Token: "token",
				Chain: test.chain,
			}
			tr, fault := door.Translate(t.Context(), call, providers.Target{Model: upstream.models[0]}, vendorOf(upstream.takes...))
			if fault != nil {
				t.Fatal(fault)
			}
			header := make(map[string][]string)
			tr.Header(header)
			if got := strings.Join(header["X-Relay-Dropped"], ""); got != test.dropped {
				t.Errorf("dropped %q", got)
			}
			got := read(t, tr, document, false)
			if test.earlier == "-" {
				if len(memory.stored) > 0 || tr.Holds() > 0 || strings.Contains(got, `"store":true`) {
					t.Errorf("stored %+v, holds %d, answered %s", memory.stored, tr.Holds(), got)
				}
				return
			}
			if len(memory.stored) != 1 || memory.tokens[0] != "token" {
				t.Fatalf("stored %+v for %q", memory.stored, memory.tokens)
			}
			stored := memory.stored[0]
			if string(stored.Object) != got || string(stored.Earlier) != test.earlier || string(stored.Input) != test.input ||
				tr.Holds() != len(test.earlier)+len(test.input) {
				t.Errorf("stored %s with %s and %s, holds %d", stored.Object, stored.Earlier, stored.Input, tr.Holds())
			}
			var items []string
			for id, item := range stored.Items() {
				if !strings.Contains(string(item), id) {
					t.Errorf("%s is %s", id, item)
				}
				items = append(items, id[:strings.Index(id, "_")])
			}
			if !slices.Equal(items, []string{"msg", "fc"}) {
				t.Errorf("its items are %q", items)
			}
		})
	}
}
