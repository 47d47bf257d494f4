package openai

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/media"
	"modelrelay/providers/rawjson"
)

// Options are the dependencies of the format. The models are those of calls without a model; "" refuses such calls.
type Options struct {
	ModerationModel, RealtimeModel string
	// Responses are the stored responses; nil: there are none.
	Responses StoredResponses
	// Tasks has the background calls; nil: there are none.
	Tasks *apitasks.Service
}

// Add adds the operations of the format's relayed calls and of its conversations.
func Add(g *edge.Group, c *calls.Calls, o Options) {
	a := adder{group: g, calls: c, background: background{o.Tasks}}
	a.addChat()
	a.addResponses(o.Responses)
	a.addText(o.ModerationModel)
	a.addAudio()
	a.addImages()
	a.addRealtime(o.RealtimeModel)
}

type adder struct {
	group      *edge.Group
	calls      *calls.Calls
	background background
}

func (a adder) registry() huma.Registry { return a.group.OpenAPI().Components.Schemas }

type relayed struct {
	huma.Operation

	name providers.Operation
	// stored reads the stored responses to which a body may refer; nil: the body has no such references.
	stored *stored
	// background makes a call with background: true a task; nil: the operation has no tasks.
	background *background
	// finish completes the call of a checked body with what is specific to the operation; nil: nothing.
	finish func(r *http.Request, call *calls.Call, b *body.JSON) error
	// continuesFrom lists the results of earlier answers to which a body refers; nil: there are none.
	continuesFrom func(b *body.JSON) ([]providers.Created, error)
	// route is the router's pattern if it differs from Path.
	route string
}

// addCall adds an operation with a JSON body that is checked as Body and relayed unchanged.
func addCall[Body any](a adder, op relayed) {
	registry := a.registry()
	check := newChecker[Body](registry)
	op.Method, op.RequestBody = http.MethodPost, body.DeclareJSON[Body](registry)
	if op.route == "" {
		op.route = op.Path
	}
	a.group.With(calls.Access()).HandleAt(op.route, op.Operation, a.calls.Relayed(readJSON(check, op)))
}

// cacheKey is the field that is equal for calls with a common prefix. It is not in the contract, so it is not checked.
const cacheKey = "prompt_cache_key"

// newChecker is body.NewChecker with the fields that the gateway reads in addition to the contract. An upstream may read any of the fields
// for the size of an answer, so each is read wherever it is.
func newChecker[Body any](registry huma.Registry) *body.Checker {
	return body.NewChecker[Body](registry, "max_completion_tokens", "max_output_tokens", "max_tokens", "n", "best_of",
		cacheKey, "stream_options.include_usage", "parameters.n")
}

func readJSON(check *body.Checker, op relayed) calls.Reader {
	return func(x *edge.Request, r *http.Request, raw []byte) (call *calls.Call, err error) {
		b, err := check.Check(raw)
		if err != nil {
			return call, err
		}
		inBackground, err := op.background.requested(b)
		if err == nil && inBackground { // the gateway runs it itself
			b, err = check.Check(Request(raw))
		}
		if err != nil {
			return call, err
		}
		complete := func(b *body.JSON, chain providers.Chain) (*calls.Call, error) {
			call, err := op.read(x, r, b, chain)
			if inBackground {
				call.Task = op.background.start
			}
			return call, err
		}
		if op.stored == nil || !op.stored.names(b) {
			return complete(b, providers.Chain{})
		}
		return &calls.Call{Resolve: func() (call *calls.Call, err error) {
			resolved, chain, input, err := op.stored.resolve(x, r, b)
			if err == nil && resolved != nil {
				b, err = check.Check(resolved)
			}
			if err != nil {
				return call, err
			}
			call, err = complete(b, chain)
			if input != nil {
				call.Stage = func() []byte { return body.WithMembers(rawjson.Trim(raw), body.Named("input", input())) }
			}
			return call, err
		}}, nil
	}
}

