package translate_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate"
)

// TestCountsWhereItCan: a count is asked of an upstream that has one for the model, and estimated elsewhere, which the header reports.
// A gateway that has none is envoyproxy/ai-gateway #1360. OpenAI's is POST /responses/input_tokens:
// https://platform.openai.com/docs/api-reference/responses/input-tokens.
func TestCountsWhereItCan(t *testing.T) {
	t.Parallel()
	at := func(format providers.Format, operation providers.Operation) providers.Endpoint {
		return providers.Endpoint{Format: format, Operation: operation}
	}
	anthropic, gemini := at(providers.Anthropic, providers.CountTokens), at(providers.Gemini, providers.CountTokens)
	const (
		messages = `{"model":"m","messages":[{"role":"user","content":"aaaa"}]}`
		contents = `{"contents":[{"parts":[{"text":"aaaa"}]}]}`
	)
	for name, test := range map[string]struct {
		from    providers.Endpoint
		body    string
		model   string
		dialect string
		takes   []providers.Endpoint
		asked   providers.Endpoint
		counted string // without a question
		answer  string // of the upstream
		want    string
		changed string
	}{
		"of messages at Gemini": {
			from: anthropic, body: messages, model: "gemini-2.5-pro", takes: []providers.Endpoint{gemini}, asked: gemini,
			answer: `{"totalTokens":7}`, want: `{"input_tokens":7}`,
		},
		"of contents at Anthropic": {
			from: gemini, body: contents, model: "claude-sonnet-4-5", takes: []providers.Endpoint{anthropic}, asked: anthropic,
			answer: `{"input_tokens":7}`, want: `{"totalTokens":7}`,
		},
		"of messages at a model of OpenAI's that reasons": {
			from: anthropic, body: messages, model: "gpt-5.1", takes: openai.Takes(), asked: at(providers.OpenAI, providers.InputTokens),
			answer: `{"object":"response.input_tokens","input_tokens":7}`, want: `{"input_tokens":7}`,
		},
		"of contents at a model of OpenAI's that reasons": {
			from: gemini, body: contents, model: "gpt-5.1", takes: openai.Takes(), asked: at(providers.OpenAI, providers.InputTokens),
			answer: `{"input_tokens":7}`, want: `{"totalTokens":7}`,
		},
		"of messages at another model of OpenAI's": {
			from: anthropic, body: messages, model: "gpt-4o", takes: openai.Takes(), counted: `{"input_tokens":5}`, changed: "input_tokens",
		},
		"of contents at another model of OpenAI's": {
			from: gemini, body: contents, model: "gpt-4o", takes: openai.Takes(), counted: `{"totalTokens":5}`, changed: "totalTokens",
		},
		"of messages at an imitator of chat completions": {
			from: anthropic, body: messages, model: "gpt-5.1", dialect: providers.DialectChat, takes: openai.Takes(), counted: `{"input_tokens":5}`,
			changed: "input_tokens",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &providers.Call{Endpoint: test.from, Model: "m", Content: providers.Content{Body: []byte(test.body)}}
			target := providers.Target{Model: test.model, Channel: providers.Channel{Dialect: test.dialect}}
			tr, fault := new(translate.Translator).Translate(t.Context(), call, target, vendorOf(test.takes...))
			if fault != nil {
				t.Fatal(fault)
			}
			header := make(http.Header)
			tr.Header(header)
			if got := header.Get("X-Relay-Changed"); got != test.changed || string(tr.Counted) != test.counted {
				t.Errorf("counted %q, changed %q, want %q and %q", tr.Counted, got, test.counted, test.changed)
			}
			if test.counted != "" {
				return
			}
			if tr.Call.Endpoint != test.asked {
				t.Errorf("asks %s, want %s", tr.Call.Endpoint, test.asked)
			}
			if sent := bytes.Join(tr.Call.Pieces, nil); !bytes.Contains(sent, []byte("aaaa")) || bytes.Contains(sent, []byte("max_tokens")) ||
				bytes.Contains(sent, []byte("stream")) {
				t.Errorf("sent %s", sent)
			}
			if got := read(t, tr, test.answer, false); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			nonsense := tr.Answer(strings.NewReader(`{"error":null}`), false, 0)
			if fault := nonsense.Begin(); fault == nil || fault.Kind != providers.Upstream || !fault.Malformed {
				_, err := io.ReadAll(nonsense)
				t.Errorf("got %v, %v of no count", fault, err)
			}
		})
	}
}

// TestEstimates is what is counted of a call where no upstream counts: a rule of the gateway's own, which the header reports.
func TestEstimates(t *testing.T) {
	t.Parallel()
	const (
		turn = 4 // tokens of a turn, before what it says
		png  = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
		tool = `"tools":[{"name":"ffff","description":"dddd","input_schema":{"type":"object"}}]`
	)
	said := func(content string) string { return `{"messages":[{"role":"user","content":` + content + `}]}` }
	schema := int64(len(`{"":""}`) + len(`{`)) // what is no letter of {"type":"object"}
	for name, test := range map[string]struct {
		body string
		want int64
	}{
		"letters, four to a token":        {said(`"abcdABCD"`), turn + 2},
		"spaces as letters":               {said(`"ab  "`), turn + 1},
		"other ASCII, two to a token":     {said(`"1.2;"`), turn + 2},
		"runes, one each":                 {said(`"日本"`), turn + 2},
		"escapes as what they stand for":  {said(`"\n\n\"\""`), turn + 2},
		"escaped runes as runes":          {said(`"\u65e5\u672c"`), turn + 2},
		"parts of tokens, rounded up":     {said(`"a"`), turn + 1},
		"instructions, which are no turn": {`{"system":"abcd","messages":[{"role":"user","content":"abcd"}]}`, 1 + turn + 1},
		"an image":                        {said(`[` + png + `]`), turn + 1600},
		"a PDF":                           {said(`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]`), turn + 3000},
		"a document of text": {
			said(`[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"abcdabcd"}}]`),
			turn + 2,
		},
		"a call and its result": {
			`{"messages":[{"role":"user","content":"abcd"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"ffff","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"abcd"},` + png + `]}]}]}`,
			3*turn + 1 + (1 + 1) + (1 + 1600),
		},
		"a tool": {strings.TrimSuffix(said(`"abcd"`), "}") + "," + tool + "}", turn + 1 + 8 + 1 + 1 + (10*1+schema*2+3)/4},
	} {
		body := strings.Replace(test.body, "{", `{"model":"m",`, 1)
		call := &providers.Call{
			Endpoint: providers.Endpoint{Format: providers.Anthropic, Operation: providers.CountTokens}, Model: "m",
			Content: providers.Content{Body: []byte(body)},
		}
		tr, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "gpt-4o"}, vendorOf(openai.Takes()...))
		if fault != nil {
			t.Errorf("%s: %v", name, fault)
			continue
		}
		if got, _ := rawjson.Value(tr.Counted).Get("input_tokens").Int(); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
	// A result of Gemini's is an object.
	call := &providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: providers.CountTokens}, Model: "m",
		Content: providers.Content{Body: []byte(
			`{"contents":[{"role":"user","parts":[{"text":"abcd"}]},{"role":"model","parts":[{"functionCall":{"name":"ffff","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"ffff","response":{"abcd":"abcd"}}}]}]}`)},
	}
	tr, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "gpt-4o"}, vendorOf(openai.Takes()...))
	if fault != nil {
		t.Fatal(fault)
	}
	// 3 turns, abcd, ffff({}), and {"abcd":"abcd"}: 8 letters and 7 others
	if got, want := string(tr.Counted), `{"totalTokens":21}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
