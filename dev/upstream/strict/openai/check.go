package openai

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// State is what the vendor keeps, or can tell, of earlier answers. Each is called with ids and contents as they came.
type State struct {
	// Item returns what a stored item is, and its call's id where it has one.
	Item func(id string) (kind, call string, ok bool)
	// Response returns the calls that a stored response, and those before it, made.
	Response func(id string) (calls []string, ok bool)
	// Encrypted reports whether encrypted reasoning was issued here, and whether for the item.
	Encrypted func(id, content string) (issued, same bool)
}

// Checker knows the rules. It is safe for concurrent use.
type Checker struct {
	chat, responses *strict.Shape
	state           State
}

// New returns a checker that asks the state.
func New(state State) *Checker {
	return &Checker{chat: chatShape(), responses: responsesShape(), state: state}
}

// The words of refusals that many rules share.
const (
	invalidValue         = "invalid_value"
	unsupportedParameter = "unsupported_parameter"
	tooLong              = "string_above_max_length"
)

func refuse(code, param, format string, args ...any) *strict.Refusal {
	return &strict.Refusal{Code: code, Param: param, Message: fmt.Sprintf(format, args...)}
}

func unsupported(param string) *strict.Refusal {
	return refuse(unsupportedParameter, param, "Unsupported parameter: '%s' is not supported with this model.", param)
}

// first returns the first finding worth a refusal: at imitators' models other fields may stand.
func first(found []strict.Finding, m Model) *strict.Refusal {
	for _, f := range found {
		if m.ours() || f.Fault != strict.Unknown {
			return say(f)
		}
	}
	return nil
}

func say(f strict.Finding) *strict.Refusal {
	path := f.Path.Bracketed()
	field := path
	if f.Name != "" {
		field = strings.TrimPrefix(path+"."+f.Name, ".")
	}
	switch f.Fault {
	case strict.Unknown:
		return refuse("unknown_parameter", field, "Unknown parameter: '%s'.", field)
	case strict.Missing:
		return refuse("missing_required_parameter", field, "Missing required parameter: '%s'.", field)
	case strict.NoWord:
		return refuse(invalidValue, path, "Invalid value: '%v'. Supported values are: %s.", f.Got, listed(f.Shape.Enum))
	case strict.NoTag:
		if f.Got == nil {
			return refuse("missing_required_parameter", field, "Missing required parameter: '%s'.", field)
		}
		var words []string
		for word := range f.Shape.Of {
			words = append(words, word)
		}
		slices.Sort(words)
		return refuse(invalidValue, field, "Invalid value: '%v'. Supported values are: %s.", f.Got, listed(words))
	case strict.Mistyped:
	}
	wanted := map[strict.Kind]string{
		strict.String: "a string", strict.Number: "a decimal", strict.Integer: "an integer", strict.Bool: "a boolean", strict.Object: "an object",
		strict.Array: "an array",
	}[f.Shape.Kind]
	return refuse("invalid_type", path, "Invalid type for '%s': expected %s, but got %s instead.", path, wanted, kindOf(f.Got))
}

func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "a string"
	case float64:
		if v == float64(int64(v)) {
			return "an integer"
		}
		return "a decimal"
	case bool:
		return "a boolean"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "null"
}

func listed(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	if last := len(quoted) - 1; last > 0 {
		quoted[last] = "and " + quoted[last]
	}
	return strings.Join(quoted, ", ")
}

// long refuses a text that is longer than its field may be.
func long(param, value string, most int) *strict.Refusal {
	if n := len([]rune(value)); n > most {
		return refuse(tooLong, param, "Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.", param, most, n)
	}
	return nil
}

const longestName = 64

