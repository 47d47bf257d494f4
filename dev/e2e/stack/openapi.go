package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// OpenAPICheck holds every answer of a gateway that a client of this process reads to the OpenAPI document.
type OpenAPICheck struct {
	next       http.RoundTripper
	operations []operation
	components map[string]response
	schemas    *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema // by pointer
	answers  int
	wrong    map[string]string // what is wrong, and an answer that shows it
}

// operation is one path of the document.
type operation struct {
	template string
	path     *regexp.Regexp
	methods  map[string]struct {
		Responses map[string]response `json:"responses"`
	}
}

// response is what the document declares for a status.
type response struct {
	Ref     string                     `json:"$ref"`
	Content map[string]json.RawMessage `json:"content"`
}

const (
	// documentName is the address of the document among the schemas.
	documentName = "openapi.json"
	// maxAnswer is how much of an answer is kept to be checked, larger than any JSON of these tests.
	maxAnswer = 8 << 20
)

// NewOpenAPICheck asks the gateway's binary for its document.
func NewOpenAPICheck(binary string, next http.RoundTripper) (*OpenAPICheck, error) {
	cmd := exec.Command(binary, "openapi", "--format", "json")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("print the OpenAPI document: %w", err)
	}
	var document struct {
		Paths      map[string]json.RawMessage `json:"paths"`
		Components struct {
			Responses map[string]response `json:"responses"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	d := &OpenAPICheck{
		next: next, components: document.Components.Responses, schemas: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema),
		wrong: make(map[string]string),
	}
	if err := d.schemas.AddResource(documentName, whole); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	for template, item := range document.Paths {
		o := operation{template: template, path: pathPattern(template)}
		if err := json.Unmarshal(item, &o.methods); err != nil {
			return nil, fmt.Errorf("read %s of the OpenAPI document: %w", template, err)
		}
		d.operations = append(d.operations, o)
	}
	// Of several that fit, the one with the most literal text is meant.
	slices.SortFunc(d.operations, func(a, b operation) int { return literals(b.template) - literals(a.template) })
	return d, nil
}

var parameter = regexp.MustCompile(`\\\{\w+\\\}`)

// pathPattern matches the paths of a template. The name of a model may hold slashes.
func pathPattern(template string) *regexp.Regexp {
	pattern := regexp.QuoteMeta(template)
	pattern = strings.ReplaceAll(pattern, `\{model\}`, `.+`)
	return regexp.MustCompile("^" + parameter.ReplaceAllString(pattern, `[^/]+`) + "$")
}

func literals(template string) int {
	return len(regexp.MustCompile(`\{\w+\}`).ReplaceAllString(template, ""))
}

// RoundTrip implements [http.RoundTripper].
func (d *OpenAPICheck) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := d.next.RoundTrip(req)
	if err != nil || resp.Header.Get("X-Request-Id") == "" { // not a gateway's
		return resp, err
	}
	pointer, err := d.declared(req, resp)
	d.mu.Lock()
	d.answers++
	d.mu.Unlock()
	if err != nil {
		d.report(req, resp, err, nil)
	}
	if pointer != "" {
		resp.Body = &checkedBody{ReadCloser: resp.Body, whole: func(body []byte) { d.check(req, resp, pointer, body) }}
	}
	return resp, nil
}

// declared returns the pointer to the schema of a JSON answer, "" where there is none to check.
func (d *OpenAPICheck) declared(req *http.Request, resp *http.Response) (string, error) {
	at := slices.IndexFunc(d.operations, func(o operation) bool { return o.path.MatchString(req.URL.EscapedPath()) })
	if at < 0 {
		return "", nil
	}
	o := d.operations[at]
	method, ok := o.methods[strings.ToLower(req.Method)]
	if !ok {
		return "", nil // 405, and HEAD, which the document leaves to GET
	}
	status := fmt.Sprint(resp.StatusCode)
	declared, ok := method.Responses[status]
	if !ok {
		if resp.StatusCode < http.StatusBadRequest {
			return "", errors.New("the status is not declared")
		}
		status = "default"
		if declared, ok = method.Responses[status]; !ok {
			return "", errors.New("the status is not declared, nor is there a default")
		}
	}
	pointer := "/paths/" + escaped(o.template) + "/" + strings.ToLower(req.Method) + "/responses/" + status
	if declared.Ref != "" {
		pointer = strings.TrimPrefix(declared.Ref, "#")
		found, err := d.lookUp(pointer)
		if err != nil {
			return "", err
		}
		declared = found
	}
	if resp.Header.Get("Content-Type") == "" && resp.ContentLength == 0 {
		return "", nil
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return "", fmt.Errorf("Content-Type %q: %w", resp.Header.Get("Content-Type"), err)
	}
	for _, name := range []string{kind, strings.SplitN(kind, "/", 2)[0] + "/*", "*/*"} {
		if _, ok := declared.Content[name]; !ok {
			continue
		}
		if kind != "application/json" {
			return "", nil
		}
		return pointer + "/content/" + escaped(name) + "/schema", nil
	}
	return "", fmt.Errorf("the Content-Type %s is not declared", kind)
}

// lookUp reads a declared answer that stands among the components.
func (d *OpenAPICheck) lookUp(pointer string) (response, error) {
	found, ok := d.components[strings.TrimPrefix(pointer, "/components/responses/")]
	if !ok {
		return response{}, fmt.Errorf("%s is not in the document", pointer)
	}
	return found, nil
}

// escaped is a name as a part of a JSON pointer.
func escaped(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// garbage is the JSON of a fake upstream with the rule to answer half of one; it passes as it is.
const garbage = `{"id": "half an ans`

// check holds a whole JSON answer to its schema.
func (d *OpenAPICheck) check(req *http.Request, resp *http.Response, pointer string, body []byte) {
	if string(body) == garbage {
		return
	}
	schema, err := d.schema(pointer)
	if err == nil {
		var value any
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err == nil {
			err = schema.Validate(value)
		}
	}
	if err != nil {
		d.report(req, resp, err, body)
	}
}

// schema compiles each schema once.
func (d *OpenAPICheck) schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if schema, ok := d.compiled[pointer]; ok {
		return schema, nil
	}
	schema, err := d.schemas.Compile(documentName + "#" + (&url.URL{Path: pointer}).EscapedPath())
	if err != nil {
		return nil, fmt.Errorf("compile the schema: %w", err)
	}
	d.compiled[pointer] = schema
	return schema, nil
}

// report keeps one example of each thing that is wrong.
func (d *OpenAPICheck) report(req *http.Request, resp *http.Response, wrong error, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := fmt.Sprintf("%s %s, %d: %v", req.Method, req.URL.Path, resp.StatusCode, wrong)
	if len(d.wrong) < 50 {
		d.wrong[key] = fmt.Sprintf("%.500s", body)
	}
}

// Verdict prints what is wrong and returns whether nothing is.
func (d *OpenAPICheck) Verdict() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(os.Stderr, "%d answers were held to the OpenAPI document\n", d.answers)
	for what, body := range d.wrong {
		fmt.Fprintf(os.Stderr, "--- FAIL: not as the OpenAPI document has it: %s\n    %s\n", what, body)
	}
	return len(d.wrong) == 0
}

// checkedBody hands on what was read when all of it was.
type checkedBody struct {
	io.ReadCloser

	kept  bytes.Buffer
	whole func([]byte)
	once  sync.Once
}

// Read implements [io.Reader].
func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.kept.Len() <= maxAnswer {
		b.kept.Write(p[:n])
	}
	if errors.Is(err, io.EOF) && b.kept.Len() <= maxAnswer {
		b.once.Do(func() { b.whole(b.kept.Bytes()) })
	}
	return n, err
}
