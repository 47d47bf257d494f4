// Package fakereplicate fakes Replicate's predictions. Shapes and codes: replicate/replicate-javascript lib/predictions.js, index.d.ts,
// replicate.com/docs (topics/predictions/lifecycle, rate-limits, data-retention), the input schemas at replicate.com/OWNER/NAME/api.
//
// Below /replicate/v1/: models/{owner}/{name}/predictions, deployments/…, predictions[/{id}[/cancel]].
package fakereplicate

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const (
	name = "replicate"
	root = "/replicate/v1"
	// communityOwner owns models that run by their version alone.
	communityOwner = "community"
)

type api struct{ *fake.Server }

// Serve serves the API under /replicate/v1. As there, an official model refuses members that its schema does not have, and a model
// of the community (community/…) runs by its version alone.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: time.Hour, FromEnd: true})
	for _, path := range []string{"/models/{owner}/{model}/predictions", "/deployments/{owner}/{model}/predictions", "/predictions"} {
		s.Handle("POST "+root+path, fake.Operation{Vendor: v, Name: "video.create", Parse: parseCreate, Answer: s.answerCreate})
	}
	s.Handle("GET "+root+"/account", fake.Operation{Vendor: v, Name: "account", Answer: answerAccount})
	s.Handle("GET "+root+"/models/{owner}/{model}", fake.Operation{Vendor: v, Name: "models", Parse: parseModel, Answer: answerModel})
	s.Handle("GET "+root+"/predictions", fake.Operation{Vendor: v, Name: "video.list", Answer: s.answerList})
	s.Handle("GET "+root+"/predictions/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerGet})
	s.Handle("POST "+root+"/predictions/{id}/cancel",
		fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.ParseID, Answer: s.answerCancel})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	title := map[int]string{
		http.StatusUnauthorized: "Unauthenticated", http.StatusPaymentRequired: "Insufficient credit", http.StatusNotFound: "Not found",
		http.StatusUnprocessableEntity: "Input validation failed", http.StatusTooManyRequests: "Too many requests",
	}[p.Status]
	x.JSON(p.Status, map[string]any{"title": title, "detail": p.Message, "status": p.Status})
}

// answerAccount answers as https://replicate.com/docs/reference/http#account.get does.
func answerAccount(x *fake.Exchange) {
	x.Accept()
	x.JSON(http.StatusOK, map[string]string{
		"type": "organization", "username": "acme", "name": "Acme Corp, Inc.",
		"github_url": "https://github.com/acme",
	})
}

// parseModel knows each model but those that are named as unknown.
func parseModel(x *fake.Exchange) *fake.Problem {
	owner, model := x.HTTP.PathValue("owner"), x.HTTP.PathValue("model")
	if x.Model = owner + "/" + model; fake.UnknownModel(owner) || fake.UnknownModel(model) {
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "The requested resource could not be found."}
	}
	return nil
}

func answerModel(x *fake.Exchange) {
	x.Accept()
	x.JSON(http.StatusOK, map[string]any{
		"owner": x.HTTP.PathValue("owner"), "name": x.HTTP.PathValue("model"), "visibility": "public",
		"latest_version": nil,
	})
}

type create struct {
	Version string                     `json:"version"`
	Input   map[string]json.RawMessage `json:"input"`
}

func unprocessable(message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusUnprocessableEntity, Kind: fake.Invalid, Message: message}
}

func parseCreate(x *fake.Exchange) *fake.Problem {
	q := new(create)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request = q
	_ = json.Unmarshal(q.Input["prompt"], &x.Prompt) // the schema says what is wrong with it
	owner := x.HTTP.PathValue("owner")
	x.Model = owner + "/" + x.HTTP.PathValue("model")
	notFound := &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "The requested resource could not be found."}
	switch {
	case owner == "" && q.Version == "":
		return unprocessable("version is required")
	case owner == "":
		x.Model = q.Version
	case q.Version != "":
		return unprocessable("version is not allowed here")
	case owner == communityOwner || fake.UnknownModel(owner):
		return notFound
	}
	if fake.UnknownModel(x.Model) {
		return unprocessable("Invalid version or not permitted")
	}
	if q.Input == nil {
		return unprocessable("- input is required")
	}
	return check(x.Model, q.Input)
}

