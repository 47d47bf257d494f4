package strict_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/anthropic"
	"modelrelay/dev/upstream/strict/gemini"
	"modelrelay/dev/upstream/strict/openai"
)

// written is a line of the product's golden files: a call that a translation wrote, or the field that it refused.
type written struct {
	Client, Began, Upstream, Model, Refused string
	Call                                    map[string]any
}

// judges judge calls by upstream. State was issued where it looks like sig:TEXT, data, enc: and, in base64, gsig:BOUND.
func judges() map[string]func(model string, call map[string]any) *strict.Refusal {
	messages := anthropic.New(func(kind, bound, seal string) (issued, unchanged bool) {
		if kind == anthropic.Redacted {
			return seal == "data", seal == "data"
		}
		return strings.HasPrefix(seal, "sig:"), seal == "sig:"+bound
	})
	chats := openai.New(openai.State{
		Item:      func(string) (kind, call string, ok bool) { return "", "", false },
		Response:  func(string) (calls []string, ok bool) { return nil, false },
		Encrypted: func(id, content string) (issued, same bool) { return content == "enc:", content == "enc:"+id },
	})
	generate := gemini.New(func(bound, signature string) (issued, unchanged bool) {
		switch signature {
		case "Z3NpZzpjYWxsOmdldF93ZWF0aGVy":
			return true, bound == gemini.OnCall("get_weather")
		case "Z3NpZzpjYWxsOmY=":
			return true, bound == gemini.OnCall("f")
		}
		return false, false
	})
	return map[string]func(string, map[string]any) *strict.Refusal{
		"messages":  func(_ string, call map[string]any) *strict.Refusal { return messages.Check(call, false) },
		"chat":      func(_ string, call map[string]any) *strict.Refusal { return chats.Chat(call) },
		"responses": func(_ string, call map[string]any) *strict.Refusal { return chats.Responses(call) },
		"gemini": func(model string, call map[string]any) *strict.Refusal {
			_, refusal := generate.Generate(model, call)
			return refusal
		},
	}
}

// TestPairs: every call that the product writes for an upstream, from a client of another format, is one that the upstream takes. The
// files are another module's, whose changes go test does not see: -count=1.
func TestPairs(t *testing.T) {
	t.Parallel()
	const golden = "../../../providers/translate/testdata"
	files, err := filepath.Glob(filepath.Join(golden, "pairs", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no calls: %v", err)
	}
	for _, file := range append(files, filepath.Join(golden, "goeson.jsonl")) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		judged, lines := judges(), bufio.NewScanner(bytes.NewReader(content))
		lines.Buffer(nil, len(content)+1)
		for n := 1; lines.Scan(); n++ {
			var w written
			if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
				t.Fatal(err)
			}
			if w.Refused != "" {
				continue
			}
			if refusal := judged[w.Upstream](w.Model, w.Call); refusal != nil {
				t.Errorf("%s:%d: %s client, %s: refused with %q (%s)\n%s", filepath.Base(file), n, w.Client, w.Model, refusal.Message, refusal.Param,
					lines.Bytes())
			}
		}
	}
}
