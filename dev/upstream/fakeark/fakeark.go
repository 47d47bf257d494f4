// Package fakeark fakes the video tasks of Volcengine Ark and BytePlus ModelArk (Seedance). Shapes: volcengine/ark-runtime-go
// (arkruntime/content_generation.go); rules and codes: volcengine/ark-cli (skills/arkcli-gen, arkcli-doctor). Not documented, and so a
// guess: the codes for an unknown task and for the deletion of a running one.
//
// Below /ark/api/v3/: contents/generations/tasks[/{id}]: create, get, list (found by safety_identifier), delete.
package fakeark

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const tasks = "/ark/api/v3/contents/generations/tasks"

type api struct {
	*fake.Server

	mu     sync.Mutex
	listed map[string]time.Time // when a key last listed
}

// Serve serves the API under /ark/api/v3.
func Serve(server *fake.Server) {
	s := &api{Server: server, listed: map[string]time.Time{}}
	v := &fake.Vendor{Name: "ark", Authenticate: authenticate, Refuse: refuse, Unknown: func(id string) fake.Problem {
		return fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound, Code: "ResourceNotFound",
			Message: "The specified resource " + id + " is not found.",
		}
	}}
	s.ServeLinks(v.Name, &fake.Links{Life: 24 * time.Hour, FromEnd: true, NoHead: true})
	s.Handle("POST "+tasks, fake.Operation{Vendor: v, Name: "video.create", Parse: parseCreate, Answer: s.answerCreate})
	s.Handle("GET "+tasks, fake.Operation{Vendor: v, Name: "video.list", Answer: s.answerList})
	s.Handle("GET "+tasks+"/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerGet})
	s.Handle("DELETE "+tasks+"/{id}", fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.ParseID, Answer: s.answerDelete})
	s.Handle("/ark/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "The requested path is not found."})
	}})
}

func authenticate(x *fake.Exchange) (string, *fake.Problem) {
	key, refusal := fake.BearerKey(x)
	if refusal != nil {
		refusal.Code, refusal.Message = "AuthenticationError", "The API key in the request is missing or invalid."
	}
	return key, refusal
}

// refuse answers {"error":{code,message,param,type}}.
func refuse(x *fake.Exchange, p fake.Problem) {
	id := fake.RandomID(32)
	said := fake.ByStatus[struct{ class, code string }]{
		http.StatusUnauthorized: {"Unauthorized", "AuthenticationError"}, http.StatusForbidden: {"Forbidden", "AccessDenied"},
		http.StatusNotFound: {"NotFound", "NotFound"}, http.StatusTooManyRequests: {"TooManyRequests", "AccountRateLimitExceeded"},
		http.StatusInternalServerError: {"InternalServerError", "InternalServiceError"}, 0: {"BadRequest", "InvalidParameter"},
	}.Of(p.Status)
	code := cmp.Or(p.Code, said.code)
	x.Header().Set("X-Request-Id", id)
	x.Header().Set("X-Error-Code", code)
	x.JSON(p.Status, map[string]any{"error": map[string]string{
		"code": code, "message": p.Message + " Request id: " + id, "param": p.Param, "type": said.class,
	}})
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{
		ID: "cgt-" + time.Now().UTC().Format("20060102150405") + "-" + fake.RandomWord(5), Seconds: strconv.Itoa(q.seconds()), Size: q.Resolution,
		Lookup: q.SafetyIdentifier, Failure: q.late(),
	}
	for _, m := range q.media {
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]string{"id": j.ID})
	}
}

func (s *api) answerGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		x.JSON(http.StatusOK, s.task(x, j))
	}
}

// task is the vendor's job, without its prompt.
func (s *api) task(x *fake.Exchange, j *jobs.Job) map[string]any {
	const rate, tokens = 24, 108_900
	now := time.Now()
	state, _ := j.At(now)
	updated := now.Unix()
	if at := j.Ended(now); at != nil {
		updated = *at
	}
	seconds, _ := strconv.Atoi(j.Seconds) // written by answerCreate
	t := map[string]any{
		"id": j.ID, "model": j.Model, "created_at": j.Created / int64(time.Second/time.Millisecond), "updated_at": updated, "error": nil,
		"resolution": j.Size, "duration": seconds, "framespersecond": rate, "service_tier": "default", "execution_expires_after": 172_800,
	}
	if j.Lookup != "" {
		t["safety_identifier"] = j.Lookup
	}
	var word string
	switch state {
	case jobs.Queued:
		word = "queued"
	case jobs.Running:
		word = "running"
	case jobs.Completed:
		word = "succeeded"
		t["content"] = map[string]string{"video_url": s.VideoLink(x, j, 0)}
		t["usage"] = map[string]int{"completion_tokens": tokens, "total_tokens": tokens}
	case jobs.Canceled:
		word = "cancelled"
	case jobs.Expired:
		word = "expired"
	default:
		word = "failed"
		fault := j.FaultAs(now, "InternalServiceError")
		t["error"] = map[string]string{"code": fault.Code, "message": fault.Message}
	}
	t["status"] = j.Named(word)
	return t
}

// Pages of a list, and how often a key may ask for one.
const (
	maxPage   = 500
	listEvery = time.Second
)

func (s *api) answerList(x *fake.Exchange) {
	query := x.HTTP.URL.Query()
	page, size := 1, 10
	for name, into := range map[string]*int{"page_num": &page, "page_size": &size} {
		if text := query.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxPage {
				refuse(x, *fake.Invalidf(name, "%s must be from 1 to %d.", name, maxPage))
				return
			}
			*into = n
		}
	}
	if !s.mayList(x.Key) {
		refuse(x, fake.Problem{Status: http.StatusTooManyRequests, Kind: fake.RateLimited, Message: "The account may list once a second."})
		return
	}
	found, err := s.Filtered(x, func(j *jobs.Job) bool {
		ids := query["filter.task_ids"]
		return (query.Get("filter.model") == "" || query.Get("filter.model") == j.Model) &&
			(len(ids) == 0 || strings.Contains(" "+strings.Join(ids, " ")+" ", " "+j.ID+" "))
	})
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
		return
	}
	items := []any{}
	for i := range found {
		t := s.task(x, &found[len(found)-1-i]) // newest first
		if status := query.Get("filter.status"); status == "" || status == t["status"] {
			items = append(items, t)
		}
	}
	total := len(items)
	from := min(total, (page-1)*size)
	x.Accept()
	x.JSON(http.StatusOK, map[string]any{"items": items[from:min(total, from+size)], "total": total})
}

func (s *api) mayList(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.listed[key]) < listEvery {
		return false
	}
	s.listed[key] = time.Now()
	return true
}

// answerDelete cancels what waits and deletes the record of what has ended; what runs it leaves alone.
func (s *api) answerDelete(x *fake.Exchange) {
	state, _ := x.Job.At(time.Now())
	if state == jobs.Running || state == jobs.Canceled {
		refuse(x, fake.Problem{
			Status: http.StatusConflict, Kind: fake.Conflict, Code: "InvalidAction.TaskStatus",
			Message: "The task cannot be deleted in its status.",
		})
		return
	}
	if j := s.Cancel(x, func(j *jobs.Job) { j.Deleted = state != jobs.Queued }); j != nil {
		x.WriteHeader(http.StatusNoContent)
	}
}
