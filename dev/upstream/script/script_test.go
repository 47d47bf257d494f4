package script_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"modelrelay/dev/upstream/script"
)

func parsed(t *testing.T, doc string) *script.Script {
	t.Helper()
	s := new(script.Script)
	if err := json.Unmarshal([]byte(doc), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBook(t *testing.T) {
	t.Parallel()
	var b script.Book
	ask := script.Ask{Vendor: "openai", Model: "m", Body: []byte(`{"messages":"who"}`)}
	if b.Take(ask) != nil {
		t.Error("an empty book has an answer")
	}
	b.Add(parsed(t, `{"model":"other","answers":[{"parts":[{"text":"no"}]}]}`))
	b.Add(parsed(t, `{"contains":"what","answers":[{"parts":[{"text":"no"}]}]}`))
	queue := b.Add(parsed(t, `{"model":"m","answers":[{"parts":[{"text":"one"}]},{"parts":[{"text":["t","wo"]}]}]}`))
	b.Add(parsed(t, `{"plan":true,"answers":[{"parts":[{"text":"first"}]},{"parts":[{"text":"then"}]}]}`))
	said := func(a *script.Answer) string {
		if a == nil {
			return ""
		}
		return strings.Join(a.Parts[0].Text, "")
	}
	for _, want := range []string{"one", "two", ""} { // a plan answers only who offers tools
		if got := said(b.Take(ask)); got != want {
			t.Errorf("queue: got %q, want %q", got, want)
		}
	}
	ask.Tools = []string{"f"}
	for rounds, want := range []string{"first", "then", "then"} {
		ask.Rounds = rounds
		if got := said(b.Take(ask)); got != want {
			t.Errorf("plan after %d rounds: got %q, want %q", rounds, got, want)
		}
	}
	all := b.All()
	if len(all) != 4 || all[2].Taken != 2 || all[3].Taken != 3 {
		t.Errorf("got %+v", all)
	}
	if !b.Remove(queue) || b.Remove(queue) || len(b.All()) != 3 || !b.Remove("") || len(b.All()) != 0 {
		t.Error("removal does not do what it says")
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		`{"answers":[{"parts":[{"call":{"name":"f","arguments":"{"}},{"redacted":true},{"think":["a"]}]},{"stop":"end"}]}`: "",
		`{}`:               "answers: a script needs one",
		`{"answers":[{}]}`: "answers[0].parts: an answer has parts, a stop or a break",
		`{"answers":[{"stop":"end"},{"parts":[{}]}]}`:                                                              "answers[1].parts[0].think, redacted",
		`{"answers":[{"parts":[{"text":"x","think":"y"}]}]}`:                                                       "2 of them are set",
		`{"answers":[{"parts":[{"search":{"query":"q","pages":[{"url":"u"}]}},{"cited":{"text":"x","page":0}}]}]}`: "",
		`{"answers":[{"parts":[{"search":{"query":"q","pages":[{"url":"u"}]}},{"cited":{"text":"x","page":1}}]}]}`: "answers[0].parts[1].cited.page: 1 of the 1",
		`{"answers":[{"parts":[{"any":[{}]}]}]}`:                                                                   "call.name: needed",
		`{"answers":[{"parts":[{"call":{"name":"f","arguments":[]}}]}]}`:                                           "call.arguments",
		`{"answers":[{"break":{"how":"bend"}}]}`:                                                                   "break.how",
		`{"answers":[{"break":{"how":"cut","after":-1}}]}`:                                                         "break.after",
		`{"answers":[{"break":{"how":"error","status":200}}]}`:                                                     "break.status",
	} {
		err := parsed(t, doc).Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", doc, err, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{"": {}, "a": {"a"}, "a b": {"a ", "b"}, "a  b ": {"a ", " ", "b "}} {
		if got := script.Cut(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	const data = "AAEC" // three bytes
	for name, tc := range map[string]struct{ doc, said, media string }{
		"chat": {
			`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]}`,
			"see", "image/png 3 bytes sha256 ae4b3280",
		},
		"chat text": {`{"role":"tool","tool_call_id":"c","content":"sunny"}`, "sunny", ""},
		"chat file": {
			`{"content":[{"file":{"file_data":"data:application/pdf;base64,` + data + `","filename":"f"}}]}`, "",
			"application/pdf 3 bytes sha256 ae4b3280",
		},
		"chat audio": {`{"content":[{"input_audio":{"data":"` + data + `","format":"wav"}}]}`, "", "audio/wav 3 bytes sha256 ae4b3280"},
		"responses":  {`{"type":"message","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"https://e.org/x.png"}]}`, "see", "https://e.org/x.png"},
		"result":     {`{"type":"function_call_output","call_id":"c","output":"sunny"}`, "sunny", ""},
		"messages": {
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + data + `"}}]},{"type":"text","text":"b"}]}`,
			"a | b", "image/gif 3 bytes sha256 ae4b3280",
		},
		"messages link": {`{"content":[{"type":"image","source":{"type":"url","url":"https://e.org/y"}}]}`, "", "https://e.org/y"},
		"gemini": {
			`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}},{"text":"b"},{"fileData":{"fileUri":"gs://x"}}]}`,
			`{"output":1} | b`, "image/png 3 bytes sha256 ae4b3280; gs://x",
		},
		"no base64": {`{"inlineData":{"mimeType":"image/png","data":"?"}}`, "", "image/png broken"},
	} {
		turn := script.Turn{json.RawMessage(tc.doc)}
		if said, media := turn.Said(), turn.Media(); said != tc.said || media != tc.media {
			t.Errorf("%s: got %q and %q, want %q and %q", name, said, media, tc.said, tc.media)
		}
	}
	turn := script.Turn{json.RawMessage(`{"content":"hi"}`), json.RawMessage(`{"content":"you"}`)}
	if got := turn.Fill("<{{said}}>{{media}}"); got != "<hi | you>" {
		t.Errorf("got %q", got)
	}
}
