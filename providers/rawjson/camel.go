package rawjson

import "strings"

// Camel is a name in snake case in the spelling of protobuf's JSON, such as maxItems for max_items. The names of Google's APIs
// have both spellings.
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

// IsCamel reports whether a name in either spelling is one that is given in camel case.
func (t Text) IsCamel(name string) bool {
	at, up := 0, false
	for _, c := range t.Decoded() {
		if c == '_' {
			up = true
			continue
		}
		if up && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		up = false
		if at >= len(name) || name[at] != c {
			return false
		}
		at++
	}
	return at == len(name) && !up
}

// GetCamel finds the last member of a name in either spelling, which is given in camel case; absent where the value has none.
func (v Value) GetCamel(name string) (found Value) {
	for key, value := range v.Members() {
		if key.IsCamel(name) {
			found = value
		}
	}
	return found
}
