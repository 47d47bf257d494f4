package tasks

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// MaxIdempotencyKey is the maximum length of a key in characters.
const MaxIdempotencyKey = 255

// NewCreate returns the caller's create of a task.
func NewCreate(x *edge.Request, r *http.Request, format providers.Format, request providers.VideoRequest) (tasks.Create, error) {
	key, err := idempotencyKey(r.Header)
	return tasks.Create{
		TokenID: x.Caller.ID, TokenName: x.Caller.Name, Group: x.Caller.Group,
		Weight: x.Caller.Weight, Lane: x.Caller.Lane, MaxTasks: x.Caller.MaxTasks, Budget: x.Caller.Budget,
		TokenWebhook: x.Caller.WebhookURL != "", TokenSigns: x.Caller.WebhookSecret != "",
		Format: format, Request: request, IdempotencyKey: key, Repeat: isRepeat(r.Header), Arrived: x.Arrived(r.Context()),
	}, err
}

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

// Create creates a task, or finds that of an equal create if a new one is refused with refusal; nil: it is not refused.
func Create(x *edge.Request, r *http.Request, of Tasks, create tasks.Create, refusal error) (task tasks.Task, err error) {
	switch {
	case refusal == nil:
		task, err = of.Create(r.Context(), create)
	case create.IdempotencyKey == "" && !create.Repeat:
		err = refusal
	default:
		if task, err = of.Repeated(r.Context(), create); err != nil && providers.AsFault(err).Kind == providers.NotFound {
			err = refusal
		}
	}
	x.Outcome.Task, x.Outcome.Refused = task.ID, ""
	if err != nil {
		limits := map[providers.Kind]edge.Limit{providers.RateLimited: edge.LimitTasks, providers.Quota: edge.LimitBudget}
		x.Outcome.Refused = limits[providers.AsFault(err).Kind]
	}
	return task, err
}

// Start implements calls.Background.
func (s *Service) Start(x *edge.Request, r *http.Request, call calls.BackgroundCall) error {
	create, err := NewCreate(x, r, x.Format.Name, call.Request)
	if err != nil {
		return err
	}
	create.Call = call.Call
	started, err := Create(x, r, s.Tasks, create, call.Refusal)
	if err != nil {
		return err
	}
	call.Started()
	body := call.Request.Inputs[0].Data
	create.Request, call.Request = providers.VideoRequest{}, providers.VideoRequest{} // a client may wait for long
	if call.Answer != nil {
		return call.Answer(x, r, started, body)
	}
	x.ReleaseBody()
	applied := "respond-async"
	if call.Waits {
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
