package upstream

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// routeKling serves Kling's API with the model in the path under /kling. Shapes and codes: kling.ai/document-api
// (api/video/3-0-omni, get-started/error-codes). As there, a member at a wrong level is ignored, and a second create with the
// same external_task_id makes a second job.
func (s *server) routeKling() {
	v := &vendor{name: "kling", authenticate: bearerKey, refuse: refuseKling}
	for _, kind := range []string{"text-to-video", "image-to-video", "omni-video"} {
		s.handle("POST /kling/"+kind+"/{model}", operation{v, "video.create", func(x *exchange) *problem { return parseKling(x, kind) }, s.answerKlingCreate})
	}
	s.handle("GET /kling/tasks", operation{v, "video.get", s.parseKlingTasks, s.answerKlingTasks})
}

// answerKling writes the envelope of every answer.
func answerKling(x *exchange, status, code int, message string, data any) {
	x.json(status, map[string]any{"code": code, "message": message, "request_id": randomID(32), "data": data})
}

func refuseKling(x *exchange, p problem) {
	code, err := strconv.Atoi(p.code)
	if err != nil {
		switch {
		case p.status == http.StatusUnauthorized:
			code = 1002
		case p.status == http.StatusForbidden:
			code = 1103
		case p.status == http.StatusNotFound:
			code = 1203
		case p.status == http.StatusTooManyRequests:
			code = 1302
		case p.status == http.StatusServiceUnavailable:
			code = 5001
		case p.status >= http.StatusInternalServerError:
			code = 5000
		default:
			code = 1201
		}
	}
	answerKling(x, p.status, code, p.message, nil)
}

// klingPart is an element of "contents".
type klingPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
	URL  string `json:"url"`
}

