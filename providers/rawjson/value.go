// Package rawjson reads JSON in memory without copies: its values are parts of the document.
//
// It imports nothing of the product.
package rawjson

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Value is one JSON value as it is in a document, without space around it. The zero Value is absent. Its methods read a value that Valid
// has accepted. For any other value their results are undefined, but they never panic.
type Value []byte

// Valid reports whether a document is one JSON value. It accepts repeated names and bytes that are not UTF-8, as in untranslated bodies.
func Valid(document []byte) bool {
	return jsontext.Value(document).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Trim cuts the space around a value.
func Trim(document []byte) Value { return Value(bytes.Trim(document, " \t\r\n")) }

// Absent reports whether there is no value, or null.
func (v Value) Absent() bool { return len(v) == 0 || v[0] == 'n' }

// IsSet reports whether the value of a field has an effect: null, false, an empty text, array or object have none.
func (v Value) IsSet() bool {
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

// Text returns the value as a string, nil for another type.
func (v Value) Text() Text {
	if v.IsText() {
		return Text(v)
	}
	return nil
}

// Int returns a whole number, in any notation. It reports false for another value.
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

// maxCount bounds a number of tokens, so that sums do not overflow.
const maxCount = 1 << 40

// Count returns a number of tokens, a fraction rounded; 0 and false for a value that cannot be one.
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

// Float returns a number. It reports false for another value.
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

// Get returns the last member of a name, absent for none.
func (v Value) Get(name string) (found Value) {
	for key, value := range v.Members() {
		if key.Is(name) {
			found = value
		}
	}
	return found
}

// Object is the members of an object in their order. It is read once, because an object may have many megabytes.
type Object []Member

// Member is a member of an object.
type Member struct {
	Name  Text
	Value Value
}

// Object returns the members of an object, none of another value.
func (v Value) Object() Object { return make(Object, 0, 4).Read(v) }

// Read returns the members of an object in the memory of o.
func (o Object) Read(v Value) Object {
	o = o[:0]
	for name, value := range v.Members() {
		o = append(o, Member{name, value})
	}
	return o
}

// Get returns the last member of a name, absent for none.
func (o Object) Get(name string) Value {
	for _, member := range slices.Backward(o) {
		if member.Name.Is(name) {
			return member.Value
		}
	}
	return nil
}

// GetAny returns the last member of any of the names.
func (v Value) GetAny(names ...string) (found Value) {
	for key, value := range v.Members() {
		if slices.ContainsFunc(names, key.Is) {
			found = value
		}
	}
	return found
}

// Offset returns the offset of a part of the value, which a method of the value, or of such a part, returned.
func (v Value) Offset(part []byte) int { return cap(v) - cap(part) }

// At returns the member at a path of names.
func (v Value) At(names ...string) Value {
	for _, name := range names {
		v = v.Get(name)
	}
	return v
}

// Len returns the number of elements of an array.
func (v Value) Len() (n int) {
	for range v.Items() {
		n++
	}
	return n
}

// Space returns the end of the white space that begins at an offset.
func Space(v []byte, at int) int {
	for at < len(v) && (v[at] == ' ' || v[at] == '\n' || v[at] == '\r' || v[at] == '\t') {
		at++
	}
	return at
}

// End returns the end of the value that begins at an offset, or the offset if none begins there. Of long strings only the end is searched.
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

// shortText is how many bytes of a string are searched one by one for its end. For a short string this is faster than a vectorized search.
const shortText = 16

// textEnd returns the end of the string that begins at an offset.
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
