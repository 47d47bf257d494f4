package calls

// openArray follows a JSON array of objects that is sent element by element, to tell whether another element may be put
// behind what was sent. It looks at no more than quotes and brackets.
type openArray struct {
	depth           int
	quoted, escaped bool
	last            byte // of what was seen, white space apart
}

// saw follows the next bytes sent.
func (a *openArray) saw(p []byte) {
	for _, c := range p {
		switch {
		case a.escaped:
			a.escaped = false
		case a.quoted:
			a.escaped, a.quoted = c == '\\', c != '"'
		case c == '"':
			a.quoted = true
		case c == '[' || c == '{':
			a.depth++
		case c == ']' || c == '}':
			a.depth--
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			continue
		}
		a.last = c
	}
}

// end is what closes the array behind one more element; nil within an element and behind the end.
func (a *openArray) end(element []byte) []byte {
	if a.depth != 1 {
		return nil
	}
	var end []byte
	if a.last == '}' {
		end = append(end, ',')
	}
	end = append(append(end, '\n'), element...)
	return append(end, "\n]"...)
}
