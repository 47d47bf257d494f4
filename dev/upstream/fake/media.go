package fake

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/jobs"
)

// Media is an image, a video or a sound as a create names it.
type Media struct {
	URL  string // empty: it came as bytes
	Type string // of bytes, as the data URI says; empty of bare Base64
	Data []byte // as sent
}

// ReadURL reads an http or https address or a data URI in Base64. It reports whether text is one.
func ReadURL(text string) (Media, bool) {
	if strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://") {
		return Media{URL: text}, true
	}
	head, body, ok := strings.Cut(text, ",")
	head, data := strings.CutPrefix(head, "data:")
	head, coded := strings.CutSuffix(head, ";base64")
	if !ok || !data || !coded {
		return Media{}, false
	}
	kind, _, err := mime.ParseMediaType(head)
	if err != nil {
		return Media{}, false
	}
	m, ok := ReadBase64(body)
	m.Type = kind
	return m, ok
}

// ReadBase64 reads bare Base64. It reports whether text is that, and not empty.
func ReadBase64(text string) (Media, bool) {
	b, err := base64.StdEncoding.DecodeString(text)
	return Media{Data: b}, err == nil && len(b) > 0
}

// Describe writes down in a job what it was made from: the bytes, or the address where there are none.
func (m Media) Describe(spec *jobs.Job) {
	shown := m.Data
	if m.URL != "" {
		shown = []byte(m.URL)
	}
	spec.InputSHA256, spec.InputBytes = DigestOf(shown), len(shown)
}

// IsImage reports whether the bytes are an image, as far as their head shows; an address may lead to one.
func (m Media) IsImage() bool {
	return m.URL != "" || strings.HasPrefix(http.DetectContentType(m.Data), "image/") ||
		strings.Contains(string(m.Data[:min(len(m.Data), heifHead)]), "ftyphei")
}

// heifHead is where the brand of an HEIF file stands, in bytes.
const heifHead = 12
