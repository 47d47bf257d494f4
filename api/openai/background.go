package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/responses"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// pollAfter is the wait, in milliseconds, until a client should read a running response again.
const pollAfter = "1000"

// background serves the responses that are tasks: those with background: true.
type background struct{ tasks *apitasks.Service }

func (a *background) requested(b *body.JSON) (bool, error) {
	if a == nil || !b.Flag("background") {
		return false, nil
	}
	if b.Value("store").False() {
		return false, providers.InvalidField("store", "Invalid request: 'store' must be true for a response in the background.")
	}
	return true, nil
}

func (a *background) start(x *edge.Request, r *http.Request, started tasks.Task, body []byte) error {
	if started.Stream {
		return a.stream(x, r, started, body, -1)
	}
	if started.Ended() { // the task of an earlier create
		return a.answer(x, r, started)
	}
	return x.Document(newResponse(started, string(started.State), body))
}

func (a background) get(x *edge.Request, r *http.Request, t tasks.Task) error {
	query := r.URL.Query()
	if query.Get("stream") != "true" {
		return a.answer(x, r, t)
	}
	after := int64(-1)
	if text := query.Get("starting_after"); text != "" {
		n, err := strconv.ParseInt(text, 10, 62)
		if err != nil || n < 0 {
			return providers.InvalidField("starting_after", "Invalid request: 'starting_after' must be a whole number.")
		}
		after = n
	}
	if !t.Stream {
		return providers.InvalidField("stream", "Invalid request: the response was created without 'stream', so it has no events.")
	}
	return a.stream(x, r, t, nil, after)
}

// stream sends the events of a response after a number. request is the body of the create; nil: it is read if needed.
func (a background) stream(x *edge.Request, r *http.Request, t tasks.Task, request []byte, after int64) error {
	plain := r.URL.Query().Get("include_obfuscation") == "false"
	return a.tasks.Stream(x, r, t, after, request, func(event eventlog.Piece) []byte {
		if plain && event.Begins && event.Ends { // larger events have no padding
			return withoutObfuscation(event.Data)
		}
		return event.Data
	})
}

func (a background) answer(x *edge.Request, r *http.Request, t tasks.Task) error {
	if !t.Ended() {
		x.Header().Set("Openai-Poll-After-Ms", pollAfter)
	}
	document, err := a.document(r.Context(), t)
	if err != nil {
		return err
	}
	return x.Document(document)
}

func (a background) document(ctx context.Context, t tasks.Task) ([]byte, error) {
	if t.State == workflows.Completed {
		return a.final(ctx, t)
	}
	request, err := a.tasks.Request(ctx, t)
	if err != nil {
		return nil, err
	}
	status := string(t.State)
	document := newResponse(t, status, request)
	switch {
	case t.State == workflows.Failed:
		return body.WithMembers(document, body.Named("error", responseFailure(t))), nil
	case t.State == workflows.Cancelled && t.Stream && len(t.Outputs) > 0:
		items, err := a.items(ctx, t)
		return body.WithMembers(document, body.Named("output", items)), err
	}
	return document, nil
}

func responseFailure(t tasks.Task) []byte {
	failure := apitasks.Failure{Code: "server_error", Message: "The response failed."}
	if t.Failure != nil {
		failure.Message = cmp.Or(t.Failure.Message, failure.Message)
	}
	status := 0
	if t.Call != nil {
		status = t.Call.Status
	}
	switch {
	case status == http.StatusTooManyRequests:
		failure.Code = "rate_limit_exceeded"
	case status/100 == 4:
		failure.Code = "invalid_prompt"
	}
	if t.Failure != nil && isVendorCode(t.Failure.Code) {
		failure.Code = t.Failure.Code
	}
	text, _ := json.Marshal(failure) // plain strings always marshal
	return text
}

