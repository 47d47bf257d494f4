package providers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// Span is a half-open range of byte offsets. The zero Span names nothing.
type Span struct{ From, To int }

// Edit replaces the bytes of a span of a body, or inserts at an empty span.
type Edit struct {
	At   Span
	Text []byte
}

// Call is one synchronous request of a client.
type Call struct {
	Endpoint Endpoint
	// Model is the public name.
	Model string
	// Alias is the alias under which the client asked for the model, which Body has; "" for none.
	Alias  string
	Stream bool
	// RequestID is the client's request id, for logs.
	RequestID string
	// Trail records each attempt of the call; nil: they are not recorded.
	Trail *Trail
	// Header holds the client's headers that may be sent upstream, never a credential.
	Header http.Header
	Content
	// OpenValues: the body has an enum value that the contract does not list. Only a channel with open values accepts it.
	OpenValues bool
	// Affinity is that of router.Request.
	Affinity uint64
	// Token is the id of the caller's token.
	Token string
	// Key is the client's own key, for data that only this client may read.
	Key Secret
	// ContinuesFrom lists what this call continues, the previous answer first. Only the same key and token can continue it.
	ContinuesFrom []Created
	// Makes is the gateway's own id of the answer, "" for none.
	Makes string
	// Chain describes what the gateway has put into Body in place of a stored response.
	Chain Chain
	// HideUsage: the gateway has requested the usage chunk and the client has not, so the client must not receive it.
	HideUsage bool
	// Begin is called before each request to an upstream. Its error ends the call without the request. Only a background call has it: no
	// timeout of the relay applies to that, and a lost answer is not requested again. nil: a synchronous call.
	Begin func(ctx context.Context, channel string) error
	// Hosted: only the vendor can run the call in the background, as that of an agent.
	Hosted bool
	// Ticketing is for a background call that its channel may run under a ticket; nil for any other.
	Ticketing *Ticketing
	// Gather returns an answer that buffers each event, or the whole document of at most document bytes; 0: the answer is a stream. Before
	// it returns a large one, it waits for a slot of the process. Only a background call has it; nil: there is no such limit.
	Gather func(ctx context.Context, answer io.ReadCloser, document int) io.ReadCloser
	// AnyAnswer: a document is accepted in place of a stream, and a stream in place of a document.
	AnyAnswer bool
}

// Content is a call's content. Body is owned by the Call and never changed. Payload adds the few permitted edits; all else stays.
type Content struct {
	ContentType string
	Body        []byte
	// ModelAt is the span of the model's name in Body, a JSON string with its quotes; zero if the body does not have it.
	ModelAt Span
	// ModelUnset: the text at ModelAt, if any, is not Model, so the name is always written.
	ModelUnset bool
	// EncodeModel writes a model's name for ModelAt; nil writes a JSON string.
	EncodeModel func(model string) []byte
	// NamesAt are the spans of the name within longer JSON strings of Body, such as "models/NAME".
	NamesAt []Span
	// UsageEdit is the element of Edits that requests the usage of a stream for a client that does not; the zero Edit for none.
	UsageEdit Edit
	// Edits are the format's insertions. They do not overlap each other, ModelAt or NamesAt.
	Edits []Edit
	// Pieces replace Body in a translated call; nil in any other.
	Pieces Payload
}

// Named returns the model's name in Body, which the client expects in the answer.
func (c *Call) Named() string { return cmp.Or(c.Alias, c.Model) }

// Created is something that an answer created: the answer itself, or for example a container.
type Created struct {
	// ID is the upstream's id of it. Param is the request field that has it.
	ID, Param string
	// By is the channel and key that created it, if the gateway itself has recorded them: only they may receive the call. Zero for none.
	By KeyRef
}

// Chain is the part of a call's input that the gateway has stored.
type Chain struct {
	// Previous is the id of the stored response that the client continues from; "" for none.
	Previous string
	// Earlier is the number of items of that response's input and output. The input in Body begins with them. Items are these items,
	// separated by commas; nil once the call is sent.
	Earlier int
	Items   []byte
	// Upstream is the response's id at the channel and key that made it; "" if no upstream stores it.
	Upstream string
	// By is that channel and key, if the gateway itself has recorded them. Another may also receive the call, with the items.
	By KeyRef
	// Linked is the content that refers to the response by Upstream, for that channel and key; nil for none.
	Linked *Content
}

// Payload returns the body with the upstream's name of the model. It copies nothing.
func (c *Call) Payload(model string) Payload { return c.payload(model, c.Named()) }

// payload returns the content with the upstream's name of the model in place of named, the name in the body.
func (c *Content) payload(model, named string) Payload {
	if c.Pieces != nil {
		return c.Pieces
	}
	edits := c.Edits
	if (model != named || c.ModelUnset) && c.ModelAt != (Span{}) {
		edits = append(slices.Clip(edits), Edit{At: c.ModelAt, Text: c.encodeModel(model)})
	}
	if model != named {
		name, _ := json.Marshal(model) // never fails
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
	name, _ := json.Marshal(model) // never fails
	return name
}

// Payload is a body in pieces that are sent in order.
type Payload [][]byte

// Len is the length of the whole body in bytes.
func (p Payload) Len() int64 {
	var n int64
	for _, piece := range p {
		n += int64(len(piece))
	}
	return n
}

// smallBody is the size up to which a body is copied to one piece of memory. Only then net/http sends header and body in one write.
const smallBody = 8 << 10

// Reader returns a new reader of the whole body, for one request. The reader of a large body drops its bytes when it is closed,
// which net/http does after sending them, so a long answer does not keep them in memory.
func (p Payload) Reader() io.ReadCloser {
	switch size := p.Len(); {
	case size > smallBody:
		return &payloadBody{rest: net.Buffers(slices.Clone(p))}
	case len(p) == 1:
		return io.NopCloser(bytes.NewReader(p[0]))
	default:
		return io.NopCloser(bytes.NewReader(slices.Concat(p...)))
	}
}

// payloadBody reads the pieces without copying them. net/http may close it during a read.
type payloadBody struct {
	mu   sync.Mutex
	rest net.Buffers
}

// Read implements io.Reader.
func (b *payloadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rest.Read(p)
}

// Close implements io.Closer.
func (b *payloadBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rest = nil
	return nil
}

// Relayer sends a call that is already in the channel's format. It returns a *Fault with its Reply for an answer that is not 2xx, and for a
// 200 whose Content-Type is not the operation's. The caller closes the body. A canceled ctx ends the upstream request at once.
type Relayer interface {
	Relay(ctx context.Context, to Target, call *Call) (*http.Response, error)
}

// RealtimeCall is a request for one realtime conversation.
type RealtimeCall struct {
	// Model is the public name.
	Model string
	// Alias is that of Call.
	Alias string
	// Unnamed: the client has sent no model, which a conversation that only transcribes does not need. None is sent upstream.
	Unnamed bool
	// Header and Query hold what may be sent upstream of the client's, never a credential or the model.
	Header http.Header
	Query  url.Values
	// RequestID is the client's request id, for logs.
	RequestID string
	// Trail is that of Call.
	Trail *Trail
	// Token is the stable id of the calling token.
	Token string
}

// Dialer opens realtime conversations at one vendor. It is safe for concurrent use.
type Dialer interface {
	// DialRealtime calls dial once for the handshake. The error is dial's *Fault, refined by the vendor's error codes.
	DialRealtime(to Target, call RealtimeCall, dial func(client *http.Client, address string, header http.Header) error) error
}
