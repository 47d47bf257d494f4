package gemini

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// Model is what a model's name says about what it takes.
type Model struct {
	Name       string
	generation int // ten times: 25; 0: the name is none of the vendor's, and no rule of a model holds
}

const (
	secondAndHalf = 25
	third         = 30
)

// ModelOf reads a model's name: gemini-2.5-flash, gemini-3-pro-preview.
func ModelOf(name string) Model {
	m := Model{Name: name}
	rest, ok := strings.CutPrefix(name, "gemini-")
	if !ok || rest == "" || rest[0] < '1' || rest[0] > '9' {
		return m
	}
	m.generation = int(rest[0]-'0') * 10
	if len(rest) > 2 && rest[1] == '.' && rest[2] >= '0' && rest[2] <= '9' {
		m.generation += int(rest[2] - '0')
	}
	return m
}

func (m Model) ours() bool { return m.generation > 0 }

// Third reports whether the model signs its first call, or its text, and wants calls signed.
func (m Model) Third() bool  { return m.generation >= third }
func (m Model) second() bool { return m.ours() && m.generation < third }
func (m Model) thinks() bool { return m.generation >= secondAndHalf }
func (m Model) pro() bool    { return strings.Contains(m.Name, "-pro") }

// budgets are the bounds of a thinking budget, https://ai.google.dev/gemini-api/docs/thinking#set-budget.
func (m Model) budgets() (least, most int) {
	switch {
	case m.pro():
		return 128, 32768
	case strings.Contains(m.Name, "flash-lite") && m.second():
		return 512, 24576
	}
	return 1, 24576
}

// parts of a content by what they are.
func calls(content any) []any {
	return slices.DeleteFunc(slices.Clone(strict.Slice(content, "parts")), func(p any) bool { return !strict.Has(p, "functionCall") })
}

func results(content any) int {
	n := 0
	for _, p := range strict.Slice(content, "parts") {
		if strict.Has(p, "functionResponse") {
			n++
		}
	}
	return n
}

// merged is the body with the model's contents that follow each other made one: the vendor's own streamed chats keep one for each chunk
// and send them back so, see https://github.com/googleapis/python-genai/issues/1791 and Chat.processStreamResponse of @google/genai 3.1.0.
func merged(body map[string]any) map[string]any {
	var contents []any
	for _, content := range strict.Slice(body, "contents") {
		if n := len(contents); n > 0 && strict.Text(content, "role") == "model" && strict.Text(contents[n-1], "role") == "model" {
			contents[n-1] = map[string]any{
				"role":  "model",
				"parts": slices.Concat(strict.Slice(contents[n-1], "parts"), strict.Slice(content, "parts")),
			}
			continue
		}
		contents = append(contents, content)
	}
	out := maps.Clone(body)
	out["contents"] = contents
	return out
}

