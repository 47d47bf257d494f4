// Package fakevidu fakes Vidu's own API. Shapes and codes: platform.vidu.com/docs (text-to-video, image-to-video, start-end-to-video,
// reference-to-video, get-generation, tasks-list, cancel-generation, error-code).
//
// Below /vidu/ent/v2/: {text2video,img2video,start-end2video,reference2video,extend}, tasks[/{id}/{creations,cancel}].
package fakevidu

import (
	"net/http"
	"strconv"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const (
	name = "vidu"
	root = "/vidu/ent/v2"
)

type api struct{ *fake.Server }

// Serve serves the API under /vidu/ent/v2. As there, a member of another mode is refused. The list of jobs returns the payload of a create,
// but two creates with one payload are two jobs.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.SchemeKey("Token"), Refuse: refuse, Unknown: func(string) fake.Problem {
		return fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Code: "TaskNotFound", Message: "task not found"}
	}}
	s.ServeLinks(name, &fake.Links{Life: 24 * time.Hour})
	for _, mode := range []string{"text2video", "img2video", "start-end2video", "reference2video", "extend"} {
		s.Handle("POST "+root+"/"+mode, fake.Operation{
			Vendor: v, Name: "video.create",
			Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, mode) }, Answer: s.answerCreate,
		})
	}
	s.Handle("GET "+root+"/tasks/{id}/creations", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerTask})
	s.Handle("GET "+root+"/tasks", fake.Operation{Vendor: v, Name: "video.list", Answer: s.answerList})
	s.Handle("POST "+root+"/tasks/{id}/cancel", fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.ParseID, Answer: s.answerCancel})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	reason := p.Code
	if reason == "" || reason == "invalid_type" {
		reason = fake.ByStatus[string]{
			http.StatusUnauthorized: "Unauthorized", http.StatusForbidden: "Forbidden", http.StatusNotFound: "TaskNotFound",
			http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalServiceFailure", 0: "BadRequest",
		}.Of(p.Status)
	}
	x.JSON(p.Status, map[string]any{
		"code": p.Status, "reason": reason, "message": p.Message,
		"metadata": map[string]string{"trace_id": fake.RandomID(32)},
	})
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomNumber(18), Lookup: q.Payload}
	spec.Seconds, spec.Size = "5", q.Resolution
	if q.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Duration)
	}
	if len(q.Images) > 0 {
		m, _ := fake.ReadURL(q.Images[0]) // checked before
		m.Describe(&spec)
	}
	j := s.Submit(x, spec)
	if j == nil {
		return
	}
	x.JSON(http.StatusOK, map[string]any{
		"task_id": j.ID, "state": "created", "model": q.Model, "prompt": q.Prompt, "images": q.Images, "duration": seconds(j),
		"resolution": q.Resolution,
		"payload":    q.Payload, "credits": credits, "created_at": created(j),
	})
}

// credits is what a job costs here.
const credits = 20

func seconds(j *jobs.Job) int {
	n, _ := strconv.Atoi(j.Seconds) // made here
	return n
}

func created(j *jobs.Job) string { return time.UnixMilli(j.Created).UTC().Format(time.RFC3339Nano) }

// creation is what a job made.
type creation struct {
	ID    string `json:"id"`
	URL   string `json:"url"`
	Cover string `json:"cover_url"`
}

// task is the vendor's job.
type task struct {
	ID        string     `json:"id"`
	State     string     `json:"state"`
	ErrCode   string     `json:"err_code"`
	Credits   int        `json:"credits"`
	Payload   string     `json:"payload"`
	Progress  int        `json:"progress"`
	Prompt    string     `json:"prompt,omitempty"`
	Created   string     `json:"created_at,omitempty"`
	Creations []creation `json:"creations"`
}

func (s *api) taskOf(x *fake.Exchange, j *jobs.Job) task {
	now := time.Now()
	state, progress := j.At(now)
	t := task{ID: j.ID, State: "failed", Credits: credits, Payload: j.Lookup, Progress: progress, Creations: []creation{}}
	switch state {
	case jobs.Queued:
		t.State = "queueing"
	case jobs.Running:
		t.State = "processing"
	case jobs.Completed:
		t.State = "success"
		t.Creations = append(t.Creations, creation{fake.RandomID(18), s.VideoLink(x, j, 0), s.CoverLink(x, j)})
	case jobs.Canceled:
		t.ErrCode, t.Credits = "UserCancelled", 0
	default:
		t.ErrCode, t.Credits = "InternalServiceFailure", 0
		if f := j.Fault(now); f != nil && f.Code != jobs.DefaultFault().Code {
			t.ErrCode = f.Code
		}
	}
	t.State = j.Named(t.State)
	return t
}

func (s *api) answerTask(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		x.JSON(http.StatusOK, s.taskOf(x, j))
	}
}

// answerList lists the jobs of the key, newest first, a page at a time.
func (s *api) answerList(x *fake.Exchange) {
	query := x.HTTP.URL.Query()
	size, err := strconv.Atoi(query.Get("pager.pagesz"))
	page, wrong := strconv.Atoi(query.Get("pager.page"))
	const largest = 100
	if err != nil || wrong != nil || size < 1 || size > largest || page < 0 {
		refuse(x, fake.Problem{Status: http.StatusBadRequest, Code: "PageSizeOutOfRange", Message: "invalid pager"})
		return
	}
	found, err := s.Filtered(x, func(*jobs.Job) bool { return true })
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	x.Accept()
	list := []task{}
	for i := len(found) - 1 - page*size; i >= 0 && len(list) < size; i-- {
		t := s.taskOf(x, &found[i])
		t.Prompt, t.Created = found[i].Prompt, created(&found[i])
		list = append(list, t)
	}
	next := ""
	if len(found) > (page+1)*size {
		next = strconv.Itoa(page + 1)
	}
	x.JSON(http.StatusOK, map[string]any{"tasks": list, "next_page_token": next})
}

// answerCancel stops a job that waits, and no other.
func (s *api) answerCancel(x *fake.Exchange) {
	if state, _ := x.Job.At(time.Now()); state != jobs.Queued {
		refuse(x, fake.Problem{Status: http.StatusBadRequest, Code: "BadRequest", Message: "task state is scheduled, can not cancel"})
		return
	}
	if s.Cancel(x, nil) != nil {
		x.JSON(http.StatusOK, struct{}{})
	}
}
