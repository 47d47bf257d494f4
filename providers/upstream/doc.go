package upstream

import (
	"iter"
	"strings"

	"modelrelay/providers/rawjson"
)

// Doc is a JSON document of a vendor, or a part of one. A part that is missing or of another type reads as empty: a member of an
// undocumented type must not lose a paid job.
type Doc rawjson.Value

// DocOf returns the document of an answer's body.
func DocOf(body []byte) Doc { return Doc(rawjson.Trim(body)) }

// All yields the values at a path, which has dots between the names of members. It yields the elements of an array on the path or at
// its end, and no null. The path "" is that of the document.
func (d Doc) All(path string) iter.Seq[Doc] {
	var names []string
	if path != "" {
		names = strings.Split(path, ".")
	}
	return func(yield func(Doc) bool) { d.walk(names, yield) }
}

// walk yields the values below names until yield returns false, which it reports.
func (d Doc) walk(names []string, yield func(Doc) bool) bool {
	value := rawjson.Value(d)
	switch {
	case value.IsArray():
		for _, item := range value.Items() {
			if !item.IsArray() && !Doc(item).walk(names, yield) {
				return false
			}
		}
		return true
	case len(names) == 0:
		return value.Absent() || yield(d)
	}
	return Doc(value.Get(names[0])).walk(names[1:], yield)
}

// At returns the first value at a path.
func (d Doc) At(path string) Doc {
	for part := range d.All(path) {
		return part
	}
	return nil
}

// Get returns the first string or number at the paths that is not empty; "" for none.
func (d Doc) Get(paths ...string) Loose {
	for _, path := range paths {
		for part := range d.All(path) {
			if text := part.loose(); text != "" {
				return text
			}
		}
	}
	return ""
}

// Texts returns all strings and numbers at the paths that are not empty.
func (d Doc) Texts(paths ...string) (texts []string) {
	for _, path := range paths {
		for part := range d.All(path) {
			if text := part.loose(); text != "" {
				texts = append(texts, string(text))
			}
		}
	}
	return texts
}

// Has reports whether a member is an object or an array, which may be empty.
func (d Doc) Has(name string) bool {
	value := rawjson.Value(d).Get(name)
	return value.IsArray() || value.IsObject()
}

// True reports whether the document is true.
func (d Doc) True() bool { return rawjson.Value(d).True() }

func (d Doc) loose() Loose {
	switch value := rawjson.Value(d); {
	case value.IsText():
		return Loose(strings.ToValidUTF8(value.Text().String(), "\uFFFD"))
	case value.IsNumber():
		return Loose(value)
	}
	return ""
}
