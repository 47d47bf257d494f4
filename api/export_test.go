package api

import (
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/anthropic"
	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/providers"
)

// RenderFault shows a fault as an answer does.
func RenderFault(format providers.Format, fault *providers.Fault, requestID string) (int, http.Header, []byte) {
	rec := answer(format, requestID, func(x *edge.Request) { x.Fail(fault) })
	return rec.Code, rec.Header(), rec.Body.Bytes()
}

// StreamError is the event that ends a failed stream.
func StreamError(format providers.Format, fault *providers.Fault) []byte {
	return answer(format, "req_1", func(x *edge.Request) { _, _ = x.Write(x.FaultEvent(fault)) }).Body.Bytes()
}

// answer is that of one request of a format.
func answer(format providers.Format, requestID string, serve func(x *edge.Request)) *httptest.ResponseRecorder {
	var formats []*edge.Format
	for _, f := range []*edge.Format{openai.Format(), anthropic.Format(), gemini.Format(), vendorCFormat()} {
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

// SetEventsEvery shortens the silence of event streams. Before the first request.
func (s *Server) SetEventsEvery(d time.Duration) { s.eventsEvery = d }

// Checkers are those of the creates of videos.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	video := newVideoChecks()
	return map[string]*body.Checker{
		"sora": body.NewChecker[openAIVideoBody](registry), "generic": body.NewChecker[genericVideoBody](registry),
		"vendor C": body.NewChecker[vendorCBody](registry), "video": video.fields, "metadata": video.metadata,
	}
}

// BodiesTaken is what the request bodies under way hold, in bytes.
func (s *Server) BodiesTaken() int64 { return s.edge.BodyMemory() }