// named refuses a name of a function that is none, https://platform.openai.com/docs/api-reference/chat/create#chat_create-tools.
func named(param, name string) *strict.Refusal {
	if refusal := long(param, name, longestName); refusal != nil {
		return refusal
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString(name) {
		return refuse(invalidValue, param, "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	return nil
}

// bounded refuses a number out of its range.
func bounded(v any, param string, least, most float64) *strict.Refusal {
	n, ok := strict.Num(v, param)
	kind := "decimal"
	if n == float64(int64(n)) {
		kind = "integer"
	}
	switch {
	case ok && n < least:
		return refuse(kind+"_below_min_value", param, "Invalid '%s': %s below minimum value. Expected a value >= %v, but got %v instead.", param,
			kind, least, n)
	case ok && n > most:
		return refuse(kind+"_above_max_value", param, "Invalid '%s': %s above maximum value. Expected a value <= %v, but got %v instead.", param,
			kind, most, n)
	}
	return nil
}

// call is one body whose shape is right.
type call struct {
	v     map[string]any
	model Model
	state State
}

// judge asks each rule in turn.
func judge(rules ...func() *strict.Refusal) *strict.Refusal {
	for _, rule := range rules {
		if refusal := rule(); refusal != nil {
			return refusal
		}
	}
	return nil
}

// common is what both endpoints want of sampling and of texts that go with a call.
func (c *call) common() *strict.Refusal {
	const (
		warm   = 2
		longID = 64
	)
	for _, param := range []string{"safety_identifier", "prompt_cache_key"} {
		if refusal := long(param, strict.Text(c.v, param), longID); refusal != nil {
			return refusal
		}
	}
	if refusal := bounded(c.v, "temperature", 0, warm); refusal != nil {
		return refusal
	}
	return bounded(c.v, "top_p", 0, 1)
}

// functions are the declarations; wrapped: within "function", as chat completions have them.
func (c *call) functions(wrapped bool) *strict.Refusal {
	tools, given := c.v["tools"].([]any)
	if given && len(tools) == 0 && wrapped {
		return refuse("empty_array", "tools", "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, tool := range tools {
		if strict.Text(tool, "type") != "function" {
			continue
		}
		path, f := fmt.Sprintf("tools[%d]", i), tool
		if wrapped {
			path, f = path+".function", strict.Map(tool, "function")
		}
		name := strict.Text(f, "name")
		if refusal := named(path+".name", name); refusal != nil {
			return refusal
		}
		m, _ := f.(map[string]any)
		if fault := functionFault(strict.Map(f, "parameters"), m["strict"] == true); fault != "" {
			return refuse("invalid_function_parameters", path+".parameters", "Invalid schema for function '%s': %s", name, fault)
		}
	}
	return nil
}

// choice is about tool_choice; at is where a named choice has its name.
func (c *call) choice(name func(any) string) *strict.Refusal {
	tools := strict.Slice(c.v, "tools")
	for _, param := range []string{"tool_choice", "parallel_tool_calls"} {
		if strict.Has(c.v, param) && len(tools) == 0 && c.v[param] != "none" {
			return refuse("", param, "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", param, param)
		}
	}
	forced := strict.Map(c.v, "tool_choice")
	if strict.Text(forced, "type") != "function" {
		return nil
	}
	wanted := name(forced)
	if !slices.ContainsFunc(tools, func(tool any) bool { return name(tool) == wanted }) {
		return refuse(invalidValue, "tool_choice", "Tool choice '%s' not found in 'tools' parameter.", wanted)
	}
	return nil
}

// effort is about the words of reasoning.
func (c *call) effort(param, word string) *strict.Refusal {
	if word == "" || !c.model.ours() {
		return nil
	}
	if efforts := c.model.efforts(); !slices.Contains(efforts, word) {
		return refuse("unsupported_value", param, "Unsupported value: '%s' does not support '%s' with this model. Supported values are: %s.",
			param, word, listed(efforts))
	}
	return nil
}

// schema is about a format of the answer that has one.
func schema(param, name string, format map[string]any) *strict.Refusal {
	if refusal := named(param+".name", name); refusal != nil {
		return refusal
	}
	if fault := functionFault(strict.Map(format, "schema"), format["strict"] == true); fault != "" {
		return refuse("", param, "Invalid schema for response_format '%s': %s", name, fault)
	}
	return nil
}

// mentionsJSON reports whether any text in v holds the word.
func mentionsJSON(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(strings.ToLower(v), "json")
	case []any:
		return slices.ContainsFunc(v, mentionsJSON)
	case map[string]any:
		return mentionsJSON(v["content"]) || mentionsJSON(v["text"])
	}
	return false
}

// notFound is how the vendor says that it does not have an item.
func notFound(id string, stores bool) *strict.Refusal {
	r := refuse("", "input", "Item with id '%s' not found.", id)
	if !stores {
		r.Message += " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
	}
	r.Status = http.StatusNotFound // https://github.com/can1357/oh-my-pi/issues/41
	return r
}
