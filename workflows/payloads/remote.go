package payloads

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// mostShown bounds what one answer of DecodeJSON holds in the clear, in bytes: many small payloads may each grow to the
// largest.
const mostShown = 16 << 20

// ErrNoPayloads is a request of DecodeJSON that holds no payloads.
var ErrNoPayloads = errors.New("wants Temporal's payloads in JSON")

// DecodeJSON decrypts payloads for Temporal's UI and CLI, in the form of their remote codec: {"payloads": [{"metadata": …,
// "data": …}]}, with bytes in base64. What is not encrypted comes back as it is, and so does what cannot be decrypted: one such
// payload must not hide the others of a page.
func (c *Codec) DecodeJSON(body []byte) ([]byte, error) {
	var in commonpb.Payloads
	if err := protojson.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPayloads, err)
	}
	shown := 0
	for i, p := range in.GetPayloads() {
		if shown > mostShown {
			break
		}
		if clear, err := c.Decode([]*commonpb.Payload{p}); err == nil {
			in.Payloads[i] = clear[0]
			shown += len(clear[0].GetData())
		}
	}
	out, err := protojson.Marshal(&in)
	if err != nil {
		return nil, fmt.Errorf("write payloads: %w", err)
	}
	return out, nil
}
