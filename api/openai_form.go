package api

import (
	"net/http"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// callForm reads, checks and relays a multipart body: part by part as it came, but for the model's name where the
// channel has another one for it. settle, which may be nil, checks what the operation asks beyond its fields.
func (s *Server) callForm(
	x *exchange, r *http.Request, boundary string, fields *body.Checker, name providers.Operation, settle func(f *body.Form) error,
) error {
	raw, err := s.readBody(x, r)
	if err != nil {
		return err
	}
	f, err := fields.CheckForm(raw, boundary)
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
		Model:    f.Text("model"), ModelAt: f.Span("model"), EncodeModel: func(model string) []byte { return []byte(model) },
		Stream: f.Text("stream") == "true", ContentType: r.Header.Get("Content-Type"), Header: callHeader(r), Body: raw,
		OpenValues: f.Unlisted != nil,
	}
	x.asked.n = body.Whole([]byte(f.Text("n")))
	if err := checkModel(call.Model); err != nil {
		return err
	}
	return s.callListed(x, r, call, f.Unlisted)
}
