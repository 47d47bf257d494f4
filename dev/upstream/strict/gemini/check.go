package gemini

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// Verify reports whether a signature was issued here, and whether for its place: OnText or OnCall(name).
type Verify func(bound, signature string) (issued, unchanged bool)

// OnText is what a signature of a text is bound to.
const OnText = "text"

// OnCall is what a signature of a call is bound to.
func OnCall(name string) string { return "call:" + name }

// Checker knows the rules. It is safe for concurrent use.
type Checker struct {
	generate, count, embed, batch *strict.Shape
	verify                        Verify
}

// New returns a checker that asks verify about signatures.
func New(verify Verify) *Checker {
	return &Checker{generate: generateShape(), count: countShape(), embed: embedShape(), batch: batchShape(), verify: verify}
}

// Body is a request as the vendor reads it: names in camel case, lists where an item replaced one. Other reports whether that is another
// than what came.
type Body struct {
	Fields map[string]any
	Other  bool
}

// Generate judges the body of generateContent and streamGenerateContent; nil: it is taken.
func (c *Checker) Generate(model string, v map[string]any) (Body, *strict.Refusal) {
	body, refusal := read(c.generate, v)
	if refusal != nil {
		return body, refusal
	}
	return body, c.rules(model, body.Fields)
}

// Count judges the body of countTokens: contents, or a whole call.
func (c *Checker) Count(model string, v map[string]any) (Body, *strict.Refusal) {
	body, refusal := read(c.count, v)
	if refusal != nil {
		return body, refusal
	}
	whole := strict.Map(body.Fields, "generateContentRequest")
	switch {
	case whole == nil:
		return body, (&call{v: body.Fields, model: ModelOf(model), verify: c.verify}).contents()
	case strict.Has(body.Fields, "contents"):
		return body, strict.Refuse("* CountTokensRequest: only one of contents and generate_content_request can be set\n")
	case !strings.HasPrefix(strict.Text(whole, "model"), "models/"):
		return body, strict.Refuse("* CountTokensRequest.generate_content_request.model: unexpected model name format\n")
	}
	return body, c.rules(model, whole)
}

// Embed judges the body of embedContent, or of batchEmbedContents.
func (c *Checker) Embed(v map[string]any, batch bool) (Body, *strict.Refusal) {
	if !batch {
		return read(c.embed, v)
	}
	body, refusal := read(c.batch, v)
	if refusal != nil {
		return body, refusal
	}
	for i, one := range strict.Slice(body.Fields, "requests") {
		if !strings.HasPrefix(strict.Text(one, "model"), "models/") {
			return body, strict.Refuse("* BatchEmbedContentsRequest.requests[%d].model: unexpected model name format\n", i)
		}
	}
	return body, nil
}

func read(shape *strict.Shape, v map[string]any) (Body, *strict.Refusal) {
	out, other := normal(shape, v)
	body, _ := out.(map[string]any)
	return Body{body, other}, say(shape.Check(body))
}

// say lists findings as the vendor's JSON reader does: all of them, each with the path of its object.
func say(found []strict.Finding) *strict.Refusal {
	if len(found) == 0 {
		return nil
	}
	refusal := new(strict.Refusal)
	var lines []string
	for _, f := range found {
		path := where(f.Path)
		var line string
		switch _, list := f.Got.([]any); {
		case f.Fault == strict.Unknown:
			line = fmt.Sprintf("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", f.Name, at(path))
		case list && len(f.Path) > 0:
			name, _ := f.Path[len(f.Path)-1].(string)
			path = where(f.Path[:len(f.Path)-1])
			line = fmt.Sprintf("Invalid JSON payload received. Unknown name %q%s: Proto field is not repeating, cannot start list.", snake(name),
				at(path))
		default:
			value, _ := json.Marshal(f.Got) // it was decoded from JSON
			line = fmt.Sprintf("Invalid value%s (%s), %s", at(path), kindOf(f), value)
		}
		lines = append(lines, line)
		refusal.Violations = append(refusal.Violations, strict.Violation{Field: path, Description: line})
	}
	refusal.Message = strings.Join(lines, "\n")
	return refusal
}

func at(path string) string {
	if path == "" {
		return ""
	}
	return " at '" + path + "'"
}

