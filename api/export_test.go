package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

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

// Checked is what a check found.
type Checked struct {
	Model    string
	ModelAt  providers.Span
	Stream   bool
	Unlisted *providers.Fault
}

// ChatChecker compiles the field checks of a chat completion.
func ChatChecker() func(raw []byte) (Checked, error) { return checkerOf[openAIChat]() }

// NestedChecker compiles the field checks of a body struct of the test's own.
func NestedChecker[Body any]() func(raw []byte) (Checked, error) { return checkerOf[Body]() }

func checkerOf[Body any]() func(raw []byte) (Checked, error) {
	c := newChecker[Body](huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer))
	return func(raw []byte) (Checked, error) {
		b, err := c.check(raw)
		if err != nil {
			return Checked{}, err
		}
		return Checked{Model: b.text("model"), ModelAt: b.span("model"), Stream: b.flag("stream"), Unlisted: b.unlisted}, nil
	}
}

// FormPart is a part of a form as it was found.
type FormPart struct {
	Name    string
	File    bool
	Encoded bool
	Content string
}

// ParseForm finds the parts of a multipart body.
func ParseForm(raw []byte, boundary string) ([]FormPart, error) {
	f, err := parseForm(raw, boundary)
	if err != nil {
		return nil, err
	}
	parts := make([]FormPart, 0, len(f.parts))
	for _, p := range f.parts {
		parts = append(parts, FormPart{Name: p.name, File: p.file, Encoded: p.encoded, Content: string(f.value(p))})
	}
	return parts, nil
}

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
	for name, c := range map[string]*checker{
		"chat": newOpenAIChecker[openAIChat](registry), "image": newOpenAIChecker[openAIImage](registry),
		"message": newChecker[anthropicMessages](registry), "gemini": newGeminiChecker[geminiGenerate](registry),
		"sora": newChecker[openAIVideoBody](registry), "generic": newChecker[genericVideoBody](registry),
		"vendor C": newChecker[vendorCBody](registry), "video": video.fields, "metadata": video.metadata,
	} {
		readers[name] = Reader{Names: c.rule.titles, Read: func(raw []byte) (func(string) []byte, error) {
			b, err := c.check(raw)
			if err != nil {
				return nil, err
			}
			return b.value, nil
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