type klingCreate struct {
	Prompt   string      `json:"prompt"`
	Contents []klingPart `json:"contents"`
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

func klingProblem(message string) *problem {
	return &problem{status: http.StatusBadRequest, kind: kindInvalid, code: "1201", message: message}
}

func parseKling(x *exchange, kind string) *problem {
	q := new(klingCreate)
	x.model = x.r.PathValue("model")
	if p := x.decode(q); p != nil {
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
	x.request, x.prompt = q, q.Prompt
	if unknownModel(x.model) {
		return &problem{status: http.StatusNotFound, kind: kindNotFound, code: "1203", message: "The model does not exist."}
	}
	return q.check(kind, x.model)
}

func (q *klingCreate) check(kind, model string) *problem {
	if q.Prompt == "" {
		return klingProblem("prompt is required")
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
		return klingProblem("last_frame needs first_frame")
	case kind == "image-to-video" && frames["first_frame"] == 0:
		return klingProblem("first_frame is required")
	case kind == "image-to-video" && frames["refer_image"]+frames["base_video"] > 0:
		return klingProblem("contents: type is not supported")
	case settings.Duration != 0 && (settings.Duration < shortest || settings.Duration > longest):
		return klingProblem("duration is invalid")
	case (strings.HasPrefix(model, "kling-2.") && settings.Duration != 0 && settings.Duration != 5 && settings.Duration != 10):
		return klingProblem("duration is invalid")
	case settings.Resolution != "" && !slices.Contains([]string{"720p", "1080p", "4k"}, settings.Resolution):
		return klingProblem("resolution is invalid")
	case settings.AspectRatio != "" && !slices.Contains([]string{"16:9", "9:16", "1:1", "21:9"}, settings.AspectRatio):
		return klingProblem("aspect_ratio is invalid")
	case kind == "omni-video" && settings.AspectRatio == "" && frames["first_frame"]+frames["base_video"] == 0:
		return klingProblem("aspect_ratio is required")
	case settings.Audio != "" && !slices.Contains([]string{"native", "original", "off"}, settings.Audio):
		return klingProblem("audio is invalid")
	}
	return nil
}

// check takes an address, and bytes in bare Base64 where they are no video's.
func (part klingPart) check() *problem {
	if part.Type == "prompt" || strings.HasPrefix(part.URL, "https://") || strings.HasPrefix(part.URL, "http://") {
		return nil
	}
	if _, err := base64.StdEncoding.DecodeString(part.URL); err != nil || strings.HasSuffix(part.Type, "_video") {
		return klingProblem("contents: " + part.Type + " is not valid")
	}
	return nil
}

// klingTask is the vendor's job.
type klingTask struct {
	ID       string        `json:"id"`
	Status   string        `json:"status"`
	Message  string        `json:"message,omitempty"`
	External string        `json:"external_id,omitempty"`
	Created  int64         `json:"create_time"`
	Outputs  []klingOutput `json:"outputs"`
}

type klingOutput struct {
	Type     string `json:"type"`
	ID       string `json:"id"`
	URL      string `json:"url"`
	Duration string `json:"duration"`
}

func (s *server) answerKlingCreate(x *exchange) {
	q := requestOf[klingCreate](x)
	spec := job{ID: strconv.FormatUint(800_000_000_000_000_000+rand.Uint64N(99_999_999_999_999_999), 10), RequestSHA: digestOf(x.body)} //nolint:gosec // an id, no secret
	spec.Seconds = strconv.Itoa(max(q.Settings.Duration, 5))
	spec.Metadata, _ = json.Marshal(map[string]string{"external_task_id": q.Options.ExternalID}) // a map of texts
	for _, part := range q.Contents {
		if data, err := base64.StdEncoding.DecodeString(part.URL); err == nil && part.URL != "" {
			spec.InputSHA256, spec.InputBytes = digestOf(data), len(data)
		}
	}
	if j := s.submit(x, spec); j != nil {
		answerKling(x, http.StatusOK, 0, "SUCCEED", s.klingTask(x, j))
	}
}

func (s *server) klingTask(x *exchange, j *job) klingTask {
	now := time.Now()
	task := klingTask{ID: j.ID, External: klingExternal(j), Created: j.Created, Outputs: []klingOutput{}}
	switch state, _ := j.at(now); state {
	case stateQueued:
		task.Status = "submitted"
	case stateRunning:
		task.Status = "processing"
	case stateCompleted:
		task.Status = "succeeded"
		task.Outputs = append(task.Outputs, klingOutput{"video", randomID(16), s.videoLink(x, j, 0), j.Seconds + ".041"})
	default:
		task.Status, task.Message = "failed", defaultFault().Message
		if f := j.fault(now); f != nil {
			task.Message = f.Message
		}
	}
	task.Status = j.word(task.Status)
	return task
}

func klingExternal(j *job) string {
	var own struct {
		External string `json:"external_task_id"`
	}
	_ = json.Unmarshal(j.Metadata, &own) // what answerKlingCreate wrote
	return own.External
}

// klingTasks are the jobs that a look found.
type klingTasks struct{ jobs []*job }

func (s *server) parseKlingTasks(x *exchange) *problem {
	query := x.r.URL.Query()
	if query.Has("task_ids") == query.Has("external_task_ids") {
		return klingProblem("one of task_ids and external_task_ids is required")
	}
	q := new(klingTasks)
	x.request = q
	for id := range strings.SplitSeq(query.Get("task_ids"), ",") {
		if j := s.jobs.find("kling", id); j != nil {
			q.jobs = append(q.jobs, j)
		}
	}
	if wanted := strings.Split(query.Get("external_task_ids"), ","); query.Has("external_task_ids") {
		for _, j := range s.jobs.list(func(j *job) bool { return j.Vendor == "kling" && slices.Contains(wanted, klingExternal(j)) }) {
			q.jobs = append(q.jobs, &j)
		}
	}
	if len(q.jobs) > 0 {
		x.job = q.jobs[0]
		x.model, x.prompt = x.job.Model, x.job.Prompt
	}
	return nil
}

// answerKlingTasks lists what is known: an unknown job is left out.
func (s *server) answerKlingTasks(x *exchange) {
	tasks := []klingTask{}
	for _, found := range requestOf[klingTasks](x).jobs {
		s.jobs.polled(found.ID)
		x.job = found
		j, err := s.look(x)
		if err != nil {
			refuseKling(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
			return
		}
		if !j.Forgotten {
			tasks = append(tasks, s.klingTask(x, j))
		}
	}
	x.accept()
	answerKling(x, http.StatusOK, 0, "SUCCEED", tasks)
}
