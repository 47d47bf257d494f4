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

// Bounds of a form, beyond that of the body.
const (
	maxParts      = 512
	maxPartHeader = 8 << 10 // bytes
	maxPartName   = 256     // bytes
	// MaxPartText is that of one text part in bytes.
	MaxPartText = 1 << 20
)

// IsForm reports whether a body is multipart, and returns its boundary. A JSON body may come under any other Content-Type.
func IsForm(contentType string) (boundary string, form bool) {
	kind, params, _ := mime.ParseMediaType(contentType)
	return params["boundary"], kind == "multipart/form-data"
}

// Part is one part of a form.
type Part struct {
	// Name is the field's, as sent: it may end in "[]".
	Name string
	// File: it is a file and no text, by its file name or its own content type.
	File bool
	// FileName is the file's, "" for none; Typed reports whether the part has a content type.
	FileName string
	Typed    bool
	// Encoded: the content is not the value itself, by an encoding the standard for forms no longer allows.
	Encoded bool
	// At is where the content is in the body, and Content that part of it.
	At      providers.Span
	Content []byte
}

func errForm() *providers.Fault {
	return providers.InvalidField("", "The multipart body cannot be read.")
}

// errBoundary is the fault of a body in which readers of forms would not see the same parts.
func errBoundary() *providers.Fault {
	return providers.InvalidField("", "The multipart body has a line that begins with its boundary and is no delimiter of its own form.")
}

// ParseForm finds the parts of a multipart body as RFC 2046 delimits them, and copies nothing of it. All line breaks that matter are like
// that of the first delimiter, which may be a bare line feed. A line that begins with the boundary and is no such delimiter is refused
// wherever it stands: some readers take it for one and some for content, and what is checked here must be what the upstream reads.
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
		// The header's blank line may be the delimiter's own line break where the content is empty.
		part.At = providers.Span{From: content, To: max(end, content)}
		part.Content = raw[part.At.From:part.At.To]
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errForm()
	}
	if d.begun(at) >= 0 {
		return nil, errBoundary()
	}
	return parts, nil
}

type delimiters struct {
	raw, dash []byte
	newline   string // of the first delimiter, "" before it was found
}

// begun finds the next line that begins with the boundary, -1 for none. Any line break counts.
func (d *delimiters) begun(from int) int {
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

// next finds the next delimiter: where what stands before it ends, and what follows its line.
func (d *delimiters) next(from int) (end, next int, last bool, err error) {
	at := d.begun(from)
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

// lineEnd reads the rest of a delimiter line: white space and a line break, or the last one's dashes. next is -1 if it is none.
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
		return Part{}, 0, providers.InvalidField("", "A part of the multipart body has a header that can be read in several ways.")
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

// plainLines reports whether the lines of a header end in the form's line break alone, and none continues in the next.
func plainLines(header []byte, newline string) bool {
	for line := range strings.SplitSeq(strings.TrimSuffix(string(header), newline), newline) {
		if strings.ContainsAny(line, "\r\n") || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			return false
		}
	}
	return true
}

// plainName reports whether a part's name is in its disposition as it is, without the extended notation and without escapes.
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
