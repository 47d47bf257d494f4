package rawjson

import (
	"bytes"
	"io"
	"slices"
)

// Edit changes one member: an Editor replaces the value, and adds the member at the end of an object without it, unless Only is set.
type Edit struct {
	Name  string
	Value []byte
	Only  bool
}

// Editor copies a JSON object that arrives in pieces of any size, and edits its own members, not those of objects within it. It holds only
// the values of Keep. Another document, and bytes after the object, pass unchanged and unchecked. One goroutine uses it.
type Editor struct {
	// To receives the document; nil: nothing does.
	To io.Writer
	// Edits are made in the object. A member that occurs twice is edited twice.
	Edits []Edit
	// Keep has the names of the values to keep, each with its largest size in bytes. A larger value is not kept, and neither is a further
	// value of a repeated member if all together are too large.
	Keep map[string]int

	place     editorPlace
	name      []byte
	members   bool // the object has a member
	made      []bool
	kept      []byte
	from      int  // in kept, the beginning of the member that is being kept; -1: none is
	most      int  // largest size of kept with this member
	room      int  // no member is added to a larger kept
	dropped   bool // the value is replaced
	depth     int
	isObject  bool
	within    bool // a string within the value
	isEscaped bool
}

type editorPlace uint8

const (
	editorStart editorPlace = iota
	editorName              // a name, or the end of the object
	editorInName
	editorColon
	editorValue
	editorInText
	editorInScalar
	editorInner // an object or array
	editorRest  // passes
)

// maxName bounds a name that is compared, in bytes.
const maxName = 256

// IsObject reports whether the document began as an object.
func (e *Editor) IsObject() bool { return e.isObject }

// Kept returns the kept values as an object.
func (e *Editor) Kept() Value {
	if e.kept == nil {
		return Value("{}")
	}
	return append(slices.Clip(e.kept), '}')
}

// Write implements io.Writer. The error is that of To.
func (e *Editor) Write(p []byte) (int, error) {
	from := 0 // p[from:at] passes
	for at := 0; at < len(p) && e.place != editorRest; {
		c := p[at]
		switch e.place {
		case editorStart:
			if !isBlank(c) {
				e.place = editorRest
				if c == '{' {
					e.place, e.isObject, e.made = editorName, true, make([]bool, len(e.Edits))
					for _, most := range e.Keep {
						e.room += maxName + most
					}
				}
			}
			at++
		case editorName:
			switch c {
			case '"':
				e.place, e.name, e.members = editorInName, append(e.name[:0], c), true
			case '}':
				if err := e.pass(p[from:at]); err != nil {
					return 0, err
				}
				from = at
				if err := e.add(); err != nil {
					return 0, err
				}
				e.place = editorRest
			}
			at++
		case editorInName:
			n, ended := e.text(p[at:])
			e.name = append(e.name, p[at:at+min(n, maxName-min(len(e.name), maxName))]...)
			if at += n; ended {
				e.place = editorColon
			}
		case editorColon:
			if c == ':' {
				e.place = editorValue
			}
			at++
		case editorValue:
			if isBlank(c) {
				at++
				continue
			}
			if by := e.begin(c); by != nil {
				if err := e.pass(p[from:at]); err != nil {
					return 0, err
				}
				if err := e.pass(by); err != nil {
					return 0, err
				}
				e.dropped = true
			}
			if e.place != editorInScalar {
				e.keep(p[at : at+1])
				at++
			}
		default:
			n, ended := e.value(p[at:])
			e.keep(p[at : at+n])
			at += n
			if !ended {
				continue
			}
			if e.dropped {
				e.dropped, from = false, at
			}
			e.place, e.from = editorName, -1
		}
	}
	if e.dropped {
		return len(p), nil
	}
	if err := e.pass(p[from:]); err != nil {
		return 0, err
	}
	return len(p), nil
}

// begin begins the value of a member with its first byte, and returns what replaces it, nil for nothing.
func (e *Editor) begin(c byte) (by []byte) {
	switch e.depth = 0; c {
	case '"':
		e.place = editorInText
	case '{', '[':
		e.place, e.depth = editorInner, 1
	default:
		e.place = editorInScalar
	}
	name := Text(e.name)
	e.from = -1
	for keep, most := range e.Keep {
		if name.Is(keep) && len(e.kept) < e.room {
			e.from = len(e.kept)
			if e.kept == nil {
				e.kept = append(e.kept, '{')
			} else {
				e.kept = append(e.kept, ',')
			}
			e.kept = append(append(e.kept, name...), ':')
			e.most = len(e.kept) + most
		}
	}
	for i, edit := range e.Edits {
		if name.Is(edit.Name) {
			by, e.made[i] = edit.Value, true
		}
	}
	return by
}

// keep keeps bytes of a value unless the value is too large.
func (e *Editor) keep(p []byte) {
	switch {
	case e.from < 0:
	case len(e.kept)+len(p) <= e.most:
		e.kept = append(e.kept, p...)
	default:
		if e.kept = e.kept[:e.from]; e.from == 0 {
			e.kept = nil
		}
		e.from = -1
	}
}

// value reads more of a value. It returns the number of bytes read, and reports whether the value ended.
func (e *Editor) value(p []byte) (n int, ended bool) {
	switch e.place {
	case editorInText:
		return e.text(p)
	case editorInScalar:
		for n < len(p) && !isBlank(p[n]) && p[n] != ',' && p[n] != '}' && p[n] != ']' {
			n++
		}
		return n, n < len(p)
	}
	for n < len(p) {
		if e.within {
			more, over := e.text(p[n:])
			n += more
			e.within = !over
			continue
		}
		switch p[n] {
		case '"':
			e.within = true
		case '{', '[':
			e.depth++
		case '}', ']':
			e.depth--
		}
		n++
		if e.depth == 0 {
			return n, true
		}
	}
	return n, false
}

// text reads more of a string. It returns the number of bytes read, and reports whether the string ended.
func (e *Editor) text(p []byte) (n int, ended bool) {
	if e.isEscaped {
		e.isEscaped, n = false, 1
	}
	for n < len(p) {
		end := bytes.IndexByte(p[n:], '"')
		if end < 0 {
			end = len(p) - n
		}
		for end += n; n < end; n += 2 {
			escape := bytes.IndexByte(p[n:end], '\\')
			if escape < 0 {
				n = end
				break
			}
			n += escape
		}
		switch {
		case n > len(p):
			e.isEscaped = true
			return len(p), false
		case n == end && end < len(p):
			return n + 1, true
		}
	}
	return n, false
}

// add adds the members that the object does not have.
func (e *Editor) add() error {
	var out []byte
	for i, edit := range e.Edits {
		if e.made[i] || edit.Only {
			continue
		}
		if e.members {
			out = append(out, ',')
		}
		e.members = true
		out = append(append(append(out, Quote(edit.Name)...), ':'), edit.Value...)
	}
	return e.pass(out)
}

func (e *Editor) pass(p []byte) error {
	if e.To == nil || len(p) == 0 {
		return nil
	}
	_, err := e.To.Write(p)
	return err
}

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
