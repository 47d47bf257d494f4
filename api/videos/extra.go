package videos

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

func readJSON(x *edge.Request, r *http.Request, check *body.Checker) (*body.JSON, error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return nil, err
	}
	return check.Check(raw)
}

// The bounds of undocumented fields in a create. They are sorted, stored, and read again with the task.
const (
	// maxExtra bounds all undocumented fields together, in bytes.
	maxExtra = 1 << 20
	// maxNesting bounds the nesting of arrays and objects in these fields and in the metadata.
	maxNesting = 100
)

func (c fieldChecks) readFreely(b *body.JSON) (metadata, extra json.RawMessage, err error) {
	metadata = bytes.Clone(b.Value("metadata"))
	if err := checkNesting("metadata", metadata); err != nil {
		return nil, nil, err
	}
	extra, err = c.extraMembers(b)
	return metadata, extra, err
}

// extraMembers returns the members of a body that its format does not document, nil for none. maxExtra bounds those of no format.
func (c fieldChecks) extraMembers(b *body.JSON) (json.RawMessage, error) {
	var out []byte
	size := 0 // of the members that no format documents
	for name, value := range b.Members() {
		text := name.String()
		if b.Span(text) != (providers.Span{}) {
			continue
		}
		if !c.fields.Has(text) {
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

func tooMuchExtra() *providers.Fault {
	return providers.InvalidField("", "Invalid request: the fields that are not documented here have more than %d MiB together.", maxExtra>>20)
}

func checkNesting(param string, value []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		if _, err := dec.ReadToken(); err != nil { // the end
			return nil //nolint:nilerr // it is valid
		}
		if dec.StackDepth() > maxNesting {
			return providers.InvalidField(param, "The metadata, or a field that is not documented here, is nested too deeply: %d levels are allowed.", maxNesting)
		}
	}
}
