package body

import (
	"bufio"
	"bytes"
	"mime"
	"net/textproto"
	"strings"
	"unicode/utf8"

	"modelrelay/providers"
)

// Bounds of a form, in addition to the size limit of the body.
const (
	maxParts      = 512
	maxPartHeader = 8 << 10 // bytes
	maxPartName   = 256     // bytes
	// MaxPartText is the maximum size of a text part in bytes.
	MaxPartText = 1 << 20
)

// IsForm reports whether a body is multipart, and returns its boundary. A body with any other Content-Type is JSON.
func IsForm(contentType string) (boundary string, form bool) {
	kind, params, _ := mime.ParseMediaType(contentType)
	return params["boundary"], kind == "multipart/form-data"
}

// Part is one part of a form.
type Part struct {
	// Name is the name of the field as the client sent it: it may end in "[]".
	Name string
	// File: the part is a file, because it has a file name or a content type other than text/plain.
	File bool
	// FileName is the name of the file, "" for none. Typed: the part has a content type.
	FileName string
	Typed    bool
	// Encoded: the content has a transfer encoding, which RFC 7578 deprecates.
	Encoded bool
	// At is the position of the content in the body, and Content the bytes there.
	At      providers.Span
	Content []byte
}

func errForm() *providers.Fault {
	return providers.InvalidField("", "The multipart body cannot be read.")
}

// errBoundary is the fault of a body that two parsers could split into different parts.
func errBoundary() *providers.Fault {
	return providers.InvalidField("", "The multipart body has a line that begins with the boundary but is not a valid delimiter.")
}

// ParseForm finds the parts of a multipart body as RFC 2046 delimits them, without copies. All delimiters and headers must use the line
// break of the first delimiter, which may be a bare line feed. A line that begins with the boundary and is not such a delimiter is invalid
// anywhere, because only some parsers treat it as a delimiter. The upstream must read the parts that were checked here.
func ParseForm(raw []byte, boundary string) ([]Part, error) {
	if boundary == "" || len(boundary) > 70 {
		return nil, providers.InvalidField("", "The multipart body has no usable boundary.")
	}
	var parts []Part
	d := delimiters{raw: raw, dash: []byte("--" + boundary)}
	_, at, last, err := d.next(0)
	if err != nil {
		return nil, err
	}
	for !last {
		if len(parts) == maxParts {
			return nil, providers.InvalidField("", "The multipart body has too many parts.")
		}
		part, content, err := parseHead(raw, at, d.newline)
		if err != nil {
			return nil, err
		}
		var end int
		if end, at, last, err = d.next(at); err != nil {
			return nil, err
		}
		if end+len(d.newline) < content { // within the header
			return nil, errBoundary()
		}
		// If the content is empty, the blank line after the header may be the line break of the delimiter.
		part.At = providers.Span{From: content, To: max(end, content)}
		part.Content = raw[part.At.From:part.At.To]
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errForm()
	}
	if d.nextLine(at) >= 0 {
		return nil, errBoundary()
	}
	return parts, nil
}

type delimiters struct {
	raw, dash []byte
	newline   string // of the first delimiter; "" until it is found
}

// nextLine returns the position of the next line that begins with the boundary, -1 for none. It accepts any line break.
func (d *delimiters) nextLine(from int) int {
	for {
		i := bytes.Index(d.raw[from:], d.dash)
		if i < 0 {
			return -1
		}
		i += from
		if i == 0 || d.raw[i-1] == '\n' || d.raw[i-1] == '\r' {
			return i
		}
		from = i + 1
	}
}

// next finds the next delimiter. end is the end of the content before it, next the position after its line.
func (d *delimiters) next(from int) (end, next int, last bool, err error) {
	at := d.nextLine(from)
	if at < 0 {
		return 0, 0, false, errForm()
	}
	next, newline, last := lineEnd(d.raw, at+len(d.dash))
	if d.newline == "" {
		d.newline = newline
	}
	before := bytes.TrimSuffix(d.raw[:at], []byte(d.newline))
	switch {
	case next < 0, newline != d.newline && (!last || newline != ""):
		return 0, 0, false, errBoundary()
	case at > 0 && len(before) == at, len(d.newline) == 1 && bytes.HasSuffix(before, []byte("\r")):
		return 0, 0, false, errBoundary()
	}
	return len(before), next, last, nil
}

// lineEnd parses the rest of a delimiter line: white space and a line break, or the dashes of the last delimiter. next is -1 for any other
// text.
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

// parseHead parses the header of the part at an offset, and returns the position of its content.
func parseHead(raw []byte, at int, newline string) (Part, int, error) {
	window := raw[at:min(len(raw), at+maxPartHeader)]
	in := bytes.NewReader(window)
	buffered := bufio.NewReaderSize(in, maxPartHeader)
	header, err := textproto.NewReader(buffered).ReadMIMEHeader()
	if err != nil {
		return Part{}, 0, errForm()
	}
	content := at + len(window) - in.Len() - buffered.Buffered()
	given := header["Content-Disposition"]
	if !plainLines(raw[at:content], newline) || len(given) > 1 {
		return Part{}, 0, providers.InvalidField("", "A part of the multipart body has an ambiguous header.")
	}
	disposition, params, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	name := params["name"]
	if err != nil || disposition != "form-data" || name == "" || len(name) > maxPartName || !utf8.ValidString(name) ||
		!plainName(given[0], name) {
		return Part{}, 0, providers.InvalidField("", "A part of the multipart body has no usable name.")
	}
	_, named := params["filename"]
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	part := Part{
		Name: name, File: named || kind != "" && !strings.HasPrefix(kind, "text/plain"), FileName: params["filename"],
		Typed: kind != "",
	}
	switch strings.ToLower(header.Get("Content-Transfer-Encoding")) {
	case "", "7bit", "8bit", "binary":
	default:
		part.Encoded = true
	}
	return part, content, nil
}

// plainLines reports whether all lines of a header end in the form's line break, and none is a continuation line.
func plainLines(header []byte, newline string) bool {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(header), newline), newline) {
		if strings.ContainsAny(line, "\r\n") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			return false
		}
	}
	return true
}

// plainName reports whether the disposition has the name literally, without the extended notation and without escapes.
func plainName(disposition, name string) bool {
	if strings.ContainsAny(name, "\"\\\r\n") {
		return false
	}
	for rest := disposition; ; {
		_, after, found := strings.Cut(rest, "name=")
		if !found {
			return false
		}
		at := len(disposition) - len(after) - len("name=")
		value := strings.TrimPrefix(after, "\"")
		if at > 0 && strings.IndexByte("; \t", disposition[at-1]) >= 0 && strings.HasPrefix(value, name) {
			return true
		}
		rest = after
	}
}
