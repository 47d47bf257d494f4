// Package fakegeneric fakes a gateway of our kind.
//
// Below /generic/v1/: the paths of package fakeopenai, video/generations[/{id}[/cancel]] with Idempotency-Key,
// videos/{id}/cancel; /generic/openapi.json declares the key.
package fakegeneric

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/fakeopenai"
	"modelrelay/dev/upstream/jobs"
)

type api struct{ *fake.Server }

// Serve serves the OpenAI dialect and the generic video format, as a gateway of our kind does, under /generic/v1.
func Serve(server *fake.Server) {
	s := &api{server}
	fakeopenai.ServeAs(server, "generic")
	v := &fake.Vendor{Name: "generic", Authenticate: fake.BearerKey, Refuse: fakeopenai.Refuse}
	const prefix = "/generic/v1/video/generations"
	parse := func(x *fake.Exchange) *fake.Problem {
		p := s.ParseJob(x, x.HTTP.PathValue("id"))
		if p != nil {
			p.Code = "not_found"
		}
		return p
	}
	s.Mux.HandleFunc("GET /generic/openapi.json", answerDocument)
	s.Handle("POST "+prefix, fake.Operation{Vendor: v, Name: "video.create", Parse: parseGeneration, Answer: s.answerGeneration})
	s.Handle("GET "+prefix+"/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: parse, Answer: s.answerGenerationGet})
	s.Handle("DELETE "+prefix+"/{id}", fake.Operation{Vendor: v, Name: "video.delete", Parse: parse, Answer: s.answerGenerationDelete})
	s.Handle("POST "+prefix+"/{id}/cancel", fake.Operation{Vendor: v, Name: "video.cancel", Parse: parse, Answer: s.answerGenerationCancel})
	s.Handle("POST /generic/v1/videos/{id}/cancel",
		fake.Operation{Vendor: v, Name: "video.cancel", Parse: parse, Answer: s.answerGenerationCancel})
}

// answerDocument is the part of the gateway's own OpenAPI document which declares that a repeated create makes no second task.
func answerDocument(w http.ResponseWriter, _ *http.Request) {
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

func parseGeneration(x *fake.Exchange) *fake.Problem {
	q := new(generation)
	if p := fakeopenai.NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if p := fakeopenai.CheckModel(x); p != nil {
		return p
	}
	if q.Prompt == "" && q.Image == "" {
		return fakeopenai.Missing("prompt")
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

	CompletedAt *int64      `json:"completed_at"`
	ExpiresAt   *int64      `json:"expires_at"`
	Duration    *float64    `json:"duration"`
	Width       *int        `json:"width"`
	Height      *int        `json:"height"`
	URL         *string     `json:"url"`
	URLs        []string    `json:"urls"`
	Error       *jobs.Fault `json:"error"`

	Metadata json.RawMessage `json:"metadata,omitempty"`
}

func generationOf(j *jobs.Job) generationObject {
	state, progress := j.At(time.Now())
	if state == jobs.Canceled {
		state = jobs.Failed
	}
	return generationObject{j.ID, j.ID, "video", j.Model, j.Named(state), progress, j.Created / 1000}
}

func (s *api) generationStatus(x *fake.Exchange, j *jobs.Job) generationStatus {
	now := time.Now()
	o := generationStatus{generationObject: generationOf(j), URLs: []string{}, Error: j.Fault(now), Metadata: j.Metadata}
	if seconds, err := strconv.ParseFloat(j.Seconds, 64); err == nil {
		o.Duration = &seconds
	}
	if j.Width > 0 && j.Height > 0 {
		o.Width, o.Height = &j.Width, &j.Height
	}
	if state, _ := j.At(now); state == jobs.Completed {
		o.CompletedAt = j.Ended(now)
		expires := *o.CompletedAt + int64(s.LinkLife(j).Seconds())
		o.ExpiresAt = &expires
		for i := range j.Outputs {
			o.URLs = append(o.URLs, s.generationURL(x, j, i))
		}
		o.URL = &o.URLs[0]
	}
	return o
}

// generationURL is a path of the gateway that needs the key, or a link that needs none where a rule gave the job's links a life.
func (s *api) generationURL(x *fake.Exchange, j *jobs.Job, output int) string {
	if j.LinkLife > 0 {
		return s.VideoLink(x, j, output)
	}
	address := "/generic/v1/videos/" + j.ID + "/content"
	if output > 0 {
		address += "?index=" + strconv.Itoa(output)
	}
	return address
}

func (s *api) answerGeneration(x *fake.Exchange) {
	q := fake.RequestOf[generation](x)
	spec := jobs.Job{
		ID: "video_" + fake.RandomWord(26), Seconds: clip.Seconds,
		Width: q.Width, Height: q.Height, Outputs: min(max(1, q.N), fakeopenai.MaxImages), Metadata: q.Metadata,
		Size: strconv.Itoa(q.Width) + "x" + strconv.Itoa(q.Height),
	}
	if q.Duration != nil {
		spec.Seconds = strconv.FormatFloat(*q.Duration, 'f', -1, 64)
	}
	if q.Image != "" {
		spec.InputSHA256, spec.InputBytes = fake.DigestOf([]byte(q.Image)), len(q.Image)
	}
	spec.Idempotency = fakeopenai.IdempotencyOf(x)
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, generationOf(j))
	}
}

func (s *api) answerGenerationGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		x.JSON(http.StatusOK, s.generationStatus(x, j))
	}
}

func (s *api) answerGenerationCancel(x *fake.Exchange) {
	if j := s.Cancel(x, nil); j != nil {
		x.JSON(http.StatusOK, s.generationStatus(x, j))
	}
}

func (s *api) answerGenerationDelete(x *fake.Exchange) {
	if j := s.Cancel(x, func(j *jobs.Job) { j.Deleted = true }); j != nil {
		x.JSON(http.StatusOK, map[string]any{"id": j.ID, "object": "video.deleted", "deleted": true})
	}
}
