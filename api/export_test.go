package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// RenderFault shows a fault as an answer does.
func RenderFault(format providers.Format, fault *providers.Fault, requestID string) (int, http.Header, []byte) {
	p := render(format, fault, requestID)
	header := make(http.Header)
	setFaultHeaders(header, p)
	header.Set("Content-Type", p.contentType)
	return p.status, header, p.body
}

// StreamError is the event that ends a failed stream.
func StreamError(format providers.Format, fault *providers.Fault) []byte {
	return streamError(format, fault, "req_1")
}

// NextEventNumber is the number after the last event of a response's stream that comes in reads of a size.
func NextEventNumber(stream string, size int) int {
	var numbers eventNumbers
	for ; stream != ""; stream = stream[min(size, len(stream)):] {
		numbers.saw([]byte(stream[:min(size, len(stream))]))
	}
	return numbers.next()
}

// SetEventsEvery shortens the silence of event streams. Before the first request.
func (s *Server) SetEventsEvery(d time.Duration) { s.eventsEvery = d }

// Reader is the check of one operation's bodies: Names are the fields that it knows at the top, and Read gives the value of
// each, nil for absent and null.
type Reader struct {
	Names []string
	Read  func(raw []byte) (func(name string) []byte, error)
}

// Readers are those of some operations of every format.
func Readers() map[string]Reader {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	video := newVideoChecks()
	readers := make(map[string]Reader)
	for name, c := range map[string]*body.Checker{
		"chat": newOpenAIChecker[openAIChat](registry), "image": newOpenAIChecker[openAIImage](registry),
		"message": body.NewChecker[anthropicMessages](registry), "gemini": newGeminiChecker[geminiGenerate](registry),
		"sora": body.NewChecker[openAIVideoBody](registry), "generic": body.NewChecker[genericVideoBody](registry),
		"vendor C": body.NewChecker[vendorCBody](registry), "video": video.fields, "metadata": video.metadata,
	} {
		readers[name] = Reader{Names: c.Names(), Read: func(raw []byte) (func(string) []byte, error) {
			b, err := c.Check(raw)
			if err != nil {
				return nil, err
			}
			return b.Value, nil
		}}
	}
	return readers
}

// BodiesTaken is what the request bodies under way hold, in bytes.
func (s *Server) BodiesTaken() int64 { return s.bodies.taken() }

// Discards counts the bodies that are being discarded.
type Discards struct{ discards }

// Begin counts one more.
func (d *Discards) Begin(source string) (done func(), ok bool) { return d.begin(source) }
