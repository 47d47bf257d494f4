package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// contractOperation is one operation as interface.md describes it.
type contractOperation struct {
	method, path string
	form         bool
	fields       []contractField
	// parameters are those of path, query and header.
	parameters []string
}

// contractField is one field of a body. Members of objects follow a dot, those of array items "[]".
type contractField struct {
	name, note string
	required   bool
	contractType
}

// contractType is what the contract lets a field be.
type contractType struct {
	kinds []string // string, integer, number, boolean, object, binary, and array of any of them as in "string[]"
	enum  []string // of strings, or of the strings of an array
}

var (
	headline  = regexp.MustCompile(`^### .*?(?:: (GET|POST) (\S+))?$`)
	described = regexp.MustCompile("`([a-z0-9_]+)`([^`]*)")
	inPath    = regexp.MustCompile(`\{(\w+)\}`)
)

// readContract reads the operations from the committed part of interface.md.
func readContract(t *testing.T) []*contractOperation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all, section []*contractOperation // section: those of the current headline
	add := func(method, path string) *contractOperation {
		o := &contractOperation{method: method, path: path}
		for _, found := range inPath.FindAllStringSubmatch(path, -1) {
			o.parameters = append(o.parameters, found[1])
		}
		all, section = append(all, o), append(section, o)
		return o
	}
	var columns []string // of the current table
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if found := headline.FindStringSubmatch(line); found != nil {
			section, columns = nil, nil
			if found[1] != "" {
				add(found[1], found[2])
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		switch {
		case strings.HasPrefix(line, "| Field ") || strings.HasPrefix(line, "| Method "):
			columns = cells
		case strings.HasPrefix(line, "|--") || line == "":
		case strings.HasPrefix(line, "|") && columns[0] == "Field":
			last := section[len(section)-1]
			last.fields = append(last.fields, tableFields(cells)...)
		case strings.HasPrefix(line, "|"):
			addRow(add(cells[0], cells[1]), cells[2:])
		default:
			columns = nil
			for _, o := range section {
				o.addProse(line, all)
			}
		}
	}
	return all
}

// tableFields reads a row of a table of fields.
func tableFields(cells []string) []contractField {
	field := contractField{name: cells[0], required: strings.HasPrefix(cells[2], "yes"), contractType: parseType(cells[1])}
	if len(cells) > 3 {
		field.note = strings.TrimSpace(strings.Trim(cells[3], "|"))
	}
	fields := []contractField{field}
	if strings.Contains(strings.Join(cells, " "), "has `role` (string) and `content` (array of objects with `text` string)") {
		fields = append(fields, member(field.name+"[].role", "string"), member(field.name+"[].content", "object[]"), member(field.name+"[].content[].text", "string"))
	}
	if strings.Contains(strings.Join(cells, " "), "have `role` (string) and `parts` (array of objects with `text` string)") {
		fields = append(fields, member(field.name+"[].role", "string"), member(field.name+"[].parts", "object[]"), member(field.name+"[].parts[].text", "string"))
	}
	return fields
}

func member(name, kind string) contractField {
	return contractField{name: name, contractType: contractType{kinds: []string{kind}}}
}

// addRow reads what a row of a table of operations says of its input.
func addRow(o *contractOperation, cells []string) {
	input := cells[0]
	switch {
	case o.method == "GET":
		for _, found := range regexp.MustCompile("`([\\w-]+)` \\(").FindAllStringSubmatch(input, -1) {
			o.parameters = append(o.parameters, found[1])
		}
	case input == "multipart/form-data, required" || input == "application/json, required":
		o.form = strings.HasPrefix(input, "multipart")
		o.fields = append(o.fields, proseFields(cells[1])...)
	case strings.HasPrefix(input, "multipart/form-data: "):
		o.form = true
		o.fields = append(o.fields, proseFields(input)...)
	}
}

// addProse reads a sentence about the operations of a section.
func (o *contractOperation) addProse(line string, all []*contractOperation) {
	switch {
	case strings.HasPrefix(line, "Body: "), strings.HasPrefix(line, "Create body") && o.path == "/v1/video/generations",
		strings.HasPrefix(line, "JSON body, required. ") && strings.Contains(line, "Fields: "):
		_, fields, _ := strings.Cut(line, ": ")
		o.fields = append(o.fields, proseFields(fields)...)
	case strings.HasPrefix(line, "Query parameters"):
		query, rest, _ := strings.Cut(line, "JSON body fields")
		for _, found := range regexp.MustCompile("`(\\w+)` \\(").FindAllStringSubmatch(query, -1) {
			o.parameters = append(o.parameters, found[1])
		}
		rest, _, _ = strings.Cut(rest, "Responses:")
		o.fields = append(o.fields, proseFields(rest)...)
	case strings.HasPrefix(line, "Headers: "):
		for _, found := range regexp.MustCompile("`([\\w-]+)` \\(").FindAllStringSubmatch(line, -1) {
			o.parameters = append(o.parameters, found[1])
		}
	case strings.Contains(line, "Optional query `model`"):
		o.parameters = append(o.parameters, "model")
	case strings.Contains(line, "Same shape as image generation with these differences: content array items carry `image` (string, image URL) "+
		"and `text` (string); `parameters` additionally has `n` (integer) and has no `size`."):
		like := all[slices.IndexFunc(all, func(o *contractOperation) bool { return o.path == "/v1/images/generations" })]
		o.fields = append(o.fields, member("input.messages[].content[].image", "string"), member("parameters.n", "integer"))
		for _, field := range like.fields {
			if field.name != "parameters.size" {
				o.fields = append(o.fields, field)
			}
		}
	}
}

