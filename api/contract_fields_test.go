package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/vendors"
)

// leftOut are required fields that may be absent, or whose absence has its own message.
var leftOut = map[string]string{
	"POST /v1/engines/{model}/embeddings model":                                       "the path's model counts",
	"POST /v1/images/generations input":                                               "prompt may replace it",
	"POST /v1/images/edits input":                                                     "prompt may replace it",
	"POST /v1beta/models/{model}:generateContent generationConfig":                    "real SDKs leave it out",
	"POST /v1beta/models/{model}:generateContent generationConfig.responseModalities": "real SDKs leave it out",
}

// samples are valid values of the fields whose content is checked.
var samples = map[string]any{
	"POST /v1/videos seconds":           "4",
	"POST /v1/videos input_reference":   asFile{png},
	"POST /v1/video/generations image":  "https://example.com/a.png",
	"POST /vendorC/ binary_data_base64": []any{base64.StdEncoding.EncodeToString([]byte(png))},
}

// alsoObjects are fields that accept an object in addition to the contract's type.
var alsoObjects = map[string]string{
	"POST /v1/audio/speech voice": "the vendor's voices made from samples",
}

// newEverything makes a gateway whose one channel takes every endpoint there is and answers it.
func newEverything(t *testing.T) *gateway {
	t.Helper()
	answer := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{}`), nil
	})
	vendor := providers.Vendor{Name: "every", Relay: answer, Video: struct{ providers.VideoAdapter }{}, Several: true}
	for _, real := range vendors.New(http.DefaultClient) {
		vendor.Endpoints = append(vendor.Endpoints, real.Endpoints...)
	}
	vendors := providers.Catalog{"every": vendor}
	router := router.New(vendors, []providers.Channel{{
		Name: "main", Vendor: "every", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"up-key"},
		Models: map[string]string{providers.AnyModel: ""}, Groups: []string{"default"},
	}}, nil)
	return newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Router, o.Relay = router, relay.New(router, vendors, nil)
		o.DefaultModerationModel, o.DefaultVideoModel = "m", "m"
	})
}

// TestContractFields sends, for every operation of the contract and every field, one request that is right and one that
// is wrong, and one without the field where it is required.
func TestContractFields(t *testing.T) {
	t.Parallel()
	g := newEverything(t)
	asked := 0
	for _, o := range readContract(t) {
		name := o.Method + " " + o.Path
		if o.Method != http.MethodPost {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, field := range o.Fields {
				values := field.valid()
				if sample, ok := samples[name+" "+field.Name]; ok {
					values = []any{sample}
				}
				for _, value := range values {
					if rec := g.do(t, o.request(t, field.Name, value, false)); rec.Code != 200 {
						t.Errorf("%s = %v: got %d %s, want 200", field.Name, value, rec.Code, rec.Body)
					}
				}
				for _, value := range field.invalid(o.Form) {
					if _, object := value.(map[string]any); object && alsoObjects[name+" "+field.Name] != "" {
						continue
					}
					wantFault(t, g.do(t, o.request(t, field.Name, value, false)), field.Name, value)
				}
				if field.Required && leftOut[name+" "+field.Name] == "" {
					wantFault(t, g.do(t, o.request(t, field.Name, nil, true)), field.Name, "nothing")
				}
			}
		})
		asked++
	}
	if asked != 18 {
		t.Errorf("got %d operations, want 18", asked)
	}
}

// wantFault checks for a 400 that names the field: in param where the format has one, in its message in any.
func wantFault(t *testing.T, rec *httptest.ResponseRecorder, field string, value any) {
	t.Helper()
	var body struct {
		Error struct {
			Message string
			Param   *string
		}
		Message string // of vendor C
	}
	decode(t, rec.Body.Bytes(), &body)
	body.Error.Message += body.Message
	place := strings.ReplaceAll(field, "[]", "[0]")
	named := strings.Contains(body.Error.Message, "'"+place)
	if rec.Code != 400 || !named || body.Error.Param != nil && !strings.HasPrefix(*body.Error.Param, place) {
		t.Errorf("%s = %v: got %d %s, want 400 naming it", field, value, rec.Code, rec.Body)
	}
}

// file content and texts of a form that are to be sent as the other.
type (
	asFile struct{ content string }
	asText struct{ content string }
)

// valid are values the contract allows, one of each kind and every word of an enum.
func (f contractField) valid() []any {
	var values []any
	for _, kind := range f.Types {
		switch {
		case f.Name == "input" && kind == "object": // its own members are required
			values = append(values, map[string]any{"messages": []any{}})
		case f.Name == "generationConfig":
			values = append(values, map[string]any{"responseModalities": []any{"TEXT"}})
		case f.Enum != nil && kind == "string":
			for _, word := range f.Enum {
				values = append(values, word)
			}
		case f.Enum != nil && kind == "string[]":
			for _, word := range f.Enum {
				values = append(values, []any{word})
			}
		case f.Name == "generationConfig.responseModalities":
			values = append(values, []any{"TEXT", "IMAGE"})
		case f.Name == "contents":
			values = append(values, []any{map[string]any{"parts": []any{map[string]any{"text": "hi"}}}})
		default:
			values = append(values, sampleOf(kind))
		}
	}
	return values
}

func sampleOf(kind string) any {
	if items, array := strings.CutSuffix(kind, "[]"); array {
		return []any{sampleOf(items)}
	}
	switch kind {
	case "integer":
		return 3
	case "number":
		return 0.5
	case "boolean":
		return true
	case "object":
		return map[string]any{}
	case "binary":
		return asFile{"RIFF"}
	default:
		return "text"
	}
}

// invalid are values of other kinds than the contract allows, and words its enum does not have.
func (f contractField) invalid(form bool) []any {
	if form {
		return f.invalidParts()
	}
	var values []any
	takes := func(kinds ...string) bool {
		return slices.ContainsFunc(f.Types, func(kind string) bool {
			return slices.Contains(kinds, kind) || slices.Contains(kinds, "[]") && strings.HasSuffix(kind, "[]")
		})
	}
	for _, other := range []struct {
		value any
		kinds []string
	}{
		{"words", []string{"string"}},
		{7, []string{"integer", "number"}},
		{1.5, []string{"number"}},
		{true, []string{"boolean"}},
		{map[string]any{}, []string{"object"}},
		{[]any{}, []string{"[]"}},
		{[]any{false}, nil},
	} {
		if !takes(other.kinds...) {
			values = append(values, other.value)
		}
	}
	if f.Enum != nil && takes("string") {
		values = append(values, "no such word")
	}
	if f.Enum != nil && takes("string[]") {
		values = append(values, []any{f.Enum[0], "no such word"})
	}
	return values
}

func (f contractField) invalidParts() []any {
	switch {
	case f.Types[0] == "binary":
		return []any{asText{"RIFF"}}
	case f.Enum != nil:
		return []any{"no such word", asFile{f.Enum[0]}}
	case f.Types[0] == "string":
		return []any{asFile{"text"}}
	default:
		return []any{"words", asFile{"1"}}
	}
}

// request makes a request with the fields the operation requires and the one in question, or without that one.
func (o contractOperation) request(t *testing.T, name string, value any, without bool) *http.Request {
	t.Helper()
	values := make(map[string]any)
	if o.video() {
		values["prompt"] = "a cat" // no field is required, but one of them is
	}
	for _, field := range o.Fields {
		if field.Required && !strings.ContainsAny(field.Name, ".[") {
			values[field.Name] = field.valid()[0]
		}
	}
	if without && !strings.Contains(name, ".") {
		delete(values, name)
	} else if without {
		parent, _, _ := strings.Cut(name, ".")
		values[parent] = map[string]any{}
	} else {
		values = withPlace(values, strings.Split(name, "."), value)
	}
	path := strings.NewReplacer("{model}", "org/m:1").Replace(o.Path)
	if path == "/vendorC/" {
		path += "?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
	}
	if o.Form {
		return formRequest(t, path, values)
	}
	raw, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return request(o.Method, path, string(raw), "vendorA-version", "2023-06-01")
}

// video reports whether the operation creates a video task.
func (o contractOperation) video() bool {
	return o.Path == "/v1/videos" || o.Path == "/v1/video/generations" || o.Path == "/vendorC/"
}

// withPlace puts a value at a place within an object; a step that ends in "[]" is the first item of an array.
func withPlace(object map[string]any, steps []string, value any) map[string]any {
	name, array := strings.CutSuffix(steps[0], "[]")
	if len(steps) == 1 {
		object[name] = value
		return object
	}
	inner := map[string]any{}
	if given, ok := object[name].(map[string]any); ok {
		inner = given
	}
	inner = withPlace(inner, steps[1:], value)
	object[name] = inner
	if array {
		object[name] = []any{inner}
	}
	return object
}

// formRequest makes a multipart request.
func formRequest(t *testing.T, path string, values map[string]any) *http.Request {
	t.Helper()
	var buf bytes.Buffer
	form := multipart.NewWriter(&buf)
	for name, value := range values {
		switch value := value.(type) {
		case asFile:
			writePart(t, form, name, "ä.wav", value.content)
		case asText:
			writePart(t, form, name, "", value.content)
		case string:
			writePart(t, form, name, "", value)
		case []any:
			for _, item := range value {
				raw, _ := item.(string)
				writePart(t, form, name+"[]", "", raw)
				writePart(t, form, name, "", raw)
			}
		default:
			raw, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			writePart(t, form, name, "", string(raw))
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return request(http.MethodPost, path, buf.String(), "Content-Type", form.FormDataContentType())
}

func writePart(t *testing.T, form *multipart.Writer, name, file, content string) {
	t.Helper()
	header := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + name + `"`}}
	if file != "" {
		header = textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="` + name + `"; filename="` + file + `"`},
			"Content-Type":        {"audio/wav"},
		}
	}
	part, err := form.CreatePart(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
}
