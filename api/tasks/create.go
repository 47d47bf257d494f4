package tasks

import (
	"context"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// MaxIdempotencyKey is in characters.
const MaxIdempotencyKey = 255

// NewCreate returns the caller's create of a task.
func NewCreate(x *edge.Request, r *http.Request, format providers.Format) (tasks.Create, error) {
	key, err := idempotencyKey(r.Header)
	return tasks.Create{
		TokenID: x.Caller.ID, TokenName: x.Caller.Name, Group: x.Caller.Group,
		Weight: x.Caller.Weight, Lane: x.Caller.Lane, MaxTasks: x.Caller.MaxTasks, Budget: x.Caller.Budget,
		TokenWebhook: x.Caller.WebhookURL != "", TokenSigns: x.Caller.WebhookSecret != "",
		Format: format, IdempotencyKey: key, Repeat: isRepeat(r.Header), Arrived: x.Arrived(r.Context()),
	}, err
}

// LimitOf returns the limit that refused a create with a fault of the kind, "" for none.
func LimitOf(kind providers.Kind) edge.Limit {
	switch kind {
	case providers.RateLimited:
		return edge.LimitTasks
	case providers.Quota:
		return edge.LimitBudget
	default:
		return ""
	}
}

// idempotencyKey returns the caller's key, "" for none.
func idempotencyKey(header http.Header) (string, error) {
	values := header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if n := utf8.RuneCountInString(values[0]); len(values) > 1 || n < 1 || n > MaxIdempotencyKey {
		return "", providers.InvalidField("Idempotency-Key", "Invalid request: 'Idempotency-Key' must have 1 to 255 characters.")
	}
	return values[0], nil
}

func isRepeat(header http.Header) bool {
	count, err := strconv.Atoi(header.Get("X-Stainless-Retry-Count"))
	return err == nil && count > 0
}

// create creates the task of a call, or finds that of an equal create if a new one is refused.
func (s *Service) create(ctx context.Context, create tasks.Create, refusal error) (tasks.Task, error) {
	if refusal == nil {
		return s.Tasks.Create(ctx, create)
	}
	task, err := s.Tasks.Repeated(ctx, create)
	if err != nil && providers.AsFault(err).Kind == providers.NotFound {
		err = refusal
	}
	return task, err
}

// Start implements calls.Background.
func (s *Service) Start(x *edge.Request, r *http.Request, call calls.BackgroundCall) error {
	create, err := NewCreate(x, r, x.Format.Name)
	if err != nil {
		return err
	}
	create.Request = providers.VideoRequest{
		Model: call.Model, Asked: call.Asked, Metadata: call.Metadata, WebhookURL: call.Staged.WebhookURL,
		Inputs: []providers.Media{{Data: call.Body, ContentType: call.Staged.Header.Get("Content-Type")}},
	}
	if call.Staged.Chain != nil {
		if call.Items == nil { // a response without items
			call.Items = []byte{}
		}
		create.Request.Inputs = append(create.Request.Inputs, providers.Media{Data: call.Items, ContentType: "application/json"})
	}
	create.Call = &tasks.CallCreate{StagedCall: call.Staged, Digest: call.Digest, Response: call.Answer != nil &&
		call.Operation == providers.Responses}
	started, err := s.create(r.Context(), create, call.Refusal)
	x.Outcome.Task = started.ID
	if err != nil {
		x.Outcome.Refused = LimitOf(providers.AsFault(err).Kind)
		return err
	}
	call.Started()
	body := call.Body
	create.Request, create.Call, call.Body, call.Items = providers.VideoRequest{}, nil, nil, nil
	if call.Answer != nil {
		return call.Answer(x, r, started, body)
	}
	x.ReleaseBody() // a client may wait for long
	applied := "respond-async"
	if call.Waits && !call.Staged.Stream {
		applied += ", wait=" + strconv.Itoa(int(call.Wait/time.Second))
		ended, err := s.reader.End(r.Context(), started, call.Wait)
		if err != nil {
			return err
		}
		if ended.Ended() {
			x.Header().Set("Preference-Applied", applied)
			x.Header().Set("Content-Location", resultPath(ended.ID))
			return s.ServeResult(x, r, ended)
		}
		started = ended
	}
	header := x.Header()
	header.Set("Location", root+"/"+started.ID)
	header.Set("Retry-After", retryTask)
	header.Set("Preference-Applied", applied)
	return x.JSONStatus(http.StatusAccepted, newTask(started))
}
