package providers

import (
	"context"
	"encoding/json"
	"io"
)

// Parameters are the members of Metadata and Extra by name, Extra's where both have one: what the caller gave the vendor
// beside the contract's fields. The map is the caller's to change and never nil.
func (r VideoRequest) Parameters() (map[string]json.RawMessage, error) {
	fields := make(map[string]json.RawMessage)
	for _, object := range []json.RawMessage{r.Metadata, r.Extra} {
		if len(object) == 0 {
			continue
		}
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, Unwritable(err)
		}
		if fields == nil { // null
			fields = make(map[string]json.RawMessage)
		}
	}
	return fields, nil
}

// Unwritable is the fault of a request that cannot be written for an upstream. Nothing was sent.
func Unwritable(err error) *Fault {
	return &Fault{Kind: Invalid, Message: "The request cannot be written for the upstream.", Taken: TakenNo, Err: err}
}

// CopyTo writes the bytes of a media object. A *Fault says that they cannot be read now: nothing was sent yet.
func (m Media) CopyTo(ctx context.Context, to io.Writer) error {
	away := func(err error) *Fault {
		return &Fault{Kind: Overloaded, Message: "The task's input cannot be read from the archive now.", Taken: TakenNo, Err: err}
	}
	file, err := m.Open(ctx)
	if err != nil {
		return away(err)
	}
	defer file.Close()
	if _, err := io.Copy(to, file); err != nil {
		return away(err)
	}
	return nil
}