// isVendorCode reports whether a code is one of OpenAI's for failed responses.
func isVendorCode(code string) bool {
	return slices.Contains([]string{"server_error", "rate_limit_exceeded", "invalid_prompt", "vector_store_timeout", "invalid_image"}, code) ||
		strings.HasPrefix(code, "image_") || strings.HasSuffix(code, "_image")
}

// final returns the archived response, or the one in the last event of its stream.
func (a background) final(ctx context.Context, t tasks.Task) ([]byte, error) {
	if !t.Stream {
		return a.tasks.Output(ctx, t, io.ReadAll)
	}
	return a.tasks.Output(ctx, t, func(stream io.Reader) (document []byte, err error) {
		err = sse.Each(stream, func(event sse.Event) {
			if response := rawjson.Trim(event.Data).Get("response"); response.IsObject() {
				document = bytes.Clone(response)
			}
		})
		return document, err
	})
}

// items returns the items in the events of an unfinished response, as an array.
func (a background) items(ctx context.Context, t tasks.Task) ([]byte, error) {
	return a.tasks.Output(ctx, t, func(stream io.Reader) ([]byte, error) {
		var items itemsOf
		if err := sse.Each(stream, func(event sse.Event) { items.event(event.Data) }); err != nil {
			return nil, err
		}
		return items.list()
	})
}

// emptyResponse has the members of a response before its upstream has answered, with the defaults of members that repeat the request.
const emptyResponse = `{"id":null,"object":"response","created_at":null,"status":null,"background":true,"error":null,` +
	`"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,"model":null,"output":[],` +
	`"parallel_tool_calls":true,"previous_response_id":null,"prompt_cache_key":null,"reasoning":{"effort":null,"summary":null},` +
	`"safety_identifier":null,"service_tier":"auto","store":true,"temperature":1.0,"text":{"format":{"type":"text"}},` +
	`"tool_choice":"auto","tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":null,"user":null,"metadata":{}}`

// newResponse returns the response of a task before its upstream has answered, from the request.
func newResponse(t tasks.Task, status string, request []byte) []byte {
	create := rawjson.Trim(request)
	var out []byte
	for key, value := range rawjson.Value(emptyResponse).Members() {
		switch name := key.String(); name {
		case "object", "background", "error", "incomplete_details", "output", "store", "usage": // not from the request
		case "id":
			value = rawjson.Value(rawjson.Quote(t.ID))
		case "created_at":
			value = strconv.AppendInt(nil, t.CreatedAt.Unix(), 10)
		case "status":
			value = rawjson.Value(rawjson.Quote(status))
		default:
			if given := create.Get(name); len(given) > 0 {
				value = given
			}
		}
		out = body.AppendMember(out, key, value)
	}
	return append(out, '}')
}

// withoutObfuscation returns an event without the padding that hides the length of its text.
func withoutObfuscation(event []byte) []byte {
	data, _ := sse.FirstData(event)
	if object := rawjson.Trim(data); object.Get("obfuscation") != nil {
		return sse.Format(object.Get("type").Text().String(), body.WithoutMember(object, "obfuscation"))
	}
	return event
}

func statusEvent(kind string, n int, response []byte) []byte {
	return sse.Format(kind, slices.Concat([]byte(`{"type":"`+kind+`","sequence_number":`+strconv.Itoa(n)+`,"response":`), response,
		[]byte("}")))
}

// Opening returns the function that makes the first events of a response's stream. They are available before the worker begins.
func Opening(t tasks.Task) func(request []byte) [][]byte {
	return func(request []byte) [][]byte { return queuedEvents(t, repeated(request)) }
}

// repeatedMost bounds the members of a request that the gateway's own events repeat, in bytes: every reader of a stream holds them in
// memory.
const repeatedMost = 256 << 10

// repeated returns the members of a request that the events of its response repeat, within the bound. It always includes
// previous_response_id.
func repeated(request []byte) []byte {
	var out []byte
	for name, value := range rawjson.Trim(request).Members() {
		fits := len(out)+len(name)+len(value) < repeatedMost && !name.Is("input")
		if fits || name.Is("previous_response_id") {
			out = body.AppendMember(out, name, value)
		}
	}
	return append(out, '}')
}

