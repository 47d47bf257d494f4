package api

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/activities"
	"modelrelay/api/anthropic"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/api/videos"
	"modelrelay/providers"
)

// Document returns the OpenAPI document.
func Document() *huma.OpenAPI { return New(Options{}).api.OpenAPI() }

// RenderFault shows a fault as an answer does.
func RenderFault(format providers.Format, fault *providers.Fault, requestID string) (int, http.Header, []byte) {
	rec := answer(format, requestID, func(x *edge.Request) { x.Fail(fault) })
	return rec.Code, rec.Header(), rec.Body.Bytes()
}

// StreamError is the event that ends a failed stream.
func StreamError(format providers.Format, fault *providers.Fault) []byte {
	return answer(format, "req_1", func(x *edge.Request) { _, _ = x.Write(slices.Concat(x.FaultEvents(fault)...)) }).Body.Bytes()
}

// answer is that of one request of a format.
func answer(format providers.Format, requestID string, serve func(x *edge.Request)) *httptest.ResponseRecorder {
	var formats []*edge.Format
	for _, f := range []*edge.Format{openai.Format(), anthropic.Format(), gemini.Format(), videos.VendorCFormat()} {
		if f.Name == format {
			formats = append(formats, f)
		}
	}
	rec, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("X-Request-Id", requestID)
	edge.New(edge.Options{}, formats...).Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		serve(edge.At(w))
	})).ServeHTTP(rec, req)
	return rec
}

// ReadCall reads the body of a background call of the token.
func (s *Server) ReadCall(r *http.Request, token string, send func([]byte) []byte) ([]byte, bool) {
	return s.readCall(r, &activities.CallRun{Token: token}, send, nil)
}

// SetEventsEvery shortens the silence of event streams. Before the first request.
func (s *Server) SetEventsEvery(d time.Duration) { s.videos.SetEventsEvery(d) }

// BodiesTaken returns the size of the request bodies in memory, in bytes.
func (s *Server) BodiesTaken() int64 { return s.edge.BodyMemory() }
