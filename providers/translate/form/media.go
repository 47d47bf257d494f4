package form

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"modelrelay/providers/rawjson"
)

// Inline returns a medium of the type with the given base64, which is the part between the quotes of a JSON text. It decodes only the
// base64 of a plain-text document: the dialects require such a document as a text.
func Inline(mediaType string, data []byte) Media {
	mediaType = registered(mediaType)
	m := Media{Kind: KindOf(mediaType), Type: mediaType, Data: data}
	if m.Kind != PlainText {
		return m
	}
	text, ok := DecodeBase64(rawjson.Wrap(data).Decoded())
	if !ok || !utf8.Valid(text) {
		m.Kind = Document
		return m
	}
	m.Text, m.Data = rawjson.Quote(string(text)), nil
	return m
}

// registered returns a media type under the name that vendors accept.
func registered(mediaType string) string {
	if strings.EqualFold(mediaType, "image/jpg") {
		return "image/jpeg"
	}
	return mediaType
}

// DecodeBase64 reads base64 of either alphabet, with or without padding.
func DecodeBase64(data []byte) ([]byte, bool) {
	data = bytes.TrimRight(data, "=")
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(data, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded, err := encoding.AppendDecode(nil, data)
	return decoded, err == nil
}

// KindOf returns the kind of medium of a media type. An unknown type is a document.
func KindOf(mediaType string) MediaKind {
	class, name, _ := strings.Cut(strings.ToLower(mediaType), "/")
	kind, known := map[string]MediaKind{"image": Image, "audio": Audio, "video": Video, "text": PlainText}[class]
	switch {
	case known:
		return kind
	case class == "application" && name == "json":
		return PlainText
	}
	return Document
}

// ParseDataURL reads a data URL: the media type in lower case without parameters, and its base64 as it is in the text, including escapes.
// It encodes data that is not base64. ok is false for any other text.
func ParseDataURL(text rawjson.Text) (mediaType string, data []byte, ok bool) {
	const scheme = "data:"
	head, data, found := bytes.Cut(text.Inner(), []byte{','})
	// Some clients escape each slash of a JSON text.
	header := rawjson.Wrap(head[:min(len(head), maxDataHeader)]).String()
	if !found || len(head) > maxDataHeader || len(header) < len(scheme) || !strings.EqualFold(header[:len(scheme)], scheme) {
		return "", nil, false
	}
	mediaType, parameters, _ := strings.Cut(header[len(scheme):], ";")
	if mediaType = strings.ToLower(strings.TrimSpace(mediaType)); mediaType == "" {
		mediaType = "text/plain" // RFC 2397
	}
	coding := parameters[strings.LastIndexByte(parameters, ';')+1:]
	if strings.EqualFold(strings.TrimSpace(coding), "base64") {
		return mediaType, data, true
	}
	plain, err := url.PathUnescape(rawjson.Wrap(data).String())
	if err != nil {
		return "", nil, false
	}
	return mediaType, base64.StdEncoding.AppendEncode(nil, []byte(plain)), true
}

// maxDataHeader bounds the part before the comma of a data URL, in bytes.
const maxDataHeader = 1 << 10

// IsDataURL reports whether a text begins like a data URL.
func IsDataURL(text rawjson.Text) bool {
	inner := text.Inner()
	return len(inner) > 4 && strings.EqualFold(string(inner[:5]), "data:")
}

// DataURL writes a medium's Data as a data URL.
func (o *Out) DataURL(m Media) {
	o.Quoted([]byte("data:"), rawjson.Quote(m.Type).Inner(), []byte(";base64,"), m.Data)
}

// PartTexts returns the texts of a list of parts that are not blank.
func PartTexts(parts rawjson.Value) (texts []rawjson.Text) {
	for _, part := range parts.Items() {
		if text := part.Get("text").Text(); !text.Blank() {
			texts = append(texts, text)
		}
	}
	return texts
}

// Plain returns the text of a PlainText, after a line with its title.
func (m Media) Plain() rawjson.Text {
	if m.Title.Empty() {
		return m.Text
	}
	return rawjson.Join("\n", m.Title, m.Text)
}

// FileName returns the name of a document, which OpenAI requires.
func (m Media) FileName() rawjson.Text {
	if m.Title.Empty() {
		return rawjson.Text(`"file.pdf"`)
	}
	return m.Title
}

// TypeByName returns the media type by the extension of a file's name or of the path of an address, "" for none.
func TypeByName(name string) string {
	if address, err := url.Parse(name); err == nil {
		name = address.Path
	}
	return map[string]string{
		".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".png": "image/png", ".gif": "image/gif", ".webp": "image/webp",
		".heic": "image/heic", ".heif": "image/heif",
		".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/plain", ".csv": "text/plain", ".json": "application/json",
		".html": "text/html", ".htm": "text/html",
		".wav": "audio/wav", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".ogg": "audio/ogg", ".m4a": "audio/aac", ".aac": "audio/aac",
		".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm",
	}[strings.ToLower(path.Ext(name))]
}

// AudioFormat returns the word of two dialects for an audio format, "" if they have none for the media type.
func AudioFormat(mediaType string) string {
	return map[string]string{
		"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav",
		"audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/mpeg3": "mp3",
	}[strings.ToLower(mediaType)]
}

// AudioType returns the media type of such a word.
func AudioType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}