func queuedEvents(t tasks.Task, request []byte) [][]byte {
	queued := newResponse(t, string(workflows.Queued), request)
	return [][]byte{statusEvent("response.created", 0, queued), statusEvent("response.queued", 1, queued)}
}

// Worker rewrites the upstream's answer to a background response: it replaces the id and the event numbers by those of the task. End must
// be called after the answer.
type Worker struct {
	*apitasks.Rewriter

	task    tasks.Task
	request []byte // the members that events repeat
	input   []byte // the items of its input; nil if they are too many to be stored
	next    int    // the number of the next event
	final   []byte // the response, or the one in the last event; nil if too large to store
	status  string // of final
	made    string // the id of the response at an upstream that stores it
}

// NewWorker returns a Worker for the task with the id and the time of its create. request is the body of the create.
func NewWorker(to http.ResponseWriter, id string, created time.Time, request []byte) *Worker {
	w := &Worker{task: tasks.Task{ID: id, CreatedAt: created}, request: repeated(request)}
	if input := ownInput(request); len(input) <= responses.MaxSize {
		w.input = append([]byte{}, input...)
	}
	w.Rewriter = apitasks.NewRewriter(to, w.event, w.members(), map[string]int{"id": maxID, "store": maxID, "status": maxID})
	return w
}

// maxID bounds an id, and other short texts, of an upstream's answer, in bytes.
const maxID = 256

// Request returns the body that is sent upstream for the response: without background, which the gateway implements, and with store.
func Request(request []byte) []byte {
	return body.WithMembers(body.WithoutMember(rawjson.Trim(request), "background"), body.Named("store", []byte("true")))
}

// Running returns the body for a response that its upstream already generates: without references to stored responses, which the gateway
// would read.
func Running(request []byte) []byte {
	return body.WithMembers(body.WithoutMember(Request(request), "previous_response_id"), body.Named("input", []byte(`""`)))
}

// event returns the task's events for an event of the upstream. The first one begins the stream.
func (w *Worker) event(upstream sse.Event) (out []byte) {
	if w.next == 0 {
		opening := queuedEvents(w.task, w.request)
		opening = append(opening, statusEvent("response.in_progress", len(opening), newResponse(w.task, string(workflows.InProgress), w.request)))
		out, w.next = slices.Concat(opening...), len(opening)
		w.Add(len(out))
	}
	data := rawjson.Trim(upstream.Data)
	kind := data.Get("type").Text().String()
	switch kind {
	case "", "response.created", "response.queued", "response.in_progress":
		return out
	}
	edits := []rawjson.Edit{body.Named("sequence_number", strconv.AppendInt(nil, int64(w.next), 10))}
	w.next++
	if response := data.Get("response"); response.IsObject() {
		w.see(response)
		own := body.WithMembers(response, w.members()...)
		w.status, w.final = response.Get("status").Text().String(), nil
		if len(own) <= responses.MaxSize {
			w.final = own
		}
		edits = append(edits, body.Named("response", own))
	}
	return append(out, sse.Format(kind, body.WithMembers(data, edits...))...)
}

// see records the upstream's id of a response that the upstream stores.
func (w *Worker) see(response rawjson.Value) {
	if w.made == "" && !response.Get("store").False() {
		w.made = response.Get("id").Text().String()
	}
}

// members returns the members of the task's response that replace the upstream's.
func (w *Worker) members() []rawjson.Edit {
	previous := rawjson.Trim(w.request).Get("previous_response_id")
	if previous.Absent() {
		previous = rawjson.Value("null")
	}
	return []rawjson.Edit{
		body.Named("id", rawjson.Quote(w.task.ID)), body.Named("background", []byte("true")), body.Named("store", []byte("true")),
		body.Named("previous_response_id", previous),
	}
}

