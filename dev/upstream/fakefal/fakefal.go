// Package fakefal fakes fal's queue, which hosts many models. Shapes and codes: fal-ai/fal-js libs/client/src/queue.ts,
// types/common.ts, types/endpoints.ts, fal.ai/docs (model-apis/errors, inference-api/queue).
//
// Below /fal/: {owner}/{app}[/…], {owner}/{app}/requests/{id}[/{status,cancel}].
package fakefal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const name = "fal"

type api struct{ *fake.Server }

// Serve serves the queue under /fal. As there, a request is under owner and app without the rest of the model's path, what is
// wrong with its input makes a job that fails, and COMPLETED is said of a failure as well.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.SchemeKey("Key"), Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: 7 * 24 * time.Hour, FromEnd: true})
	s.Handle("POST /fal/{owner}/{app}", fake.Operation{Vendor: v, Name: "video.create", Parse: parseCreate, Answer: s.answerCreate})
	s.Handle("POST /fal/{owner}/{app}/{path...}", fake.Operation{Vendor: v, Name: "video.create", Parse: parseCreate, Answer: s.answerCreate})
	const request = "/fal/{owner}/{app}/requests/{id}"
	s.Handle("GET "+request+"/status", fake.Operation{Vendor: v, Name: "video.get", Parse: s.parseRequest, Answer: s.answerStatus})
	s.Handle("GET "+request, fake.Operation{Vendor: v, Name: "video.result", Parse: s.parseRequest, Answer: s.answerResult})
	s.Handle("PUT "+request+"/cancel", fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.parseRequest, Answer: s.answerCancel})
}

// refuse answers as the platform does.
func refuse(x *fake.Exchange, p fake.Problem) {
	body := map[string]any{"detail": p.Message}
	if p.Status >= http.StatusInternalServerError {
		body["error_type"] = "internal_server_error"
	}
	x.JSON(p.Status, body)
}

// issue is what a model finds wrong with its input.
type issue struct {
	Place   []string `json:"loc"`
	Message string   `json:"msg"`
	Type    string   `json:"type"`
}

type create struct{ wrong *issue }

func parseCreate(x *fake.Exchange) *fake.Problem {
	x.Model = strings.TrimPrefix(x.HTTP.URL.Path, "/fal/")
	var members map[string]json.RawMessage
	if p := x.Decode(&members); p != nil {
		p.Status = http.StatusUnprocessableEntity
		return p
	}
	_ = json.Unmarshal(members["prompt"], &x.Prompt) // the model says what is wrong with it
	if fake.UnknownModel(x.Model) {
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Application '" + x.HTTP.PathValue("app") + "' not found"}
	}
	x.Request = &create{check(x.Model, members)}
	return nil
}

// app is where the requests of a model lie.
func app(model string) string {
	words := strings.SplitN(model, "/", 3)
	return "/fal/" + strings.Join(words[:min(len(words), 2)], "/")
}

func (s *api) answerCreate(x *fake.Exchange) {
	spec := jobs.Job{ID: fake.RandomUUID(), Seconds: "5", Width: 1280, Height: 720}
	if wrong := fake.RequestOf[create](x).wrong; wrong != nil {
		doc, err := json.Marshal(wrong)
		if err != nil {
			refuse(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
			return
		}
		spec.Failure = &jobs.Fault{Code: wrong.Type, Message: wrong.Message}
		spec.Metadata = doc
	}
	var body map[string]any
	_ = json.Unmarshal(x.Body, &body) // decoded before
	if length := body["duration"]; length != nil {
		spec.Seconds = strings.TrimSuffix(fmt.Sprint(length), "s")
	}
	if spec.Size, _ = body["resolution"].(string); spec.Size == "" {
		spec.Size = "720p"
	}
	for _, input := range imagesOf(body) {
		if m, ok := fake.ReadURL(input); ok {
			m.Describe(&spec)
			break
		}
	}
	j := s.Submit(x, spec)
	if j == nil {
		return
	}
	at := "http://" + x.HTTP.Host + app(j.Model) + "/requests/" + j.ID
	x.JSON(http.StatusOK, map[string]any{
		"status": "IN_QUEUE", "request_id": j.ID, "response_url": at, "status_url": at + "/status", "cancel_url": at + "/cancel",
		"queue_position": 0,
	})
}

// parseRequest finds a job under its owner and app.
func (s *api) parseRequest(x *fake.Exchange) *fake.Problem {
	p := s.ParseID(x)
	if p == nil && app(x.Job.Model) != "/fal/"+x.HTTP.PathValue("owner")+"/"+x.HTTP.PathValue("app") {
		x.Job = nil
		p = &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound}
	}
	if p != nil {
		p.Message = "Request not found"
	}
	return p
}

func (s *api) answerStatus(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	status, body := http.StatusOK, map[string]any{"request_id": j.ID}
	word := "COMPLETED"
	switch state, _ := j.At(time.Now()); state {
	case jobs.Queued:
		status, word = http.StatusAccepted, "IN_QUEUE"
		body["queue_position"] = 0
	case jobs.Running:
		status, word = http.StatusAccepted, "IN_PROGRESS"
	case jobs.Canceled:
		body["error"], body["error_type"] = "Request was cancelled by the user", "request_cancelled"
	}
	body["status"] = j.Named(word)
	x.JSON(status, body)
}

// answerResult answers with what the model made, or with what it said.
func (s *api) answerResult(x *fake.Exchange) {
	j, err := s.Look(x)
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	if j.Forgotten {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Message: "Request not found"})
		return
	}
	x.Accept()
	now := time.Now()
	seconds, _ := strconv.ParseFloat(j.Seconds, 64) // another text was refused
	switch state, _ := j.At(now); state {
	case jobs.Queued, jobs.Running:
		x.JSON(http.StatusBadRequest, map[string]string{"detail": "Request is still in progress"})
	case jobs.Completed:
		x.JSON(http.StatusOK, map[string]any{"video": map[string]any{
			"url": s.VideoLink(x, j, 0), "content_type": "video/mp4", "file_name": "output.mp4",
			"width": j.Width, "height": j.Height, "duration": seconds,
		}, "seed": 7})
	default:
		failed(x, j, now)
	}
}

// failed answers with what the model found wrong, or that it broke.
func failed(x *fake.Exchange, j *jobs.Job, now time.Time) {
	wrong, status := issue{Place: []string{"body"}, Type: "internal_server_error"}, http.StatusInternalServerError
	if f := j.Fault(now); f != nil {
		wrong.Message = f.Message
		if f.Code != jobs.DefaultFault().Code {
			wrong.Type, status = f.Code, http.StatusUnprocessableEntity
		}
	}
	if len(j.Metadata) > 0 {
		_ = json.Unmarshal(j.Metadata, &wrong) // written here
	}
	x.Header().Set("X-Fal-Retryable", map[bool]string{true: "true", false: "false"}[status >= http.StatusInternalServerError])
	x.JSON(status, map[string]any{"detail": []issue{wrong}})
}

func (s *api) answerCancel(x *fake.Exchange) {
	switch state, _ := x.Job.At(time.Now()); state {
	case jobs.Queued, jobs.Running:
		if s.Cancel(x, nil) != nil {
			x.JSON(http.StatusAccepted, map[string]string{"status": "CANCELLATION_REQUESTED"})
		}
	default:
		x.Accept()
		x.JSON(http.StatusBadRequest, map[string]string{"status": "ALREADY_COMPLETED"})
	}
}
