package gemini

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
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
	"modelrelay/storage/eventlog"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// This file has the interactions that are tasks. The wire source is Google's pages "Background execution" and "Interactions API"
// (ai.google.dev/gemini-api/docs/background-execution, ai.google.dev/api/interactions-api) and @google/genai 3.1.0: Interaction,
// InteractionSSEEvent and GetInteractionByIdRequest in genai.d.ts, and the sentinel [DONE] of its event streams.

// previousField is the member of a create with the interaction from which it continues.
const previousField = "previous_interaction_id"

// IsInteraction reports whether the path is that of the create of interactions.
func IsInteraction(path string) bool {
	return path == "/v1beta"+interactionsPath || path == "/v1"+interactionsPath
}

func isInteraction(t tasks.Task) bool {
	path, created := strings.CutPrefix(t.Operation, http.MethodPost+" ")
	return created && IsInteraction(path)
}

func (a *Interactions) requested(b *body.JSON) (bool, error) {
	switch {
	case !b.Flag("background"):
		return false, nil
	case b.Value("store").False():
		return false, providers.InvalidField("store", "Invalid request: 'store' must be true for an interaction in the background.")
	case !b.Value("webhook_config").Absent():
		return false, providers.InvalidField("webhook_config",
			"Invalid request: 'webhook_config' is not supported for an interaction in the background; use the header X-Webhook-Url.")
	}
	return true, nil
}

// InteractionRequest returns the body that is sent upstream for an interaction that is a task: without background, which the gateway
// implements.
func InteractionRequest(request []byte) []byte {
	return body.WithoutMember(rawjson.Trim(request), "background")
}

// RunningInteraction returns the body for an interaction that its upstream already generates: without the previous one, which may have
// expired.
func RunningInteraction(request []byte) []byte {
	return body.WithoutMember(InteractionRequest(request), previousField)
}

// continues makes a call continue from the interaction in its body. The vendor knows an interaction that is a task under another id, which
// the client's answer must not contain.
func (a *Interactions) continues(x *edge.Request, r *http.Request, ch *calls.Charge, b *body.JSON, call *calls.Call) error {
	previous := b.Text(previousField)
	if previous == "" {
		return nil
	}
	made := providers.Created{ID: previous}
	if a.tasks.IsCall(previous) {
		if err := ch.Admit(r.Context()); err != nil { // the next step reads a store
			return err
		}
		earlier, err := a.tasks.Call(r.Context(), x.Caller.ID, previous, isInteraction)
		if err == nil {
			earlier, err = a.tasks.AwaitEnd(r.Context(), earlier)
		}
		switch {
		case err != nil && providers.AsFault(err).Kind == providers.NotFound:
			return providers.InvalidField(previousField, "Invalid request: '%s' names no interaction.", previousField)
		case err != nil:
			return err
		case earlier.State != workflows.Completed:
			return providers.InvalidField(previousField, "Invalid request: '%s' names an interaction that is %s.", previousField,
				statusOfTask(earlier))
		}
		if made = apitasks.MadeBy(earlier); made.ID == "" {
			return providers.InvalidField(previousField, "Invalid request: '%s' names an interaction that its upstream has not stored.",
				previousField)
		}
		upstreamID := rawjson.Quote(made.ID)
		call.Edits = append(call.Edits, providers.Edit{At: b.Span(previousField), Text: upstreamID})
		call.Rewrite = body.Replaced(rawjson.Quote(previous), upstreamID)
	}
	made.Param = previousField
	call.ContinuesFrom = []providers.Created{made}
	return nil
}

func (a *Interactions) start(x *edge.Request, r *http.Request, started tasks.Task, request []byte) error {
	if started.Stream {
		return a.tasks.Stream(x, r, started, -1, request, unchanged)
	}
	return a.answer(x, r, started, request)
}

// unchanged returns an event as it is stored: the log has events in the form for clients.
func unchanged(event eventlog.Piece) []byte { return event.Data }

