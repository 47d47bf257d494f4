package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// newFormRule compiles the schema of a form struct.
func newFormRule[Form any](registry huma.Registry) *rule {
	return newRule(registry, registry.Schema(reflect.TypeFor[Form](), false, ""))
}

// formBody declares a multipart body from its struct.
func formBody[Form any](registry huma.Registry) *huma.RequestBody {
	return &huma.RequestBody{
		Required: true,
		Content:  map[string]*huma.MediaType{"multipart/form-data": {Schema: schemaOf[Form](registry)}},
	}
}

// callForm reads, checks and relays a multipart body: part by part as it came, but for the model's name where the
// channel has another one for it. settle, which may be nil, checks what the operation asks beyond its fields.
func (s *Server) callForm(
	x *exchange, r *http.Request, boundary string, fields *rule, name providers.Operation, settle func(f *checkedForm) error,
) error {
	raw, err := s.readBody(x, r)
	if err != nil {
		return err
	}
	parts, err := parseForm(raw, boundary)
	if err != nil {
		return err
	}
	f, err := checkForm(parts, fields)
	if err != nil {
		return err
	}
	if settle != nil {
		if err := settle(f); err != nil {
			return err
		}
	}
	call := providers.Call{
		Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: name},
		Model:    f.text("model"), ModelAt: f.given["model"].at, EncodeModel: func(model string) []byte { return []byte(model) },
		Stream: f.text("stream") == "true", ContentType: r.Header.Get("Content-Type"), Header: callHeader(r), Body: raw,
		OpenValues: f.unlisted != nil,
	}
	x.asked.n = whole([]byte(f.text("n")))
	if err := checkModel(call.Model); err != nil {
		return err
	}
	return s.callListed(x, r, call, f.unlisted)
}
