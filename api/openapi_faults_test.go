package api_test

import (
	"strings"
	"testing"
)

// answers is the part of the document with the answers of operations.
type answers struct {
	Paths map[string]map[string]struct {
		Responses map[string]declaredAnswer
	}
	Components struct{ Responses map[string]declaredAnswer }
}

type declaredAnswer struct {
	Ref     string `json:"$ref"`
	Headers map[string]any
	Content map[string]struct {
		Schema struct {
			schema

			AnyOf []*schema
		}
	}
}

// answer is what an operation answers with the status.
func (d *answers) answer(path, method, status string) declaredAnswer {
	answer := d.Paths[path][method].Responses[status]
	if name, found := strings.CutPrefix(answer.Ref, "#/components/responses/"); found {
		answer = d.Components.Responses[name]
	}
	return answer
}

// errorSchema is the name of an error's schema, or the names where a request may choose.
func (d *answers) errorSchema(path, method, status string) string {
	content := d.answer(path, method, status).Content["application/json"].Schema
	var names []string
	for _, s := range append(content.AnyOf, &content.schema) {
		if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

// TestFaultsDeclared: every operation declares its errors by their statuses, in the shape of its format, and those of the
// contract's own table among them.
func TestFaultsDeclared(t *testing.T) {
	t.Parallel()
	var document answers
	decode(t, newGateway(t, nil, nil).do(t, request("GET", "/openapi.json", "")).Body.Bytes(), &document)
	shape := func(path string) string {
		switch {
		case strings.HasPrefix(path, "/v1/messages"):
			return "AnthropicError"
		case strings.HasPrefix(path, "/v1beta/"), strings.Contains(path, "{model}:"), strings.HasPrefix(path, "/v1/interactions"),
			strings.HasPrefix(path, "/v1/files/"):
			return "GeminiError"
		case strings.HasPrefix(path, "/vendorC"):
			return "VendorCError"
		case path == "/v1/models", path == "/v1/models/{model}":
			return "OpenAIError AnthropicError GeminiError"
		}
		return "OpenAIError"
	}
	for path, methods := range document.Paths {
		for method, operation := range methods {
			for status := range operation.Responses {
				if want := shape(path); status >= "400" && document.errorSchema(path, method, status) != want {
					t.Errorf("%s %s, %s: got schema %q, want %s", method, path, status, document.errorSchema(path, method, status), want)
				}
			}
			wanted := "401 403 500 default"
			if method == "post" && !strings.HasSuffix(path, "/cancel") {
				wanted += " 400 413 404 429"
			}
			if strings.HasPrefix(path, "/v1/messages") {
				wanted += " 502 504 529"
			} else {
				wanted += " 503"
			}
			if strings.Contains(path, "{") {
				wanted += " 404"
			}
			if strings.HasPrefix(path, "/admin/") { // the key opens everything, and guessing is held back
				wanted = "401 404 429 500 503 default"
				if method != "get" {
					wanted += " 409"
				}
			}
			for status := range strings.FieldsSeq(wanted) {
				if _, declared := operation.Responses[status]; !declared {
					t.Errorf("%s %s declares no %s", method, path, status)
				}
			}
		}
	}
	for _, row := range []struct {
		status, method, path string
		again                bool // it has a Retry-After
	}{
		{"409", "post", "/v1/videos", true},
		{"409", "post", "/vendorC/", true},
		{"409", "patch", "/admin/tokens/{id}", false},
		{"422", "post", "/v1/videos", false},
		{"429", "post", "/v1/videos", true},
		{"503", "get", "/v1/videos/{task_id}", true},
	} {
		if _, declared := document.answer(row.path, row.method, row.status).Headers["Retry-After"]; declared != row.again {
			t.Errorf("%s %s, %s: declares Retry-After: %t", row.method, row.path, row.status, declared)
		}
	}
	for _, row := range []struct{ status, method, path string }{
		{"400", "post", "/v1/chat/completions"},
		{"429", "post", "/v1/chat/completions"},
		{"502", "post", "/v1/chat/completions"},
		{"400", "post", "/v1/videos"},
		{"400", "post", "/v1/video/generations"},
		{"400", "post", "/vendorC/"},
		{"400", "get", "/v1/realtime"},
		{"401", "get", "/v1/models"},
		{"404", "get", "/v1/videos/{task_id}"},
		{"404", "get", "/v1/video/generations/{task_id}"},
		{"404", "get", "/v1/videos/{task_id}/content"},
		{"409", "post", "/v1/videos"},
		{"422", "post", "/v1/videos"},
		{"529", "get", "/v1/models"},
	} {
		if _, declared := document.Paths[row.path][row.method].Responses[row.status]; !declared {
			t.Errorf("%s %s declares no %s", row.method, row.path, row.status)
		}
	}
}