func where(p strict.Path) string {
	named := make(strict.Path, len(p))
	for i, step := range p {
		named[i] = step
		if name, ok := step.(string); ok {
			named[i] = snake(name)
		}
	}
	return named.Bracketed()
}

func kindOf(f strict.Finding) string {
	switch {
	case f.Fault == strict.NoWord:
		name, _ := f.Path[len(f.Path)-1].(string)
		return "type.googleapis.com/google.ai.generativelanguage.v1beta." + strings.ToUpper(name[:min(1, len(name))]) + name[min(1, len(name)):]
	case f.Shape.Kind == strict.String:
		return "TYPE_STRING"
	case f.Shape.Kind == strict.Bool:
		return "TYPE_BOOL"
	case f.Shape.Kind == strict.Number:
		return "TYPE_INT32"
	}
	return "TYPE_MESSAGE"
}

// call is one body whose shape is right.
type call struct {
	v      map[string]any
	model  Model
	verify Verify
}

func (c *Checker) rules(model string, body map[string]any) *strict.Refusal {
	r := &call{v: merged(body), model: ModelOf(model), verify: c.verify}
	for _, rule := range []func() *strict.Refusal{r.functions, r.toolConfig, r.config, r.thinking, r.contents, r.signatures} {
		if refusal := rule(); refusal != nil {
			return refusal
		}
	}
	return nil
}

// functions is about declarations.
func (r *call) functions() *strict.Refusal {
	name := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)
	var names []string
	for i, tool := range strict.Slice(r.v, "tools") {
		for n, f := range strict.Slice(tool, "functionDeclarations") {
			field := fmt.Sprintf("GenerateContentRequest.tools[%d].function_declarations[%d]", i, n)
			own := strict.Text(f, "name")
			switch {
			case !name.MatchString(own):
				return strict.Refuse("* %s.name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.\n", field)
			case slices.Contains(names, own):
				return strict.Refuse("Duplicate function declaration found: %s", own)
			case strict.Has(f, "parameters") && strict.Has(f, "parametersJsonSchema"):
				return strict.Refuse("* %s: only one of parameters and parameters_json_schema can be set\n", field)
			}
			names = append(names, own)
			if fault := schemaFault(field+".parameters", strict.Map(f, "parameters")); fault != "" {
				return strict.Refuse("* %s\n", fault)
			}
		}
	}
	return nil
}

// schemaFault says what of a schema of the vendor's own language does not hold together.
func schemaFault(path string, schema map[string]any) string {
	properties := strict.Map(schema, "properties")
	switch kind := strings.ToUpper(strict.Text(schema, "type")); {
	case schema == nil:
		return ""
	case kind == "OBJECT" && strict.Has(schema, "properties") && len(properties) == 0:
		return path + ".properties: should be non-empty for OBJECT type"
	case kind == "ARRAY" && !strict.Has(schema, "items"):
		return path + ".items: missing field."
	case kind == "STRING" && strict.Has(schema, "format") && schema["format"] != "enum" && schema["format"] != "date-time":
		return path + ".format: only 'enum' and 'date-time' are supported for STRING type"
	}
	for i, name := range strict.Slice(schema, "required") {
		if s, _ := name.(string); properties[s] == nil {
			return fmt.Sprintf("%s.required[%d]: property is not defined", path, i)
		}
	}
	for name := range properties {
		if fault := schemaFault(path+".properties["+name+"]", strict.Map(properties, name)); fault != "" {
			return fault
		}
	}
	return schemaFault(path+".items", strict.Map(schema, "items"))
}

func (r *call) declared() []string {
	var names []string
	for _, tool := range strict.Slice(r.v, "tools") {
		for _, f := range strict.Slice(tool, "functionDeclarations") {
			names = append(names, strict.Text(f, "name"))
		}
	}
	return names
}

func (r *call) toolConfig() *strict.Refusal {
	config := strict.Map(strict.Map(r.v, "toolConfig"), "functionCallingConfig")
	if config == nil {
		return nil
	}
	names, allowed := r.declared(), strict.Slice(config, "allowedFunctionNames")
	mode := strict.Text(config, "mode")
	switch {
	case len(names) == 0:
		return strict.Refuse("Function calling config is set without function_declarations.")
	case len(allowed) > 0 && mode != "ANY" && mode != "VALIDATED":
		return strict.Refuse("Allowed function names are only supported with function calling mode ANY or VALIDATED.")
	}
	for _, name := range allowed {
		if s, _ := name.(string); !slices.Contains(names, s) {
			return strict.Refuse("Allowed function name '%s' is not in the function declarations.", s)
		}
	}
	return nil
}