// serve reads, cancels or deletes an interaction that is a task. A token that may not call models has none.
func (a *Interactions) serve(x *edge.Request, r *http.Request, do providers.StoredVerb, id string) error {
	found, err := a.tasks.Call(r.Context(), x.Caller.ID, id, isInteraction)
	if err == nil {
		err = x.Permit(edge.RelayPermission)
	}
	if err != nil {
		if kind := providers.AsFault(err).Kind; kind == providers.NotFound || kind == providers.Forbidden {
			return providers.Faultf(providers.NotFound, "Nothing with the id %q was found.", id)
		}
		return err
	}
	x.Outcome.Model = found.Request.Model
	switch do {
	case providers.StoredDelete:
		if err := a.tasks.Delete(r.Context(), x.Caller.ID, id); err != nil {
			return err
		}
		return x.JSON(struct{}{})
	case providers.StoredCancel:
		cancelled, err := a.tasks.Tasks.Cancel(r.Context(), id, x.Caller.ID)
		if err != nil {
			return err
		}
		return a.answer(x, r, cancelled, nil)
	}
	if r.URL.Query().Get("stream") == "true" {
		return a.follow(x, r, found)
	}
	wait, err := apitasks.ParseWait([]byte(r.URL.Query().Get("wait")))
	if err == nil {
		found, err = a.tasks.Wait(r.Context(), found, wait)
	}
	if err != nil {
		return err
	}
	return a.answer(x, r, found, nil)
}

func (a *Interactions) follow(x *edge.Request, r *http.Request, t tasks.Task) error {
	after := int64(-1)
	if last := r.URL.Query().Get("last_event_id"); last != "" {
		n, err := strconv.ParseInt(last, 10, 62)
		if err != nil || n < 0 {
			return providers.InvalidField("last_event_id", "Invalid request: 'last_event_id' is not the event_id of an event of this interaction.")
		}
		after = n
	}
	if !t.Stream {
		return providers.InvalidField("stream", "Invalid request: the interaction was created without 'stream', so it has no events.")
	}
	return a.tasks.Stream(x, r, t, after, nil, unchanged)
}

// answer answers with the current state of an interaction. request is the body of the create; nil: it is read if needed.
func (a *Interactions) answer(x *edge.Request, r *http.Request, t tasks.Task, request []byte) error {
	document, err := a.document(r.Context(), t, request, r.URL.Query().Get("include_input") == "true")
	if err != nil {
		return err
	}
	return x.Document(document)
}

func (a *Interactions) document(ctx context.Context, t tasks.Task, request []byte, withInput bool) (document []byte, err error) {
	if request == nil && (withInput || t.State != workflows.Completed) {
		if request, err = a.tasks.Request(ctx, t); err != nil {
			return nil, err
		}
	}
	var more []rawjson.Edit
	switch {
	case t.State == workflows.Completed && !t.Stream:
		document, err = a.tasks.Output(ctx, t, io.ReadAll)
	case t.State == workflows.Completed:
		document, err = a.tasks.Output(ctx, t, interactionOf)
	case t.State == workflows.Cancelled && len(t.Outputs) > 0 && t.Stream:
		document = newInteraction(t, request)
		var shown []byte
		if shown, err = a.tasks.Output(ctx, t, interactionOf); err == nil {
			more = append(more, body.Named("steps", rawjson.Trim(shown).Get("steps")))
		}
	default:
		document = newInteraction(t, request)
		if t.State == workflows.Failed {
			more = append(more, body.Named("errors", interactionErrors(t)))
		}
	}
	if input := rawjson.Trim(request).Get("input"); withInput && len(input) > 0 {
		more = append(more, body.Named("input", input))
	}
	if err != nil || len(more) == 0 {
		return document, err
	}
	return body.WithMembers(document, more...), nil
}

// interactionOf returns the interaction in the last event of a stream, with the steps from the events before it.
func interactionOf(stream io.Reader) (document []byte, err error) {
	var collected steps
	err = sse.Each(stream, func(event sse.Event) {
		collected.event(event.Data)
		if interaction := rawjson.Trim(event.Data).Get("interaction"); interaction.IsObject() {
			document = bytes.Clone(interaction)
		}
	})
	if err != nil || rawjson.Value(document).Get("steps").IsArray() {
		return document, err
	}
	list, err := collected.list()
	return body.WithMembers(document, body.Named("steps", list)), err
}

// statusOfTask returns the status of an interaction that is not completed, or is being completed.
func statusOfTask(t tasks.Task) string {
	if t.State == workflows.Queued {
		return string(workflows.InProgress)
	}
	return string(t.State)
}

