package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/limits"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// Tasks starts and reads video tasks. Errors are *providers.Fault; a task of another token is NotFound.
type Tasks interface {
	Create(ctx context.Context, create tasks.Create) (tasks.Task, error)
	Find(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Repeated finds the task of an equal create, by its key or as an SDK's repeat, and makes none; else it is NotFound.
	Repeated(ctx context.Context, create tasks.Create) (tasks.Task, error)
	// List reads a page; an After that the token has no task for is Invalid.
	List(ctx context.Context, query tasks.ListQuery) (tasks.Page, error)
	// Cancel returns the task as it is after two seconds at most.
	Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Delete returns when the task is found no more.
	Delete(ctx context.Context, id, tokenID string) error
	// Watch returns the task at the first change of state, progress or queue position after last, and at once where last
	// has ended. Its error is ctx's, or NotFound when the task was removed.
	Watch(ctx context.Context, last tasks.Task) (tasks.Task, error)
}

const (
	// maxIdempotencyKey is in characters.
	maxIdempotencyKey = 255
	// maxEchoed bounds, in bytes, what every answer about a task repeats: the prompt, and the metadata. No vendor takes half
	// as long a prompt, and upstreams that repeat it as well must stay within what the adapters read of an answer: a job
	// whose answer cannot be read may be paid for and lost.
	maxEchoed = 128 << 10
)

// createTask is what the creates of all video formats share once the request is canonical: it fills in the model,
// checks that the caller may use it and that some channel makes videos with it, and starts the task.
func (s *Server) createTask(x *edge.Request, r *http.Request, format providers.Format, req providers.VideoRequest) (tasks.Task, error) {
	if err := s.video.takeFields(&req); err != nil {
		return tasks.Task{}, err
	}
	if req.Model == "" {
		req.Model = s.videoModel
	}
	if req.Model == "" {
		return tasks.Task{}, providers.InvalidField("model", "Invalid request: 'model' is required.")
	}
	if err := calls.CheckModel(req.Model); err != nil {
		return tasks.Task{}, err
	}
	if err := s.video.readMetadata(&req); err != nil {
		return tasks.Task{}, err
	}
	x.Outcome.Model = req.Model
	if req.Prompt == "" && len(req.Images) == 0 && format != providers.VendorC { // that format's req_key may say enough
		return tasks.Task{}, providers.InvalidField("prompt", "Invalid request: a video needs a 'prompt' or an image.")
	}
	for _, echoed := range []struct {
		name string
		size int
	}{{"prompt", len(req.Prompt)}, {"metadata", len(req.Metadata)}} {
		if echoed.size > maxEchoed {
			return tasks.Task{}, providers.InvalidField(echoed.name, "Invalid request: '%s' is longer than %d KiB.", echoed.name, maxEchoed>>10)
		}
	}
	create, err := newCreate(x, r, format, req)
	if err != nil {
		return tasks.Task{}, err
	}
	if !x.Caller.Allows(req.Model) {
		return s.repeatedTask(x, r, create, calls.ModelNotFound(req.Model))
	}
	want := router.Want{
		Group: x.Caller.Group, Model: req.Model, Endpoint: providers.Endpoint{Operation: providers.VideoTask},
	}
	if want.Several = req.N > 1; want.Several && !s.router.Serves(want) {
		if want.Several = false; s.router.Serves(want) {
			return tasks.Task{}, providers.InvalidField("n", "Invalid request: 'n' above 1 is not possible with this model.")
		}
	}
	if !s.router.Serves(want) { // open circuits are no reason to refuse: a task waits for them
		return s.repeatedTask(x, r, create, calls.ModelNotFound(req.Model))
	}
	if x.Caller.Budget > 0 { // the task's own money is reserved by its start
		if err := x.Reserve(r.Context(), limits.Cost{}); x.Outcome.Refused == edge.LimitBudget {
			return s.repeatedTask(x, r, create, err) // its task may be what the budget went for
		} else if err != nil {
			return tasks.Task{}, err
		}
	}
	task, err := s.tasks.Create(r.Context(), create)
	x.Outcome.Task = task.ID
	if err != nil {
		x.Outcome.Refused = taskLimit(providers.AsFault(err).Kind)
	}
	return task, err
}

// newCreate is the caller's create of a task.
func newCreate(x *edge.Request, r *http.Request, format providers.Format, req providers.VideoRequest) (tasks.Create, error) {
	key, err := idempotencyKey(r.Header)
	return tasks.Create{
		TokenID: x.Caller.ID, TokenName: x.Caller.Name, Group: x.Caller.Group,
		Weight: x.Caller.Weight, Lane: x.Caller.Lane, MaxTasks: x.Caller.MaxTasks, Budget: x.Caller.Budget, TokenWebhook: x.Caller.WebhookURL != "", TokenSigns: x.Caller.WebhookSecret != "",
		Format:  format,
		Request: req, IdempotencyKey: key, Repeat: isRepeat(r.Header), Arrived: x.Start,
	}, err
}

// taskLimit is the limit that refuses a create with a fault of the kind, "" for none.
func taskLimit(kind providers.Kind) edge.Limit {
	switch kind {
	case providers.RateLimited:
		return edge.LimitTasks
	case providers.Quota:
		return edge.LimitBudget
	default:
		return ""
	}
}

// repeatedTask answers a create that cannot be made now, as otherwise says: a repeat of one that was taken before finds its
// task all the same.
func (s *Server) repeatedTask(x *edge.Request, r *http.Request, create tasks.Create, otherwise error) (tasks.Task, error) {
	if create.IdempotencyKey == "" && !create.Repeat {
		return tasks.Task{}, otherwise
	}
	task, err := s.tasks.Repeated(r.Context(), create)
	if fault, ok := errors.AsType[*providers.Fault](err); ok && fault.Kind == providers.NotFound {
		return tasks.Task{}, otherwise
	}
	x.Outcome.Task, x.Outcome.Refused = task.ID, ""
	return task, err
}

// idempotencyKey returns the caller's key, "" where it sent none.
func idempotencyKey(header http.Header) (string, error) {
	values := header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	if n := utf8.RuneCountInString(values[0]); len(values) > 1 || n < 1 || n > maxIdempotencyKey {
		return "", providers.InvalidField("Idempotency-Key", "Invalid request: 'Idempotency-Key' must have 1 to 255 characters.")
	}
	return values[0], nil
}

// isRepeat tells whether an SDK says that it sends the same request again.
func isRepeat(header http.Header) bool {
	count, err := strconv.Atoi(header.Get("X-Stainless-Retry-Count"))
	return err == nil && count > 0
}

// parseSeconds checks the text of a duration: a positive decimal number.
func parseSeconds(param, text string) (string, error) {
	text = strings.TrimSpace(text)
	digits := strings.Trim(text, "0123456789.") == "" && len(text) <= 16
	if n, err := strconv.ParseFloat(text, 64); !digits || err != nil || n <= 0 {
		return "", providers.InvalidField(param, "Invalid request: '%s' must hold a number of seconds above 0.", param)
	}
	return text, nil
}

// addImage gives a request one more image.
func addImage(req *providers.VideoRequest, param string, image providers.Media) error {
	if len(req.Images) == maxImages {
		return providers.InvalidField(param, "Invalid request: '%s' is one image too many, %d are allowed.", param, maxImages)
	}
	req.Images = append(req.Images, image)
	return nil
}

// Links makes addresses at which objects of the archive can be read without a token.
type Links interface {
	// Presign returns an address that works for the time given. It asks nobody.
	Presign(ctx context.Context, key string, ttl time.Duration) (string, error)
}

// linkLife is how long a link works that needs no token: enough to fetch a video, and of little use to others later.
const linkLife = time.Hour

// outputURLs are the addresses of a task's videos, in order: links that need no token where the deployment makes some,
// else paths below base for the token that made the task. There are none before the task is completed, and none once
// the videos have expired.
func (s *Server) outputURLs(ctx context.Context, task tasks.Task, base string) []string {
	if task.State != workflows.Completed || expired(task) {
		return []string{}
	}
	life := linkLife
	if !task.ExpiresAt.IsZero() {
		life = max(time.Second, min(life, time.Until(task.ExpiresAt)))
	}
	urls := make([]string, len(task.Outputs))
	for index, output := range task.Outputs {
		if s.links != nil {
			link, err := s.links.Presign(ctx, output.Object, life)
			if err == nil {
				urls[index] = link
				continue
			}
			s.edge.Log().WarnContext(ctx, "link not made, the gateway's own is answered", "task", task.ID, "error", err)
		}
		urls[index] = base + "/v1/videos/" + task.ID + "/content"
		if index > 0 {
			urls[index] += "?index=" + strconv.Itoa(index)
		}
	}
	return urls
}

// expired tells whether a task's videos are gone, or about to be swept.
func expired(task tasks.Task) bool {
	return !task.ExpiresAt.IsZero() && !time.Now().Before(task.ExpiresAt)
}

// parseSize reads "1280x720"; 0, 0 for any other word.
func parseSize(size string) (width, height int) {
	w, h, found := strings.Cut(size, "x")
	if !found {
		return 0, 0
	}
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if errW != nil || errH != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}
