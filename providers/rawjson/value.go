// Package rawjson reads JSON where it is in memory: its values are parts of the document, of which nothing is copied or built.
//
// It knows nothing of the product.
package rawjson

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one JSON value as it is in a document, without space around it. The zero Value is absent. Its methods read a
// value that Valid has passed; of anything else they give what they can, and never panic.
type Value []byte

// Valid reports whether a document is one JSON value. Repeated names and bytes that are no UTF-8 pass, as they do in bodies
// that are not translated.
func Valid(document []byte) bool {
	return jsontext.Value(document).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Trim cuts the space around a value.
func Trim(document []byte) Value { return Value(bytes.Trim(document, " \t\r\n")) }

// Absent reports whether there is no value, or null.
func (v Value) Absent() bool { return len(v) == 0 || v[0] == 'n' }

// Says reports whether the value of a field asks for anything: null, false, an empty text, array or object do not.
func (v Value) Says() bool {
	switch {
	case v.Absent(), v.False():
		return false
	case v.IsText():
		return !v.Text().Empty()
	case v.IsArray(), v.IsObject():
		at := Space(v, 1)
		return at < len(v) && v[at] != ']' && v[at] != '}'
	}
	return true
}

// IsObject reports whether the value is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray reports whether the value is an array.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// IsText reports whether the value is a string.
func (v Value) IsText() bool { return len(v) > 1 && v[0] == '"' }

// IsNumber reports whether the value is a number.
func (v Value) IsNumber() bool { return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') }

// True reports whether the value is true.
func (v Value) True() bool { return len(v) > 0 && v[0] == 't' }

// False reports whether the value is false.
func (v Value) False() bool { return len(v) > 0 && v[0] == 'f' }

// Text is the value as a string, nil where it is none.
func (v Value) Text() Text {
	if v.IsText() {
		return Text(v)
	}
	return nil
}

// Int reads a whole number, in whatever notation; false where the value is none.
func (v Value) Int() (int64, bool) {
	if !v.IsNumber() {
		return 0, false
	}
	if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return n, true
	}
	f, ok := v.Float()
	if !ok || f != float64(int64(f)) {
		return 0, false
	}
	return int64(f), true
}

// maxCount bounds what is read as a number of tokens, so that sums of them are numbers too.
const maxCount = 1 << 40

// Count reads a number of tokens, a fraction rounded. What cannot be one is 0 and false.
func (v Value) Count() (int64, bool) {
	n, whole := v.Int()
	if f, ok := v.Float(); !whole && ok && f >= 0 && f <= maxCount {
		n, whole = int64(math.Round(f)), true
	}
	if !whole || n < 0 || n > maxCount {
		return 0, false
	}
	return n, true
}

// Float reads a number; false where the value is none.
func (v Value) Float() (float64, bool) {
	if !v.IsNumber() {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// Members yields the members of an object in their order; nothing for another value.
func (v Value) Members() iter.Seq2[Text, Value] {
	return func(yield func(Text, Value) bool) {
		if !v.IsObject() {
			return
		}
		for at := Space(v, 1); at < len(v) && v[at] == '"'; {
			nameEnd := End(v, at)
			name := Text(v[at:nameEnd])
			at = Space(v, nameEnd)
			if at >= len(v) || v[at] != ':' {
				return
			}
			from := Space(v, at+1)
			at = End(v, from)
			if from == at || !yield(name, v[from:at]) {
				return
			}
			if at = Space(v, at); at >= len(v) || v[at] != ',' {
				return
			}
			at = Space(v, at+1)
		}
	}
}

// Items yields the elements of an array with their indices; nothing for another value.
func (v Value) Items() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if !v.IsArray() {
			return
		}
		at := Space(v, 1)
		for i := 0; at < len(v) && v[at] != ']'; i++ {
			to := End(v, at)
			if to == at || !yield(i, v[at:to]) {
				return
			}
			if at = Space(v, to); at >= len(v) || v[at] != ',' {
				return
			}
			at = Space(v, at+1)
		}
	}
}

// Get finds the last member of a name, absent where the value has none.
func (v Value) Get(name string) (found Value) {
	for key, value := range v.Members() {
		if key.Is(name) {
			found = value
		}
	}
	return found
}

// GetAny finds the last member of any of the names.
func (v Value) GetAny(names ...string) (found Value) {
	for key, value := range v.Members() {
		if slices.ContainsFunc(names, key.Is) {
			found = value
		}
	}
	return found
}

// Offset returns where a part of the value begins in it. The part is one that a method of the value, or of such a part, returned.
func (v Value) Offset(part []byte) int { return cap(v) - cap(part) }

// At finds a member below a path of names.
func (v Value) At(names ...string) Value {
	for _, name := range names {
		v = v.Get(name)
	}
	return v
}

// Len counts the elements of an array.
func (v Value) Len() (n int) {
	for range v.Items() {
		n++
	}
	return n
}

// Space returns where the white space that begins at a place ends.
func Space(v []byte, at int) int {
	for at < len(v) && (v[at] == ' ' || v[at] == '\n' || v[at] == '\r' || v[at] == '\t') {
		at++
	}
	return at
}

// End returns where the value that begins at a place ends: the place itself where none begins. Strings, which may be
// many megabytes, are searched for their end alone.
func End(v []byte, at int) int {
	if at >= len(v) {
		return at
	}
	switch v[at] {
	case '"':
		return textEnd(v, at)
	case '{', '[':
		depth := 0
		for at < len(v) {
			switch v[at] {
			case '"':
				at = textEnd(v, at)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			at++
			if depth == 0 {
				break
			}
		}
		return at
	}
	for at < len(v) && v[at] != ',' && v[at] != '}' && v[at] != ']' && v[at] != ' ' && v[at] != '\n' && v[at] != '\r' && v[at] != '\t' {
		at++
	}
	return at
}

// shortText is how far the end of a string is looked for byte by byte: names and numbers of tokens end sooner than a search
// over many bytes at once begins.
const shortText = 16

// textEnd returns the end of the string that begins at a place.
func textEnd(v []byte, at int) int {
	for i, c := range v[at+1 : min(at+1+shortText, len(v))] {
		if c == '"' {
			return at + 1 + i + 1
		}
		if c == '\\' {
			break
		}
	}
	for end := at + 1; end < len(v); {
		quote := bytes.IndexByte(v[end:], '"')
		if quote < 0 {
			break
		}
		end += quote
		escapes := end
		for v[escapes-1] == '\\' && escapes-1 > at {
			escapes--
		}
		end++
		if (end-1-escapes)%2 == 0 {
			return end
		}
	}
	return len(v)
}
