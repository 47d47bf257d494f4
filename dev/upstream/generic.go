package upstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// routeGeneric adds the generic video format, as a gateway of our kind serves it, to the OpenAI dialect under /generic/v1.
func (s *server) routeGeneric() {
	v := &vendor{name: "generic", authenticate: bearerKey, refuse: refuseOpenAI}
	const prefix = "/generic/v1/video/generations"
	parse := func(x *exchange) *problem {
		p := s.parseJob(x, x.r.PathValue("id"))
		if p != nil {
			p.code = "not_found"
		}
		return p
	}
	s.mux.HandleFunc("GET /generic/openapi.json", answerGenericDocument)
	s.handle("POST "+prefix, operation{v, "video.create", parseGeneration, s.answerGeneration})
	s.handle("GET "+prefix+"/{id}", operation{v, "video.get", parse, s.answerGenerationGet})
	s.handle("DELETE "+prefix+"/{id}", operation{v, "video.delete", parse, s.answerGenerationDelete})
	s.handle("POST "+prefix+"/{id}/cancel", operation{v, "video.cancel", parse, s.answerGenerationCancel})
	s.handle("POST /generic/v1/videos/{id}/cancel", operation{v, "video.cancel", parse, s.answerGenerationCancel})
}

// answerGenericDocument is what of the gateway's own OpenAPI document tells that a repeated create makes no second task.
func answerGenericDocument(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const post = `{"post":{"parameters":[{"in":"header","name":"Idempotency-Key","schema":{"type":"string","minLength":1,"maxLength":255}}]}}`
	_, _ = io.WriteString(w, `{"openapi":"3.1.0","info":{"title":"Model Relay","version":"1.0.0"},"paths":{`+
		`"/v1/video/generations":`+post+`,"/v1/videos/{task_id}/remix":`+post+`}}`)
}

type generation struct {
	Model    string          `json:"model"`
	Prompt   string          `json:"prompt"`
	Image    string          `json:"image"`
	Duration *float64        `json:"duration"`
	Width    int             `json:"width"`
	Height   int             `json:"height"`
	N        int             `json:"n"`
	Metadata json.RawMessage `json:"metadata"`
}

func parseGeneration(x *exchange) *problem {
	q := new(generation)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.Model, q.Prompt
	if p := checkModel(x); p != nil {
		return p
	}
	if q.Prompt == "" && q.Image == "" {
		return missing("prompt")
	}
	return nil
}

// generationObject is the task of the generic format; create answers its first seven fields only.
type generationObject struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	Object    string `json:"object"`
	Model     string `json:"model"`
	Status    string `json:"status"`
	Progress  int    `json:"progress"`
	CreatedAt int64  `json:"created_at"`
}

type generationStatus struct {
	generationObject

	CompletedAt *int64   `json:"completed_at"`
	ExpiresAt   *int64   `json:"expires_at"`
	Duration    *float64 `json:"duration"`
	Width       *int     `json:"width"`
	Height      *int     `json:"height"`
	URL         *string  `json:"url"`
	URLs        []string `json:"urls"`
	Error       *fault   `json:"error"`

	Metadata json.RawMessage `json:"metadata,omitempty"`
}

func generationOf(j *job) generationObject {
	state, progress := j.at(time.Now())
	if state == stateCanceled {
		state = stateFailed
	}
	return generationObject{j.ID, j.ID, "video", j.Model, j.word(state), progress, j.Created / 1000}
}

func (s *server) generationStatus(x *exchange, j *job) generationStatus {
	now := time.Now()
	o := generationStatus{generationObject: generationOf(j), URLs: []string{}, Error: j.fault(now), Metadata: j.Metadata}
	if seconds, err := strconv.ParseFloat(j.Seconds, 64); err == nil {
		o.Duration = &seconds
	}
	if j.Width > 0 && j.Height > 0 {
		o.Width, o.Height = &j.Width, &j.Height
	}
	if state, _ := j.at(now); state == stateCompleted {
		o.CompletedAt = j.ended(now)
		expires := *o.CompletedAt + int64(s.linkLife(j).Seconds())
		o.ExpiresAt = &expires
		for i := range j.Outputs {
			o.URLs = append(o.URLs, s.generationURL(x, j, i))
		}
		o.URL = &o.URLs[0]
	}
	return o
}

// generationURL is a path of the gateway that needs the key, or a link that needs none where a rule gave the job's links a life.
func (s *server) generationURL(x *exchange, j *job, output int) string {
	if j.LinkLife > 0 {
		return s.videoLink(x, j, output)
	}
	address := "/generic/v1/videos/" + j.ID + "/content"
	if output > 0 {
		address += "?index=" + strconv.Itoa(output)
	}
	return address
}

func (s *server) answerGeneration(x *exchange) {
	q := requestOf[generation](x)
	spec := job{
		ID: "video_" + randomWord(26), Width: q.Width, Height: q.Height, Outputs: min(max(1, q.N), maxImages), RequestSHA: digestOf(x.body), Metadata: q.Metadata,
		Size: strconv.Itoa(q.Width) + "x" + strconv.Itoa(q.Height),
	}
	if q.Duration != nil {
		spec.Seconds = strconv.FormatFloat(*q.Duration, 'f', -1, 64)
	}
	if q.Image != "" {
		spec.InputSHA256, spec.InputBytes = digestOf([]byte(q.Image)), len(q.Image)
	}
	spec.Idempotency = idempotencyOf(x)
	if j := s.submit(x, spec); j != nil {
		x.json(http.StatusOK, generationOf(j))
	}
}

// idempotencyOf is what repeats of a create have in common, "" where the call carries no key.
func idempotencyOf(x *exchange) string {
	key := x.r.Header.Get("Idempotency-Key")
	if key == "" {
		return ""
	}
	return strings.Join([]string{"generic", x.key, key}, "\n")
}

func (s *server) answerGenerationGet(x *exchange) {
	s.jobs.polled(x.job.ID)
	j, err := s.look(x)
	switch {
	case err != nil:
		refuseOpenAI(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
	case j.Forgotten:
		refuseOpenAI(x, *s.parseJob(x, j.ID))
	default:
		x.accept()
		x.json(http.StatusOK, s.generationStatus(x, j))
	}
}

// end cancels the job unless it ended before.
func (s *server) end(x *exchange, edit func(j *job)) *job {
	j, err := s.jobs.change(x.job.ID, func(j *job) {
		if state, progress := j.at(time.Now()); state == stateQueued || state == stateRunning {
			j.drive(stateCanceled, progress)
		}
		edit(j)
	})
	if err != nil || j == nil {
		refuseOpenAI(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: "The job could not be kept."})
		return nil
	}
	x.accept()
	return j
}

func (s *server) answerGenerationCancel(x *exchange) {
	if j := s.end(x, func(*job) {}); j != nil {
		x.json(http.StatusOK, s.generationStatus(x, j))
	}
}

func (s *server) answerGenerationDelete(x *exchange) {
	if j := s.end(x, func(j *job) { j.Deleted = true }); j != nil {
		x.json(http.StatusOK, map[string]any{"id": j.ID, "object": "video.deleted", "deleted": true})
	}
}