// proseFields reads fields from a sentence: a name in backticks and what follows it.
func proseFields(text string) []contractField {
	var fields []contractField
	for _, found := range described.FindAllStringSubmatch(text, -1) {
		about := found[2]
		field := contractField{name: found[1], required: strings.Contains(about, "(required")}
		about, _, _ = strings.Cut(about, ". ")
		about, _, _ = strings.Cut(about, " (")
		about, _, _ = strings.Cut(about, ", default")
		about = strings.Trim(about, " ,;.")
		if field.required && about == "" {
			about = "binary"
		}
		// "string, text to convert": a type is one word, and what follows a comma is a note.
		if head, note, found := strings.Cut(about, ", "); found && isKind(head) {
			about, field.note = head, note
		}
		field.contractType = parseType(about)
		fields = append(fields, field)
	}
	return fields
}

func isKind(word string) bool {
	switch strings.TrimSuffix(word, "[]") {
	case "string", "integer", "number", "boolean", "object", "array", "binary":
		return true
	default:
		return false
	}
}

// parseType reads a type as the contract writes it: "string or object[]", "low, medium, high", "array of word, segment",
// "one of mp3, opus", "none, auto, required, or object".
func parseType(text string) contractType {
	text, array := strings.CutPrefix(text, "array of ")
	text = strings.TrimPrefix(text, "one of ")
	var parsed contractType
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		switch {
		case word == "or":
		case word == "array":
			parsed.kinds = append(parsed.kinds, "object[]")
		case isKind(word):
			parsed.kinds = append(parsed.kinds, word)
		default:
			parsed.enum = append(parsed.enum, word)
		}
	}
	switch {
	case array:
		parsed.kinds = append(parsed.kinds, "string[]")
	case parsed.enum != nil:
		parsed.kinds = append(parsed.kinds, "string")
	}
	return parsed
}

// TestReadContract holds the reader itself to what the contract says in numbers.
func TestReadContract(t *testing.T) {
	t.Parallel()
	got := make(map[string]string)
	for _, o := range readContract(t) {
		var fields []string
		for _, field := range o.fields {
			text := field.name + ":" + strings.Join(field.kinds, "|")
			if field.enum != nil {
				text += "(" + strings.Join(field.enum, "|") + ")"
			}
			if field.required {
				text += "!"
			}
			fields = append(fields, text)
		}
		got[o.method+" "+o.path] = strings.Join(fields, " ")
	}
	if len(got) != 24 {
		t.Errorf("got %d operations, want 24: %v", len(got), got)
	}
	for operation, want := range map[string]string{
		"POST /v1/embeddings":                 "model:string! input:string|string[]! encoding_format:string(float|base64) dimensions:integer",
		"POST /v1/engines/{model}/embeddings": "model:string! input:string|string[]! encoding_format:string(float|base64) dimensions:integer",
		"POST /v1/completions": "model:string! prompt:string|string[]! max_tokens:integer temperature:number top_p:number n:integer stream:boolean " +
			"stop:string|string[] suffix:string echo:boolean",
		"POST /v1/audio/transcriptions": "file:binary! model:string! language:string prompt:string response_format:string(json|text|srt|verbose_json|vtt) " +
			"temperature:number timestamp_granularities:string[](word|segment)",
		"POST /v1/audio/translations": "file:binary! model:string! prompt:string response_format:string temperature:number",
		"POST /v1/audio/speech": "model:string! input:string! voice:string(alloy|echo|fable|onyx|nova|shimmer)! " +
			"response_format:string(mp3|opus|aac|flac|wav|pcm) speed:number",
		"POST /v1/rerank":      "model:string! query:string! documents:string[]|object[]! top_n:integer return_documents:boolean",
		"POST /v1/moderations": "input:string|string[]! model:string",
		"POST /v1/images/edits": "input.messages[].content[].image:string parameters.n:integer model:string! input:object! input.messages:object[]! " +
			"input.messages[].role:string input.messages[].content:object[] input.messages[].content[].text:string parameters:object " +
			"parameters.negative_prompt:string parameters.prompt_extend:boolean parameters.watermark:boolean",
		"POST /v1/responses/compact": "model:string! input:string|object[] instructions:string previous_response_id:string",
		"POST /v1/videos":            "model:string prompt:string seconds:string input_reference:binary",
		"POST /vendorC/":             "req_key:string prompt:string binary_data_base64:string[]",
		"GET /v1/realtime":           "",
	} {
		if got[operation] != want {
			t.Errorf("%s:\ngot  %s\nwant %s", operation, got[operation], want)
		}
	}
}
