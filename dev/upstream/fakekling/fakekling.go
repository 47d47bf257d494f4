// Package fakekling fakes the video API of Kling, with the model in the path. Shapes and codes: kling.ai/document-api
// (api/video/3-0-omni, get-started/error-codes).
//
// Below /kling/: {text-to-video,image-to-video,omni-video}/{model}, tasks?task_ids|external_task_ids.
package fakekling

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

type api struct{ *fake.Server }

// Serve serves the API under /kling. As there, a member at a wrong level is ignored, and a second create with the
// same external_task_id makes a second job.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: "kling", Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(v.Name, &fake.Links{Life: 30 * 24 * time.Hour, FromEnd: true})
	for _, kind := range []string{"text-to-video", "image-to-video", "omni-video"} {
		s.Handle("POST /kling/"+kind+"/{model}", fake.Operation{
			Vendor: v, Name: "video.create",
			Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, kind) }, Answer: s.answerCreate,
		})
	}
	s.Handle("GET /kling/tasks", fake.Operation{Vendor: v, Name: "video.get", Parse: s.parseTasks, Answer: s.answerTasks})
}

// answer writes the envelope of every answer.
func answer(x *fake.Exchange, status, code int, message string, data any) {
	x.JSON(status, map[string]any{"code": code, "message": message, "request_id": fake.RandomID(32), "data": data})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	code, err := strconv.Atoi(p.Code)
	if err != nil {
		code = fake.ByStatus[int]{
			http.StatusUnauthorized: 1002, http.StatusForbidden: 1103, http.StatusNotFound: 1203, http.StatusTooManyRequests: 1302,
			http.StatusServiceUnavailable: 5001, http.StatusInternalServerError: 5000, 0: 1201,
		}.Of(p.Status)
	}
	answer(x, p.Status, code, p.Message, nil)
}

// part is an element of "contents".
type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

type create struct {
	Prompt   string `json:"prompt"`
	Contents []part `json:"contents"`
	Settings struct {
		Resolution  string `json:"resolution"`
		AspectRatio string `json:"aspect_ratio"`
		Duration    int    `json:"duration"`
		Audio       string `json:"audio"`
	} `json:"settings"`
	Options struct {
		ExternalID string `json:"external_task_id"`
	} `json:"options"`
}

func invalid(message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "1201", Message: message}
}

func parseCreate(x *fake.Exchange, kind string) *fake.Problem {
	q := new(create)
	x.Model = x.HTTP.PathValue("model")
	if p := x.Decode(q); p != nil {
		return p
	}
	if kind != "text-to-video" {
		q.Prompt = "" // flat, it is at a wrong level
	}
	for _, part := range q.Contents {
		if part.Type == "prompt" && kind != "text-to-video" {
			q.Prompt = part.Text
		}
	}
	x.Request, x.Prompt = q, q.Prompt
	if fake.UnknownModel(x.Model) {
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Code: "1203", Message: "The model does not exist."}
	}
	return q.check(kind, x.Model)
}

func (q *create) check(kind, model string) *fake.Problem {
	if q.Prompt == "" {
		return invalid("prompt is required")
	}
	frames := make(map[string]int)
	for _, part := range q.Contents {
		frames[part.Type]++
		if part.URL == "" && part.Type != "prompt" || kind == "text-to-video" {
			continue
		}
		if p := part.check(); p != nil {
			return p
		}
	}
	settings := q.Settings
	shortest, longest := 3, 15
	if strings.HasPrefix(model, "kling-4.0") {
		longest = 30
	}
	switch {
	case kind != "text-to-video" && frames["last_frame"] > 0 && frames["first_frame"] == 0:
		return invalid("last_frame needs first_frame")
	case kind == "image-to-video" && frames["first_frame"] == 0:
		return invalid("first_frame is required")
	case kind == "image-to-video" && frames["refer_image"]+frames["base_video"] > 0:
		return invalid("contents: type is not supported")
	case settings.Duration != 0 && (settings.Duration < shortest || settings.Duration > longest):
		return invalid("duration is invalid")
	case (strings.HasPrefix(model, "kling-2.") && settings.Duration != 0 && settings.Duration != 5 && settings.Duration != 10):
		return invalid("duration is invalid")
	case settings.Resolution != "" && !slices.Contains([]string{"720p", "1080p", "4k"}, settings.Resolution):
		return invalid("resolution is invalid")
	case settings.AspectRatio != "" && !slices.Contains([]string{"16:9", "9:16", "1:1", "21:9"}, settings.AspectRatio):
		return invalid("aspect_ratio is invalid")
	case kind == "omni-video" && settings.AspectRatio == "" && frames["first_frame"]+frames["base_video"] == 0:
		return invalid("aspect_ratio is required")
	case settings.Audio != "" && !slices.Contains([]string{"native", "original", "off"}, settings.Audio):
		return invalid("audio is invalid")
	}
	return nil
}