// Holds returns the number of bytes of the request that the worker holds.
func (w *Worker) Holds() int { return len(w.request) + len(w.input) }

// Made returns the id of the response at an upstream that stores it, "" for none.
func (w *Worker) Made() string { return w.made }

// End returns the status of the final response, "" for none. It must be called after the answer.
func (w *Worker) End() (status string) {
	if kept, ok := w.Kept(); ok {
		w.see(kept)
		w.status, w.final = kept.Get("status").Text().String(), w.Held()
	}
	return w.status
}

// ended returns the stored response of an ended task of the caller, and its upstream's id. The error is a fault if the task is not
// completed.
func (s *stored) ended(
	x *edge.Request, r *http.Request, id string,
) (response responses.Response, made providers.Created, found bool, err error) {
	found, err = s.ofTask(x, r, id, func(_ *edge.Request, r *http.Request, t tasks.Task) error {
		t, err := s.background.tasks.AwaitEnd(r.Context(), t)
		if err != nil {
			return err
		}
		if t.State != workflows.Completed {
			return providers.InvalidField("previous_response_id", "Invalid request: the response %q is %s.", id, string(t.State))
		}
		request, err := s.background.tasks.Request(r.Context(), t)
		if err != nil {
			return err
		}
		response.Input, made = ownInput(request), apitasks.MadeBy(t)
		switch previous := previousOf(request); {
		case t.Items != "":
			response.Earlier, err = s.background.tasks.Items(r.Context(), t)
			if err != nil {
				return err
			}
		case previous != "" && made.ID == "": // otherwise the upstream may have it
			return providers.InvalidField("previous_response_id", "Invalid request: the response %q continues from %q, which is not stored.", id,
				previous)
		}
		response.Object, err = s.background.final(r.Context(), t)
		return err
	})
	return response, made, found, err
}

// previous returns a response of the caller from which a call may continue, and its upstream's id if it is a task and its upstream stores
// it.
func (s *stored) previous(
	x *edge.Request, r *http.Request, id string,
) (response responses.Response, made providers.Created, found bool, err error) {
	response, found, err = s.find(x, r, id)
	switch {
	case err != nil:
		return response, made, false, err
	case !found:
		return s.ended(x, r, id)
	}
	made, err = s.made(x, r, id, rawjson.Trim(response.Object))
	return response, made, true, err
}

// made returns the result of apitasks.MadeBy for a stored response that is a task, zero for any other.
func (s *stored) made(x *edge.Request, r *http.Request, id string, object rawjson.Value) (made providers.Created, err error) {
	if !object.Get("background").True() {
		return made, nil
	}
	t, found, err := s.background.tasks.Response(r.Context(), x.Caller.ID, id)
	if err != nil || !found {
		return made, err
	}
	return apitasks.MadeBy(t), nil
}

// ownInput returns the items of a request's input, separated by commas.
func ownInput(request []byte) []byte {
	input := rawjson.Trim(request).Get("input")
	switch {
	case input.IsText():
		return slices.Concat([]byte(`{"type":"message","role":"user","content":`), input, []byte("}"))
	case input.IsArray():
		return bytes.TrimSpace(input[1 : len(input)-1])
	}
	return nil
}

// ResponseSaver stores a response of a token until it expires: the response, the items before its own input, and its own input.
type ResponseSaver func(ctx context.Context, token, id string, object, earlier, input []byte)

// Save stores the response of a worker with its whole chain, if the chain is known and nothing is too large.
func (save ResponseSaver) Save(ctx context.Context, token string, w *Worker, earlier []byte) {
	if save == nil || w.final == nil || w.input == nil || previousOf(w.request) != "" && earlier == nil {
		return
	}
	save(ctx, token, w.task.ID, w.final, earlier, w.input)
}

// previousOf returns the id of the response from which a request continues, "" for none.
func previousOf(request []byte) string {
	return rawjson.Trim(request).Get("previous_response_id").Text().String()
}
