// Package fakerunway fakes Runway's developer API. Shapes: @runwayml/sdk 4.20.1 (src/resources/tasks.ts, text-to-video.ts,
// image-to-video.ts, video-to-video.ts); errors: docs.dev.runwayml.com/errors. What is not documented, and so a guess: the words of
// "issues", and the status of a task that the caller may not read.
//
// Below /runway/v1/: {text,image,video}_to_video, tasks/{id} (DELETE cancels, or deletes what has ended), uploads, organization.
package fakerunway

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

// version is the one that each request must name.
const version = "2024-11-06"

type api struct {
	*fake.Server

	uploads uploads
}

// Serve serves the API under /runway/v1.
func Serve(server *fake.Server) {
	s := &api{Server: server, uploads: uploads{digests: map[string]fake.Media{}}}
	v := &fake.Vendor{Name: "runway", Authenticate: authenticate, Refuse: refuse}
	s.ServeLinks(v.Name, &fake.Links{Life: 24 * time.Hour})
	for _, route := range []string{"text_to_video", "image_to_video", "video_to_video"} {
		s.Handle("POST /runway/v1/"+route, fake.Operation{
			Vendor: v, Name: "video.create",
			Parse: func(x *fake.Exchange) *fake.Problem { return s.parseCreate(x, route) }, Answer: s.answerCreate,
		})
	}
	s.Handle("GET /runway/v1/tasks/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerTask})
	s.Handle("DELETE /runway/v1/tasks/{id}", fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.ParseID, Answer: s.answerDelete})
	s.Handle("POST /runway/v1/uploads", fake.Operation{Vendor: v, Name: "uploads", Parse: parseUpload, Answer: s.answerUpload})
	open := &fake.Vendor{Name: v.Name, Authenticate: fake.LinkKey, Refuse: fake.RefuseLink}
	s.Handle("POST /runway/uploads/{id}", fake.Operation{Vendor: open, Name: "uploads.content", Answer: s.answerUploaded})
	s.Handle("GET /runway/v1/organization", fake.Operation{Vendor: v, Name: "account", Answer: answerOrganization})
	s.Handle("/runway/", fake.Operation{Vendor: v, Name: "unknown", Answer: func(x *fake.Exchange) {
		refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Not found"})
	}})
}

// authenticate requires the version next to the key.
func authenticate(x *fake.Exchange) (string, *fake.Problem) {
	key, refusal := fake.BearerKey(x)
	if refusal == nil && x.HTTP.Header.Get("X-Runway-Version") != version {
		refusal = fake.Invalidf("", "The X-Runway-Version header is missing or names no version.")
	}
	return key, refusal
}

// refuse answers {"error"}, and which member is wrong where one is.
func refuse(x *fake.Exchange, p fake.Problem) {
	if p.Param == "" {
		x.JSON(p.Status, map[string]any{"error": p.Message})
		return
	}
	path := strings.Split(p.Param, ".")
	x.JSON(p.Status, map[string]any{
		"error":  "Validation of body failed",
		"issues": []any{map[string]any{"code": "custom", "path": path, "message": p.Message}},
		"docUrl": "https://docs.dev.runwayml.com/api",
	})
}

func answerOrganization(x *fake.Exchange) {
	x.Accept()
	x.JSON(http.StatusOK, map[string]any{"creditBalance": 12_000, "tier": map[string]any{"maxMonthlyCreditSpend": 100_000}})
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomUUID(), Seconds: fmt.Sprint(q.Duration), Size: q.Ratio}
	for _, m := range q.media {
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]any{"id": j.ID, "estimatedCost": map[string]int{"credits": credits}})
	}
}

// credits are what each task costs here.
const credits = 60

func (s *api) answerTask(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	task := map[string]any{
		"id": j.ID, "createdAt": time.UnixMilli(j.Created).UTC().Format(time.RFC3339Nano),
		"estimatedCost": map[string]int{"credits": credits},
	}
	var word string
	switch state, progress := j.At(now); state {
	case jobs.Queued:
		word = "PENDING"
	case jobs.Running:
		word = "RUNNING"
		task["progress"] = float64(progress) / 100
	case jobs.Completed:
		word = "SUCCEEDED"
		task["output"], task["cost"] = []string{s.VideoLink(x, j, 0)}, map[string]int{"credits": credits}
	case jobs.Canceled:
		word = "CANCELLED"
		task["cost"] = map[string]int{"credits": 0}
	default:
		word = "FAILED"
		fault := j.FaultAs(now, "INTERNAL")
		task["failure"], task["failureCode"], task["cost"] = fault.Message, fault.Code, map[string]int{"credits": 0}
		if strings.HasPrefix(fault.Code, "SAFETY.") {
			task["cost"] = map[string]int{"credits": credits}
		}
	}
	task["status"] = j.Named(word)
	x.JSON(http.StatusOK, task)
}

// answerDelete cancels what has not ended, and deletes what has, with its result.
func (s *api) answerDelete(x *fake.Exchange) {
	state, _ := x.Job.At(time.Now())
	ended := state != jobs.Queued && state != jobs.Running
	if j := s.Cancel(x, func(j *jobs.Job) { j.Deleted = ended }); j != nil {
		x.WriteHeader(http.StatusNoContent)
	}
}