// newInteraction returns the interaction of a task without the upstream's answer.
func newInteraction(t tasks.Task, request []byte) []byte {
	members := append(partialInteraction(t, request, statusOfTask(t)),
		body.Named("updated", quotedTime(cmp.Or(t.CompletedAt, t.CreatedAt))), body.Named("steps", []byte("[]")))
	if previous := rawjson.Trim(request).Get(previousField); !previous.Absent() {
		members = append(members, body.Named(previousField, previous))
	}
	return body.WithMembers(nil, members...)
}

// partialInteraction returns the members that events also have.
func partialInteraction(t tasks.Task, request []byte, status string) []rawjson.Edit {
	kind, name := "model", rawjson.Trim(request).Get("model").Text()
	if name.Empty() {
		kind, name = "agent", rawjson.Trim(request).Get("agent").Text()
	}
	return []rawjson.Edit{
		body.Named("id", rawjson.Quote(t.ID)), body.Named("object", []byte(`"interaction"`)), body.Named(kind, rawjson.Quote(name.String())),
		body.Named("status", rawjson.Quote(status)), body.Named("created", quotedTime(t.CreatedAt)),
	}
}

func quotedTime(at time.Time) []byte { return rawjson.Quote(at.UTC().Format(time.RFC3339)) }

func interactionErrors(t tasks.Task) []byte {
	failure := apitasks.Failure{Code: "internal", Message: "The interaction failed."}
	if t.Failure != nil {
		failure.Code, failure.Message = t.Failure.Code, cmp.Or(t.Failure.Message, failure.Message)
	}
	text, _ := json.Marshal([]apitasks.Failure{failure}) // plain strings always marshal
	return text
}

// Opening returns the first events of an interaction's stream. They are available before the worker begins.
func Opening(t tasks.Task, request []byte) [][]byte {
	status := string(workflows.InProgress)
	return [][]byte{
		interactionEvent("interaction.created", 0, body.Named("interaction", body.WithMembers(nil, partialInteraction(t, request, status)...))),
		interactionEvent("interaction.status_update", 1, body.Named("interaction_id", rawjson.Quote(t.ID)),
			body.Named("status", rawjson.Quote(status))),
	}
}

func interactionEvent(kind string, n int64, members ...rawjson.Edit) []byte {
	members = slices.Concat([]rawjson.Edit{body.Named("event_type", rawjson.Quote(kind))}, members, []rawjson.Edit{eventID(n)})
	return sse.Format(kind, body.WithMembers(nil, members...))
}

func eventID(n int64) rawjson.Edit {
	return body.Named("event_id", rawjson.Quote(strconv.FormatInt(n, 10)))
}

// InteractionError returns the final event of an interaction's stream that failed after n events.
func InteractionError(fault *providers.Fault, n int64) []byte {
	failure := apitasks.Failure{Code: strings.ToLower(statusOf(fault.Kind)), Message: fault.Message}
	text, _ := json.Marshal(failure) // plain strings always marshal
	return interactionEvent("error", n, body.Named("error", text))
}

// InteractionWorker rewrites the upstream's answer to a background interaction: it replaces the interaction's id by that of the task, and
// the ids of the events. End must be called after the answer.
type InteractionWorker struct {
	*apitasks.Rewriter

	task    tasks.Task
	request []byte // the members that events repeat
	next    int64  // the number of the next event
	done    bool   // [DONE] was sent
	id      string
	ended   bool // the interaction, or that in the last event, was read
	failure *providers.VideoFailure
}

// NewInteractionWorker returns an InteractionWorker for the task with the id and the time of its create. request is the body of the create.
func NewInteractionWorker(to http.ResponseWriter, id string, created time.Time, request []byte) *InteractionWorker {
	w := &InteractionWorker{task: tasks.Task{ID: id, CreatedAt: created}, request: repeated(request)}
	w.Rewriter = apitasks.NewRewriter(to, w.event, w.members(), map[string]int{"id": maxID, "status": maxID, "errors": maxErrors})
	return w
}

// maxID bounds an id, and other short texts, of an upstream's answer, and maxErrors its errors, in bytes.
const (
	maxID     = 256
	maxErrors = 64 << 10
)

