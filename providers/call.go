package providers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// Span is a half-open range of byte offsets. The zero Span names nothing.
type Span struct{ From, To int }

// Edit replaces the bytes of a span of a body, or inserts where the span is empty.
type Edit struct {
	At   Span
	Text []byte
}

// Call is one synchronous request as it arrived.
type Call struct {
	Endpoint Endpoint
	// Model is the public name.
	Model string
	// Asked is the name under which the client asked for the model where that is another, an alias: Body has it.
	Asked  string
	Stream bool
	// RequestID names the client's request in logs.
	RequestID string
	// Trail is told of each request that the call takes; nil: nobody asks.
	Trail *Trail
	// Header holds only the client headers that may travel upstream; never a credential.
	Header http.Header
	Content
	// OpenValues: the body holds an enum value that the contract does not list, so only a channel open to such takes it.
	OpenValues bool
	// Affinity is that of Want.
	Affinity uint64
	// Token is the id of the caller's token.
	Token string
	// Key is the caller's own, for what nobody else may read.
	Key Secret
	// ContinuesFrom names what earlier answers made and this call goes on from: the answer before it in front, then the rest. Only the
	// key that made it can, for the token that it was made for.
	ContinuesFrom []Made
	// HideUsage: the gateway asked for the usage chunk, the client did not, so the client must not see it.
	HideUsage bool
	// AnyAnswer: a document will do where a stream is asked for, and the other way around.
	AnyAnswer bool
}

// Content is what a call sends. Body is owned by the Call and never changed: Payload weaves the few permitted edits around it,
// so number formatting, key order and unknown fields survive.
type Content struct {
	ContentType string
	Body        []byte
	// ModelAt is where the model's name stands in Body, a JSON string with its quotes; zero when the body does not name it.
	// An upstream that knows the model under another name gets that name there.
	ModelAt Span
	// ModelUnset: what stands at ModelAt, if anything, does not name Model, so the name is always written.
	ModelUnset bool
	// EncodeModel writes a model's name for ModelAt; nil writes a JSON string.
	EncodeModel func(model string) []byte
	// NamesAt are where the name stands within longer JSON strings of Body, such as "models/NAME".
	NamesAt []Span
	// UsageEdit is the one of Edits that asks for the counts of a stream though the client did not, the zero Edit for none.
	UsageEdit Edit
	// Edits are the format's own insertions. They do not overlap one another, ModelAt nor NamesAt.
	Edits []Edit
	// Pieces are what is sent in place of Body, for a call that was translated; nil for any other.
	Pieces Payload
}

// Named is the name of the model that Body has, and that the client expects to read.
func (c Call) Named() string { return cmp.Or(c.Asked, c.Model) }

// Made is something that an answer made: the answer itself, or such as a container.
type Made struct {
	// ID is the upstream's name of it, Param the request field that has it.
	ID, Param string
}

// Payload returns the body to send to an upstream that knows the model under the given name. Nothing is copied.
func (c Call) Payload(model string) Payload { return c.payload(model, c.Named()) }

// payload is the content for an upstream that knows the model under the given name, where the body has the other.
func (c *Content) payload(model, named string) Payload {
	if c.Pieces != nil {
		return c.Pieces
	}
	edits := c.Edits
	if (model != named || c.ModelUnset) && c.ModelAt != (Span{}) {
		edits = append(slices.Clip(edits), Edit{At: c.ModelAt, Text: c.encodeModel(model)})
	}
	if model != named {
		name, _ := json.Marshal(model) // a string always marshals
		for _, at := range c.NamesAt {
			edits = append(slices.Clip(edits), Edit{At: at, Text: name[1 : len(name)-1]})
		}
	}
	if len(edits) == 0 {
		return Payload{c.Body}
	}
	edits = slices.SortedFunc(slices.Values(edits), func(a, b Edit) int { return a.At.From - b.At.From })
	pieces := make(Payload, 0, 2*len(edits)+1)
	from := 0
	for _, edit := range edits {
		pieces = append(pieces, c.Body[from:edit.At.From], edit.Text)
		from = edit.At.To
	}
	return append(pieces, c.Body[from:])
}

func (c *Content) encodeModel(model string) []byte {
	if c.EncodeModel != nil {
		return c.EncodeModel(model)
	}
	name, _ := json.Marshal(model) // a string always marshals
	return name
}

// Payload is a body in pieces that are sent one after the other.
type Payload [][]byte

// Len is the length of the whole body in bytes.
func (p Payload) Len() int64 {
	var n int64
	for _, piece := range p {
		n += int64(len(piece))
	}
	return n
}

// smallBody is the size up to which a body is one piece of memory until the answer has ended: net/http sends header and
// body in one write only when the body is a reader it knows.
const smallBody = 8 << 10

// Reader reads the whole body from its start, for one request; each call gives a reader of its own. A large one lets go
// of its bytes as soon as it is closed, which net/http does once it has sent them, so that a long answer does not keep
// them in memory.
func (p Payload) Reader() io.ReadCloser {
	switch size := p.Len(); {
	case size > smallBody:
		return &payloadBody{rest: slices.Clone(p)}
	case len(p) == 1:
		return io.NopCloser(bytes.NewReader(p[0]))
	default:
		return io.NopCloser(bytes.NewReader(slices.Concat(p...)))
	}
}

// payloadBody reads pieces where they are. net/http may close it while it reads.
type payloadBody struct {
	mu   sync.Mutex
	rest Payload
}

// Read implements io.Reader.
func (b *payloadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.rest) > 0 {
		n := copy(p, b.rest[0])
		if n > 0 || len(p) == 0 {
			b.rest[0] = b.rest[0][n:]
			return n, nil
		}
		b.rest = b.rest[1:]
	}
	return 0, io.EOF
}

// Close implements io.Closer.
func (b *payloadBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = nil
	return nil
}

// Relayer sends a call that is already in the channel's format. A non-2xx answer comes back as *Fault with its Reply;
// so does a 200 whose Content-Type is not the operation's. The caller closes the body. A cancelled ctx ends the
// upstream request at once.
type Relayer interface {
	Relay(ctx context.Context, to Target, call Call) (*http.Response, error)
}

// RealtimeCall asks for one realtime conversation.
type RealtimeCall struct {
	// Model is the public name.
	Model string
	// Asked is that of Call.
	Asked string
	// Unnamed: the client named no model, which a conversation that only transcribes does not need. The upstream gets none either.
	Unnamed bool
	// Header and Query hold only what of the client's may travel upstream; never a credential nor the model.
	Header http.Header
	Query  url.Values
	// RequestID names the client's request in logs.
	RequestID string
	// Trail is that of Call.
	Trail *Trail
	// Token is the stable id of the token that calls.
	Token string
}

// Dialer opens realtime conversations at one vendor. It is safe for concurrent use.
type Dialer interface {
	// DialRealtime calls dial once, with the client, the address and the header of the handshake. The error is dial's, a
	// *Fault, in which the vendor's own error codes have been read.
	DialRealtime(to Target, call RealtimeCall, dial func(client *http.Client, address string, header http.Header) error) error
}
