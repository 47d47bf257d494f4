package rawjson

import (
	"bytes"
	"strings"
)

// Camel returns a name of snake case in camel case, such as maxItems for max_items. Google's APIs accept both spellings.
func Camel(name string) string {
	if strings.IndexByte(name, '_') < 0 {
		return name
	}
	camel := make([]byte, 0, len(name))
	up := false
	for _, c := range []byte(name) {
		switch {
		case c == '_':
			up = true
		case up && c >= 'a' && c <= 'z':
			camel, up = append(camel, c-'a'+'A'), false
		default:
			camel, up = append(camel, c), false
		}
	}
	return string(camel)
}

// IsCamel reports whether the text, in either spelling, is the name, which is in camel case.
func (t Text) IsCamel(name string) bool {
	spelled := t.Decoded()
	return string(spelled) == name || bytes.IndexByte(spelled, '_') >= 0 && spelled[len(spelled)-1] != '_' && Camel(string(spelled)) == name
}

// GetCamel returns the last member of a name in either spelling, absent for none. The given name is in camel case.
func (v Value) GetCamel(name string) (found Value) {
	for key, value := range v.Members() {
		if key.IsCamel(name) {
			found = value
		}
	}
	return found
}
