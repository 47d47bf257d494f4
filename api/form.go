package api

import (
	"bufio"
	"bytes"
	"mime"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"modelrelay/providers"
)

// maxRelayedParts bounds the parts of a form that is relayed.
const maxRelayedParts = 512

// form is a multipart body with its parts found where they stand. Nothing of it is copied.
type form struct {
	raw   []byte
	parts []formPart
}

// formPart is one part of a form.
type formPart struct {
	// name is the field's, as sent: it may end in "[]".
	name string
	// file tells a file from a text, by its file name or its own content type.
	file bool
	// encoded: the content is not the value itself, by an encoding the standard for forms no longer allows.
	encoded bool
	// at is where the content stands in the body.
	at providers.Span
}

// value returns the content of a part.
func (f *form) value(p formPart) []byte { return f.raw[p.at.From:p.at.To] }

// errForm is the fault of a body that is no form.
func errForm() *providers.Fault {
	return providers.InvalidField("", "The multipart body cannot be read.")
}

// parseForm finds the parts of a multipart body as RFC 2046 delimits them. Lines may end in a bare line feed where the
// first delimiter's does.
func parseForm(raw []byte, boundary string) (*form, error) {
	if boundary == "" || len(boundary) > 70 {
		return nil, providers.InvalidField("", "The multipart body has no usable boundary.")
	}
	f := &form{raw: raw}
	dash := []byte("--" + boundary)
	at, newline, last := firstDelimiter(raw, dash)
	if at < 0 || last {
		return nil, errForm()
	}
	delimiter := append([]byte(newline), dash...)
	for {
		if len(f.parts) == maxRelayedParts {
			return nil, providers.InvalidField("", "The multipart body has too many parts.")
		}
		part, content, err := parseHead(raw, at)
		if err != nil {
			return nil, err
		}
		// The header's blank line may be the delimiter's own line break where the content is empty.
		end, next, final := nextDelimiter(raw, max(content-len(newline), at), delimiter)
		if end < 0 {
			return nil, errForm()
		}
		part.at = providers.Span{From: content, To: max(end, content)}
		f.parts = append(f.parts, part)
		if final {
			return f, nil
		}
		at = next
	}
}

// firstDelimiter finds what follows the first delimiter line, and how its lines end; -1 for none. Only a preamble, which
// nobody reads, may stand before it.
func firstDelimiter(raw, dash []byte) (next int, newline string, last bool) {
	for from := 0; ; {
		i := bytes.Index(raw[from:], dash)
		if i < 0 {
			return -1, "", false
		}
		i += from
		if i == 0 || raw[i-1] == '\n' {
			if next, newline, last = lineEnd(raw, i+len(dash)); next >= 0 {
				return next, newline, last
			}
		}
		from = i + 1
	}
}

// nextDelimiter finds the delimiter from an offset on: where the content before it ends and what follows its line.
func nextDelimiter(raw []byte, from int, delimiter []byte) (end, next int, last bool) {
	for {
		i := bytes.Index(raw[from:], delimiter)
		if i < 0 {
			return -1, -1, false
		}
		i += from
		if next, _, last = lineEnd(raw, i+len(delimiter)); next >= 0 {
			return i, next, last
		}
		from = i + 1
	}
}

// lineEnd reads the rest of a delimiter line: white space and a line break, or the two dashes of the last one. next is
// -1 where something else follows, so that it was no delimiter.
func lineEnd(raw []byte, at int) (next int, newline string, last bool) {
	rest := raw[at:]
	if bytes.HasPrefix(rest, []byte("--")) {
		rest, last = rest[2:], true
	}
	blank := len(rest) - len(bytes.TrimLeft(rest, " \t"))
	rest = rest[blank:]
	switch {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		newline = "\r\n"
	case len(rest) > 0 && rest[0] == '\n':
		newline = "\n"
	case !last || len(rest) > 0:
		return -1, "", false
	}
	return len(raw) - len(rest) + len(newline), newline, last
}

// parseHead reads the header of the part that begins at an offset, and says where its content begins.
func parseHead(raw []byte, at int) (formPart, int, error) {
	window := raw[at:min(len(raw), at+maxPartHeader)]
	in := bytes.NewReader(window)
	buffered := bufio.NewReaderSize(in, maxPartHeader)
	header, err := textproto.NewReader(buffered).ReadMIMEHeader()
	if err != nil {
		return formPart{}, 0, errForm()
	}
	content := at + len(window) - in.Len() - buffered.Buffered()
	disposition, params, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	name := params["name"]
	if err != nil || disposition != "form-data" || name == "" || len(name) > maxFormName || !utf8.ValidString(name) {
		return formPart{}, 0, providers.InvalidField("", "A part of the multipart body has no usable name.")
	}
	_, named := params["filename"]
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	part := formPart{name: name, file: named || kind != "" && !strings.HasPrefix(kind, "text/plain")}
	switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		part.encoded = true
	}
	return part, content, nil
}

// maxPartHeader bounds the header of one part in bytes.
const maxPartHeader = 8 << 10
