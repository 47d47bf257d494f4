package videos

import (
	"bytes"
	"encoding/json"
	"net/http"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// readJSON reads and checks the JSON body of a request.
func readJSON(x *edge.Request, r *http.Request, check *body.Checker) (*body.JSON, error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return nil, err
	}
	return check.Check(raw)
}

// Bounds of what a video create may hold beside the contract's fields. It is put into one order, kept, and read again by
// whatever has to do with the task.
const (
	// maxExtra is that of all fields together that the contract does not name, in bytes.
	maxExtra = 1 << 20
	// maxNesting is how deep the arrays and objects of these fields, and of the metadata, may lie in one another.
	maxNesting = 100
)

// readFreely reads the fields that hold what the client likes: the metadata, and those the contract does not name.
func (c fieldChecks) readFreely(b *body.JSON) (metadata, extra json.RawMessage, err error) {
	metadata = bytes.Clone(b.Value("metadata"))
	if err := checkNesting("metadata", metadata); err != nil {
		return nil, nil, err
	}
	extra, err = c.extraMembers(b)
	return metadata, extra, err
}

// extraMembers collects the members of a body its format does not name; nil where there are none. Those of another format,
// an image for instance, are as large as there.
func (c fieldChecks) extraMembers(b *body.JSON) (json.RawMessage, error) {
	var out []byte
	size := 0 // of the members that no format names
	for name, value := range b.Members() {
		text := name.String()
		if b.Span(text) != (providers.Span{}) {
			continue
		}
		if !c.fields.Knows(text) {
			size += len(name) + len(value)
		}
		if size > maxExtra {
			return nil, tooMuchExtra()
		}
		if err := checkNesting("", value); err != nil {
			return nil, err
		}
		out = body.AppendMember(out, name, value)
	}
	if out == nil {
		return nil, nil
	}
	return append(out, '}'), nil
}

// tooMuchExtra is the fault of a create with too long fields that the contract does not name.
func tooMuchExtra() *providers.Fault {
	return providers.InvalidField("", "Invalid request: the fields that are not documented here have more than %d MiB together.", maxExtra>>20)
}

// checkNesting tells whether a JSON value is nested too deeply. The value is valid.
func checkNesting(param string, value []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return providers.InvalidField(param, "The metadata, or a field that is not documented here, is nested too deeply: %d levels are allowed.", maxNesting)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}