// config is about generationConfig, https://ai.google.dev/api/generate-content#generationconfig.
func (r *call) config() *strict.Refusal {
	const (
		field    = "* GenerateContentRequest.generation_config"
		mostStop = 5
		mostWarm = 2
		mostN    = 8
	)
	config := strict.Map(r.v, "generationConfig")
	kind := strict.Text(config, "responseMimeType")
	warm, _ := strict.Num(config, "temperature")
	n, several := strict.Num(config, "candidateCount")
	schema := strict.Has(config, "responseSchema") || strict.Has(config, "responseJsonSchema")
	switch {
	case len(strict.Slice(config, "stopSequences")) > mostStop:
		return strict.Refuse(field + ".stop_sequences: the number of stop sequences must not exceed 5\n")
	case warm < 0 || warm > mostWarm:
		return strict.Refuse(field + ".temperature: temperature must be in the range [0.0, 2.0].\n")
	case several && (n < 1 || n > mostN):
		return strict.Refuse(field + ".candidate_count: candidate_count must be in the range [1, 8].\n")
	case strict.Has(config, "responseSchema") && strict.Has(config, "responseJsonSchema"):
		return strict.Refuse(field + ": only one of response_schema and response_json_schema can be set\n")
	case schema && kind != "application/json" && kind != "text/x.enum":
		return strict.Refuse(field + ".response_schema: only allowed when response_mime_type is application/json or text/x.enum\n")
	case kind != "" && kind != "text/plain" && kind != "application/json" && kind != "text/x.enum":
		return strict.Refuse(field+".response_mime_type: allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`. (%s)\n", kind)
	case kind == "application/json" && len(r.declared()) > 0 && r.model.second():
		return strict.Refuse("Function calling with a response mime type: 'application/json' is unsupported")
	}
	if fault := schemaFault("GenerateContentRequest.generation_config.response_schema", strict.Map(config, "responseSchema")); fault != "" {
		return strict.Refuse("* %s\n", fault)
	}
	if siblings(config["responseJsonSchema"]) {
		return strict.Refuse(field + ".response_json_schema: a schema with $ref cannot have other fields than those that start with $\n")
	}
	return nil
}

// siblings reports whether a $ref has company that it must not have, https://ai.google.dev/api/generate-content#FIELDS.response_json_schema.
func siblings(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, siblings)
	case map[string]any:
		_, refers := v["$ref"].(string)
		for name, inner := range v {
			if refers && !strings.HasPrefix(name, "$") || siblings(inner) {
				return true
			}
		}
	}
	return false
}

// thinking is about thinkingConfig, https://ai.google.dev/gemini-api/docs/thinking.
func (r *call) thinking() *strict.Refusal {
	config := strict.Map(strict.Map(r.v, "generationConfig"), "thinkingConfig")
	budget, hasBudget := strict.Num(config, "thinkingBudget")
	level := strict.Text(config, "thinkingLevel")
	switch {
	case config == nil || !r.model.ours():
		return nil
	case !r.model.thinks():
		return strict.Refuse("Thinking is not enabled for models/%s", r.model.Name)
	case hasBudget && level != "":
		return strict.Refuse("You can only set only one of thinking budget and thinking level.")
	case level != "" && !r.model.Third():
		return strict.Refuse("Thinking level is not supported for this model.")
	case strings.EqualFold(level, "minimal") && r.model.pro():
		return strict.Refuse("Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.")
	case !hasBudget || budget == -1:
		return nil
	}
	least, most := r.model.budgets()
	switch {
	case budget == 0 && !r.model.pro():
		if config["includeThoughts"] == true {
			return strict.Refuse("Thinking_config.include_thoughts is only enabled when thinking is enabled.")
		}
		return nil
	case int(budget) < least || int(budget) > most:
		return strict.Refuse("The thinking budget %d is invalid. Please choose a value between %d and %d.", int(budget), least, most)
	}
	return nil
}