// read returns the call of a checked body. The chain describes the stored responses in the body.
func (op *relayed) read(x *edge.Request, r *http.Request, b *body.JSON, chain providers.Chain) (*calls.Call, error) {
	call := calls.JSONCall(providers.Endpoint{Format: providers.OpenAI, Operation: op.name}, b)
	call.Header, call.Events.Last, call.Chain = keepHeader(r), isDone, chain
	call.Output, call.N = sizeOf(b)
	if key := b.Value(cacheKey); len(key) > 0 {
		call.Affinity = calls.Affinity(x, b.Value("model"), key)
	}
	if op.finish != nil {
		if err := op.finish(r, call, b); err != nil {
			return call, err
		}
	}
	if op.continuesFrom == nil {
		return call, nil
	}
	var err error
	call.ContinuesFrom, err = op.continuesFrom(b)
	if chain.Upstream != "" {
		call.ContinuesFrom = slices.Insert(call.ContinuesFrom, 0, providers.Created{ID: chain.Upstream, Param: "previous_response_id"})
	}
	return call, err
}

// readForm returns the call of a multipart body. It is relayed unchanged, except for the model's name if the channel has another one.
// finish checks what is specific to the operation; nil: nothing.
func readForm(
	r *http.Request, raw []byte, boundary string, fields *body.Checker, name providers.Operation, finish func(f *body.Form) error,
) (*calls.Call, error) {
	f, err := fields.CheckForm(raw, boundary)
	if err == nil && finish != nil {
		err = finish(f)
	}
	if err != nil {
		return nil, err
	}
	return &calls.Call{
		Call: providers.Call{
			Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: name},
			Model:    f.Text("model"), Stream: f.Text("stream") == "true", Header: keepHeader(r),
			Content: providers.Content{
				ContentType: r.Header.Get("Content-Type"), Body: raw, ModelAt: f.Span("model"),
				EncodeModel: func(model string) []byte { return []byte(model) },
			},
			OpenValues: f.Unlisted != nil,
		},
		Sound:    soundOf(raw[f.Span("file").From:f.Span("file").To]),
		Unlisted: f.Unlisted, N: body.Whole([]byte(f.Text("n"))), Events: calls.Events{Last: isDone},
	}, nil
}

// soundOf returns the duration of an audio file, 0 if unknown.
func soundOf(file []byte) time.Duration {
	length, _ := media.Length(bytes.NewReader(file), int64(len(file)))
	return length
}

func keepHeader(r *http.Request) http.Header { return calls.KeepHeader(r, "Openai-Beta") }

// isDone reports whether the bytes end with the last event of a stream.
func isDone(events []byte) bool {
	return bytes.HasSuffix(bytes.TrimRight(events, "\r\n"), []byte("data: [DONE]"))
}

// sizeOf reads the size of the answer from a body, from the largest of its fields: the tokens of one answer, and the number of answers or
// images.
func sizeOf(b *body.JSON) (output, n int64) {
	for _, name := range [...]string{"max_completion_tokens", "max_output_tokens", "max_tokens"} {
		output = max(output, body.Whole(b.Value(name)))
	}
	for _, name := range [...]string{"n", "best_of"} { // all best_of answers are generated and cost money
		n = max(n, body.Whole(b.Value(name)))
	}
	n = min(body.MaxWhole, max(1, n)*prompts(b.Value("prompt")))
	return output, max(n, body.Whole(b.Value("parameters").Get("n"))) // the contract's own image calls have it there
}

// prompts returns the number of texts that a completion continues, each with its own answers: the elements of an array that is not the
// tokens of one text.
func prompts(raw rawjson.Value) int64 {
	for _, first := range raw.Items() {
		if first.IsNumber() {
			return 1
		}
		break
	}
	return max(1, int64(raw.Len()))
}

// setModel sets the model of the call to that of the path or the configuration. It ignores the model in the body.
func setModel(call *calls.Call, b *body.JSON, model string) {
	named := call.ModelAt != (providers.Span{})
	switch {
	case named && b.Value("model") != nil && call.Model == model:
		return
	case !named:
		inside := body.InsertMember(b.Raw, 0, `"model":`)
		call.ModelAt = inside.At
		empty := len(inside.Text) == len(`"model":`) // without a comma there are no other members
		call.EncodeModel = func(model string) []byte {
			name, _ := json.Marshal(model) // a string always marshals
			text := append([]byte(`"model":`), name...)
			if !empty {
				text = append(text, ',')
			}
			return text
		}
	}
	call.Model, call.ModelUnset = model, true
}