// check takes an address, and bytes in bare Base64 where they are no video's.
func (part part) check() *fake.Problem {
	if part.Type == "prompt" || strings.HasPrefix(part.URL, "https://") || strings.HasPrefix(part.URL, "http://") {
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(part.URL); err != nil || strings.HasSuffix(part.Type, "_video") {
		return invalid("contents: " + part.Type + " is not valid")
	}
	return nil
}

// task is the vendor's job.
type task struct {
	ID       string   `json:"id"`
	Status   string   `json:"status"`
	Message  string   `json:"message,omitempty"`
	External string   `json:"external_id,omitempty"`
	Created  int64    `json:"create_time"`
	Outputs  []output `json:"outputs"`
}

type output struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	URL      string `json:"url"`
	Duration string `json:"duration"`
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomNumber(18), Lookup: q.Options.ExternalID}
	spec.Seconds, spec.Size = strconv.Itoa(cmp.Or(q.Settings.Duration, 5))+".041", q.Settings.Resolution
	for _, part := range q.Contents {
		if m, ok := fake.ReadBase64(part.URL); ok {
			m.Describe(&spec)
		}
	}
	if j := s.Submit(x, spec); j != nil {
		answer(x, http.StatusOK, 0, "SUCCEED", s.taskOf(x, j))
	}
}

func (s *api) taskOf(x *fake.Exchange, j *jobs.Job) task {
	now := time.Now()
	task := task{ID: j.ID, External: j.Lookup, Created: j.Created, Outputs: []output{}}
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		task.Status = "submitted"
	case jobs.Running:
		task.Status = "processing"
	case jobs.Completed:
		task.Status = "succeeded"
		task.Outputs = append(task.Outputs, output{"video", fake.RandomID(16), s.VideoLink(x, j, 0), j.Seconds})
	default:
		task.Status, task.Message = "failed", jobs.DefaultFault().Message
		if f := j.Fault(now); f != nil {
			task.Message = f.Message
		}
	}
	task.Status = j.Named(task.Status)
	return task
}

// tasks are the jobs that a look found.
type tasks struct{ jobs []*jobs.Job }

func (s *api) parseTasks(x *fake.Exchange) *fake.Problem {
	query := x.HTTP.URL.Query()
	if query.Has("task_ids") == query.Has("external_task_ids") {
		return invalid("one of task_ids and external_task_ids is required")
	}
	q := new(tasks)
	x.Request = q
	for id := range strings.SplitSeq(query.Get("task_ids"), ",") {
		if j := s.Jobs.Find("kling", id); j != nil {
			q.jobs = append(q.jobs, j)
		}
	}
	if wanted := strings.Split(query.Get("external_task_ids"), ","); query.Has("external_task_ids") {
		for _, j := range s.Jobs.List(func(j *jobs.Job) bool { return j.Vendor == "kling" && slices.Contains(wanted, j.Lookup) }) {
			q.jobs = append(q.jobs, &j)
		}
	}
	if len(q.jobs) > 0 {
		x.Job = q.jobs[0]
		x.Model, x.Prompt = x.Job.Model, x.Job.Prompt
	}
	return nil
}

// answerTasks lists what is known: an unknown job is left out.
func (s *api) answerTasks(x *fake.Exchange) {
	list := []task{}
	for _, found := range fake.RequestOf[tasks](x).jobs {
		s.Jobs.Polled(found.ID)
		x.Job = found
		j, err := s.Look(x)
		if err != nil {
			refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
			return
		}
		if !j.Forgotten {
			list = append(list, s.taskOf(x, j))
		}
	}
	x.Accept()
	answer(x, http.StatusOK, 0, "SUCCEED", list)
}