// contents is about turns, https://ai.google.dev/gemini-api/docs/function-calling; the words of the errors are those of
// https://github.com/google-gemini/gemini-cli/issues/3124 and https://github.com/google-gemini/gemini-cli/issues/26956.
func (r *call) contents() *strict.Refusal {
	var before any
	for i, content := range strict.Slice(r.v, "contents") {
		role := strict.Text(content, "role")
		asked := len(calls(before))
		switch {
		case role != "" && role != "user" && role != "model":
			return strict.Refuse("Please use a valid role: user, model.")
		case i == 0 && role == "model" && len(calls(content)) == 0:
			return strict.Refuse("Please ensure that the first content has a user role.")
		case len(strict.Slice(content, "parts")) == 0:
			return strict.Refuse("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
		case results(content) > 0 && (asked == 0 || role == "model"):
			return strict.Refuse("Please ensure that function response turn comes immediately after a function call turn.")
		case asked > 0 && results(content) != asked:
			return strict.Refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		case len(calls(content)) > 0 && (role != "model" || before == nil):
			return strict.Refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		for n, part := range strict.Slice(content, "parts") {
			if refusal := r.part(fmt.Sprintf("contents[%d].parts[%d]", i, n), part); refusal != nil {
				return refusal
			}
		}
		before = content
	}
	if len(calls(before)) > 0 {
		return strict.Refuse("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

// part is about one part: one kind of data, names, media.
func (r *call) part(path string, part any) *strict.Refusal {
	kinds := []string{
		"text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode", "codeExecutionResult",
		"toolCall", "toolResponse",
	}
	m, _ := part.(map[string]any)
	found := ""
	for _, kind := range kinds {
		switch {
		case m[kind] == nil:
		case found != "":
			return strict.Refuse("Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set '%s'", path, kind)
		default:
			found = kind
		}
	}
	field := "* GenerateContentRequest." + path
	uri := strict.Text(m["fileData"], "fileUri")
	switch {
	case found == "" && strict.Text(part, "thoughtSignature") == "":
		return strict.Refuse("%s.data: required oneof field 'data' must have one initialized field\n", field)
	case found == "functionCall" && strict.Text(m[found], "name") == "":
		return strict.Refuse("%s.function_call.name: Name cannot be empty.\n", field)
	case found == "functionResponse" && strict.Text(m[found], "name") == "":
		return strict.Refuse("%s.function_response.name: Name cannot be empty.\n", field)
	case found == "functionResponse" && strict.Has(m[found], "parts") && r.model.second():
		return strict.Refuse("Multimodal function responses are not supported for this model.")
	case found == "fileData" && r.model.ours() && r.model.generation < secondAndHalf && strings.HasPrefix(uri, "http") &&
		!strings.Contains(uri, "generativelanguage.googleapis.com") && !strings.Contains(uri, "youtube.com"):
		return strict.Refuse("Invalid or unsupported file uri: %s", uri)
	}
	if found == "inlineData" {
		if _, err := base64.StdEncoding.DecodeString(strict.Text(m[found], "data")); err != nil {
			return strict.Refuse("Invalid value at '%s.inline_data.data' (TYPE_BYTES), Base64 decoding failed", path)
		}
	}
	return nil
}

// signatures is about thoughtSignature, https://ai.google.dev/gemini-api/docs/thought-signatures: each is one that was issued, on the part
// it came with, or one of two literals; from the third generation on the first call of each step since the last user text has one.
func (r *call) signatures() *strict.Refusal {
	list := strict.Slice(r.v, "contents")
	turn := 0 // where the current one begins
	for i, content := range list {
		if strict.Text(content, "role") != "model" && results(content) == 0 {
			turn = i
		}
		for n, part := range strict.Slice(content, "parts") {
			if refusal := r.signature(fmt.Sprintf("contents[%d].parts[%d]", i, n), part); refusal != nil {
				return refusal
			}
		}
	}
	if !r.model.Third() {
		return nil
	}
	for i := turn; i < len(list); i++ {
		first := calls(list[i])
		if len(first) == 0 || strict.Text(first[0], "thoughtSignature") != "" {
			continue
		}
		// https://github.com/nanbingxyz/5ire/issues/405
		return strict.Refuse("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
			strict.Text(strict.Map(first[0], "functionCall"), "name"), i+1)
	}
	return nil
}

func (r *call) signature(path string, part any) *strict.Refusal {
	signature := strict.Text(part, "thoughtSignature")
	switch signature {
	case "", "skip_thought_signature_validator", "context_engineering_is_the_way_to_go":
		return nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(signature)
	if _, err := base64.RawStdEncoding.DecodeString(plain); err != nil {
		return strict.Refuse("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for %q", path, signature)
	}
	bound := OnText
	if f := strict.Map(part, "functionCall"); f != nil {
		bound = OnCall(strict.Text(f, "name"))
	}
	if issued, unchanged := r.verify(bound, signature); !issued || !unchanged {
		return strict.Refuse("Corrupted thought signature.")
	}
	return nil
}