// schemaOf are the members that an official model takes, of which it needs the prompt; false for one of which nothing is known.
func schemaOf(model string) (members []string, known bool) {
	switch {
	case strings.HasPrefix(model, "google/veo-3.1"):
		return []string{
			"prompt", "aspect_ratio", "duration", "image", "last_frame", "reference_images", "negative_prompt", "resolution",
			"generate_audio", "seed",
		}, true
	case strings.HasPrefix(model, "kwaivgi/kling-v2.6"):
		return []string{"prompt", "start_image", "aspect_ratio", "duration", "generate_audio", "negative_prompt"}, true
	case strings.HasPrefix(model, "minimax/video-01"):
		return []string{"prompt", "prompt_optimizer", "first_frame_image", "subject_reference"}, true
	}
	return nil, false
}

// check is what a model's schema refuses: nothing is made then.
func check(model string, input map[string]json.RawMessage) *fake.Problem {
	members, known := schemaOf(model)
	if !known {
		return nil
	}
	if input["prompt"] == nil {
		return unprocessable("- input: prompt is required")
	}
	for member := range input {
		if !slices.Contains(members, member) {
			return unprocessable("- input: Additional property " + member + " is not allowed")
		}
	}
	if raw := input["duration"]; raw != nil {
		var seconds int
		if json.Unmarshal(raw, &seconds) != nil {
			return unprocessable("- input.duration: Invalid type. Expected: integer")
		}
	}
	return nil
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: strings.ToLower(fake.RandomID(26)), Seconds: clip.Seconds, Lookup: string(q.Input["seed"])}
	if length := q.Input["duration"]; length != nil {
		spec.Seconds = strings.Trim(string(length), `"`)
	}
	spec.Size = strings.Trim(string(q.Input["resolution"]), `"`)
	for _, member := range []string{"image", "start_image", "first_frame_image", "first_frame"} {
		var text string
		if json.Unmarshal(q.Input[member], &text) != nil {
			continue
		}
		if m, ok := fake.ReadURL(text); ok {
			m.Describe(&spec)
		}
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusCreated, s.predictionOf(x, j))
	}
}

func (s *api) predictionOf(x *fake.Exchange, j *jobs.Job) map[string]any {
	at, now := "http://"+x.HTTP.Host+root+"/predictions/"+j.ID, time.Now()
	stamp := func(milliseconds int64) string { return time.UnixMilli(milliseconds).UTC().Format(time.RFC3339Nano) }
	p := map[string]any{
		"id": j.ID, "model": j.Model, "version": "hidden", "logs": "", "output": nil, "data_removed": false, "error": nil, "source": "api",
		"created_at": stamp(j.Created), "started_at": nil, "completed_at": nil, "urls": map[string]string{"get": at, "cancel": at + "/cancel"},
	}
	if ended := j.Ended(now); ended != nil {
		p["completed_at"] = stamp(*ended * 1000)
	}
	word := "failed"
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "starting"
	case jobs.Running:
		word = "processing"
	case jobs.Completed:
		word = "succeeded"
		p["output"] = s.VideoLink(x, j, 0)
	case jobs.Canceled:
		word = "canceled"
	case jobs.Expired:
		word = "aborted"
	default:
		if f := j.Fault(now); f != nil {
			p["error"] = f.Message
		}
	}
	p["status"] = j.Named(word)
	return p
}

func (s *api) answerGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		x.JSON(http.StatusOK, s.predictionOf(x, j))
	}
}

// answerList lists the account's predictions, newest first, on one page. Of an input it shows the prompt and the seed.
func (s *api) answerList(x *fake.Exchange) {
	found, err := s.Filtered(x, func(*jobs.Job) bool { return true })
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	x.Accept()
	results := make([]map[string]any, 0, len(found))
	for i := range found {
		p := s.predictionOf(x, &found[i])
		input := map[string]any{"prompt": found[i].Prompt}
		if found[i].Lookup != "" {
			input["seed"] = json.RawMessage(found[i].Lookup)
		}
		p["input"] = input
		results = append(results, p)
	}
	slices.Reverse(results)
	x.JSON(http.StatusOK, map[string]any{"previous": nil, "next": nil, "results": results})
}

// answerCancel stops a job; one that has ended stays as it is.
func (s *api) answerCancel(x *fake.Exchange) {
	if j := s.Cancel(x, nil); j != nil {
		x.JSON(http.StatusOK, s.predictionOf(x, j))
	}
}
