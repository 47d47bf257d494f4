package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// TestSignatures: the fakes accept a signature that they have issued, and refuse a changed one.
func TestSignatures(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const answer = `{"answers":[{"parts":[{"think":"Hm."},{"redacted":true},{"call":{"name":"read","id":"call_1","arguments":{"path":"a"}}}]}]}`
	for dialect, tc := range map[string]struct {
		continued func(v any) string // the turns behind the first, of an answer
		spoil     []string           // old, new
		want      string
	}{
		"messages": {func(v any) string {
			return `{"role":"user","content":"go"},{"role":"assistant","content":` + doc(t, at(v, "content")) +
				`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"ok"}]}`
		}, []string{`"signature":"`, `"signature":"A`}, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"gemini": {func(v any) string {
			return `{"role":"user","parts":[{"text":"go"}]},` + doc(t, at(v, "candidates", 0, "content")) +
				`,{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"ok"}}}]}`
		}, []string{`"thoughtSignature":"`, `"thoughtSignature":"AAAA`}, "Corrupted thought signature."},
		"responses": {
			func(v any) string {
				return `{"role":"user","content":"go"},` + strings.Trim(doc(t, at(v, "output")), "[]") +
					`,{"type":"function_call_output","call_id":"call_1","output":"ok"}`
			},
			[]string{`"encrypted_content":"gAAAAA`, `"encrypted_content":"gAAAAAA`},
			"could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			model := modelOf(dialect)
			f.control(t, "POST", "scripts", strings.Replace(answer, `{`, `{"model":"`+model+`",`, 1))
			first := f.ask(t, dialect, model, false)
			turns := tc.continued(first.json(t))
			d := dialects()[dialect]
			body := strings.Replace(d.body, "MODEL", model, 1) + "}"
			for _, begin := range []string{
				`"messages":[{"role":"user","content":"go"}]`, `"contents":[{"role":"user","parts":[{"text":"go"}]}]`,
				`"input":"go"`,
			} {
				name, _, _ := strings.Cut(begin, ":")
				body = strings.Replace(body, begin, name+":["+turns+"]", 1)
			}
			path := strings.Replace(d.path, "MODEL", model, 1)
			if a := f.do(t, "POST", path, body, d.header...); a.status != 200 || !strings.Contains(string(a.body), "The tool said") {
				t.Errorf("as it came: got %d %s", a.status, a.body)
			}
			spoiled := strings.Replace(body, tc.spoil[0], tc.spoil[1], 1)
			if spoiled == body {
				t.Fatalf("no %s in %s", tc.spoil[0], body)
			}
			if a := f.do(t, "POST", path, spoiled, d.header...); a.status != 400 || !strings.Contains(string(a.body), tc.want) {
				t.Errorf("changed: got %d %s, want %q", a.status, a.body, tc.want)
			}
		})
	}
}

func doc(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestResponsesMemory refers to what was stored, and to what was not.
func TestResponsesMemory(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	f.control(t, "POST", "scripts", `{"model":"gpt-5","plan":true,"answers":[{"parts":[{"think":"Hm."},{"call":{"name":"read"}}]},{"parts":[{"text":"Done."}]}]}`)
	const tools = `"tools":[{"type":"function","name":"read"}]`
	ask := func(fields string) answer {
		return f.do(t, "POST", "/openai/v1/responses", `{"model":"gpt-5",`+tools+`,`+fields+`}`)
	}
	for _, stores := range []bool{true, false} {
		first := ask(`"input":"go","store":` + map[bool]string{true: "true", false: "false"}[stores]).json(t)
		result := `{"type":"function_call_output","call_id":"` + textAt(t, first, "output", 1, "call_id") + `","output":"ok"}`
		reference := func(i int) string {
			return `{"type":"item_reference","id":"` + textAt(t, first, "output", i, "id") + `"}`
		}
		for name, fields := range map[string]string{
			"previous":   `"input":[` + result + `],"previous_response_id":"` + textAt(t, first, "id") + `"`,
			"references": `"input":[{"role":"user","content":"go"},` + reference(0) + `,` + reference(1) + `,` + result + `]`,
		} {
			a := ask(fields)
			if stores && (a.status != 200 || !strings.Contains(string(a.body), "Done.")) {
				t.Errorf("%s: got %d %s", name, a.status, a.body)
			}
			if !stores && (a.status/100 != 4 || !strings.Contains(string(a.body), "not found")) {
				t.Errorf("%s, not stored: got %d %s", name, a.status, a.body)
			}
		}
	}
}