// repeated returns the members of a request that the events of its interaction repeat.
func repeated(request []byte) []byte {
	var members []rawjson.Edit
	for _, name := range [...]string{"model", "agent", previousField} {
		if value := rawjson.Trim(request).Get(name); len(value) > 0 {
			members = append(members, body.Named(name, bytes.Clone(value)))
		}
	}
	return body.WithMembers(nil, members...)
}

// event returns the task's events for an event of the upstream. The first one begins the stream.
func (w *InteractionWorker) event(upstream sse.Event) (out []byte) {
	opening := Opening(w.task, w.request)
	if w.next == 0 {
		out = slices.Concat(opening...)
		w.next = int64(len(opening))
	}
	data := rawjson.Trim(upstream.Data)
	if !data.IsObject() {
		if len(data) == 0 {
			return out
		}
		w.next++
		w.done = true
		return append(out, sse.Format("done", data)...)
	}
	kind := data.Get("event_type").Text().String()
	members := []rawjson.Edit{eventID(w.next)}
	if interaction := data.Get("interaction"); interaction.IsObject() {
		w.id = cmp.Or(interaction.Get("id").Text().String(), w.id)
		members = append(members, body.Named("interaction", body.WithMembers(interaction, w.members()...)))
		if kind == "interaction.completed" {
			w.end(interaction)
		}
	}
	switch {
	case kind == "interaction.created", kind == "interaction.status_update" && w.next == int64(len(opening)) && isRunning(data):
		return out
	case kind == "error":
		w.failure = failureOf(data.Get("error"))
	}
	if data.Get("interaction_id") != nil {
		members = append(members, body.Named("interaction_id", rawjson.Quote(w.task.ID)))
	}
	w.next++
	return append(out, sse.Format(kind, body.WithMembers(data, members...))...)
}

// isRunning reports whether a status update only reports that the interaction runs.
func isRunning(data rawjson.Value) bool {
	status := data.Get("status").Text()
	return (status.Is("in_progress") || status.Is("queued")) && data.Get("continuation_token") == nil
}

// members returns the members of the task's interaction that replace the upstream's.
func (w *InteractionWorker) members() []rawjson.Edit {
	members := []rawjson.Edit{body.Named("id", rawjson.Quote(w.task.ID))}
	if previous := rawjson.Trim(w.request).Get(previousField); !previous.Absent() {
		members = append(members, rawjson.Edit{Name: previousField, Value: previous, Only: true})
	}
	return members
}

// CopyID returns the upstream's id of the interaction, "" if it has none.
func (w *InteractionWorker) CopyID() string { return w.id }

// End ends the answer. ended: the answer was read completely. For a stream without its last event, End writes the error event and returns
// its fault. failure is the failure in a whole answer.
func (w *InteractionWorker) End(ended bool) (failure *providers.VideoFailure, fault *providers.Fault) {
	if kept, ok := w.Kept(); ok {
		w.id = kept.Get("id").Text().String()
		w.end(kept)
	}
	switch {
	case !ended:
		return nil, nil
	case w.next > 0 && !w.ended && w.failure == nil:
		fault = &providers.Fault{Kind: providers.Upstream, Message: "The upstream ended its answer without finishing it."}
		_, _ = w.ResponseWriter.Write(InteractionError(fault, w.next)) // the task's writer records the error
		return nil, fault
	case w.next > 0 && w.ended && !w.done: // the vendor's SDKs end at this event
		_, _ = w.ResponseWriter.Write(sse.Format("done", []byte("[DONE]"))) // as above
	}
	return w.failure, nil
}

func (w *InteractionWorker) end(interaction rawjson.Value) {
	if w.ended = true; !interaction.Get("status").Text().Is("failed") {
		return
	}
	w.failure = failureOf(nil)
	for _, first := range interaction.Get("errors").Items() {
		w.failure = failureOf(first)
		break
	}
}

func failureOf(reported rawjson.Value) *providers.VideoFailure {
	return &providers.VideoFailure{
		Code:    cmp.Or(reported.Get("code").Text().String(), "upstream_error"),
		Message: cmp.Or(reported.Get("message").Text().String(), "The interaction failed."),
	}
}
