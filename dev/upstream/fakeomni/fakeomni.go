// Package fakeomni fakes the Interactions API of Gemini as far as it makes videos. Shapes: googleapis/js-genai 3.1.0 (Interaction,
// CreateModelInteraction, VideoResponseFormat); words and refusals: GoogleCloudPlatform/generative-ai gemini_omni notebooks.
//
// Below /omni/v1beta/ and /omni/v1/: interactions[/{id}[/cancel]], files/{id}[:download], which want the key.
package fakeomni

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
	"modelrelay/dev/upstream/jobs"
)

const (
	// idPrefix begins the id of an interaction; the id of its file is the rest.
	idPrefix = "v1_"
	// processing is how long a file is not ready after its interaction is completed.
	processing = 100 * time.Millisecond
	// blockStep is how often an interaction in the foreground checks whether its job has ended.
	blockStep = 50 * time.Millisecond
)

type api struct {
	*fake.Server

	vendor *fake.Vendor
}

// Serve serves the API under /omni/v1beta and /omni/v1.
func Serve(server *fake.Server) {
	s := &api{server, &fake.Vendor{Name: "omni", Authenticate: authenticate, Refuse: googleapi.Refuse, Unknown: func(string) fake.Problem {
		return *fake.Invalidf("", "Invalid interaction name.")
	}}}
	files := &fake.Vendor{Name: "omni", Authenticate: authenticate, Refuse: googleapi.Refuse, Unknown: func(id string) fake.Problem {
		return fake.Problem{
			Status: http.StatusForbidden, Kind: fake.Forbidden,
			Message: "You do not have permission to access the File " + strings.TrimPrefix(id, idPrefix) + " or it may not exist.",
		}
	}}
	for _, version := range []string{"v1beta", "v1"} {
		prefix := "/omni/" + version
		s.handle("POST "+prefix+"/interactions", "video.create", s.parseCreate, s.answerCreate)
		s.handle("GET "+prefix+"/interactions/{id}", "video.get", s.ParseID, s.answerGet)
		s.handle("POST "+prefix+"/interactions/{id}/cancel", "video.cancel", s.ParseID, s.answerCancel)
		s.handle("DELETE "+prefix+"/interactions/{id}", "video.delete", s.ParseID, s.answerDelete)
		s.handle("GET "+prefix+"/models", "models", nil, answerModels)
		s.serveFiles(files, prefix)
	}
	s.handle("/omni/", "unknown", nil, func(x *fake.Exchange) {
		googleapi.Refuse(x, fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Requested entity was not found."})
	})
}

func (s *api) handle(pattern, name string, parse func(*fake.Exchange) *fake.Problem, answer func(*fake.Exchange)) {
	s.Handle(pattern, fake.Operation{Vendor: s.vendor, Name: name, Parse: parse, Answer: answer})
}

// authenticate refuses a key that comes twice.
func authenticate(x *fake.Exchange) (string, *fake.Problem) {
	key, refusal := googleapi.Key(x)
	if x.HTTP.Header.Get("X-Goog-Api-Key") != "" && (x.HTTP.URL.Query().Has("key") || x.HTTP.Header.Get("Authorization") != "") {
		refusal = fake.Invalidf("", "Multiple authentication credentials received. Please pass only one.")
	}
	return key, refusal
}

func answerModels(x *fake.Exchange) {
	x.Accept()
	list := []any{}
	for _, name := range []string{"gemini-omni-1.2-flash", "gemini-omni-1.1-flash"} {
		list = append(list, map[string]any{
			"name": "models/" + name, "displayName": name,
			"supportedGenerationMethods": []string{"createInteraction"},
		})
	}
	x.JSON(http.StatusOK, map[string]any{"models": list})
}

// serveFiles serves what interactions made: the state of a file at files/{id}, its bytes at files/{id}:download, both with the key alone.
func (s *api) serveFiles(v *fake.Vendor, prefix string) {
	parse := func(x *fake.Exchange) *fake.Problem {
		id, _, _ := strings.Cut(x.HTTP.PathValue("file"), ":")
		return s.ParseJob(x, idPrefix+id)
	}
	state := &fake.Operation{Vendor: v, Name: "files.get", Parse: parse, Answer: s.answerFile}
	content := &fake.Operation{Vendor: v, Name: "video.content", Parse: parse, Answer: s.answerContent}
	s.Mux.HandleFunc("GET "+prefix+"/files/{file}", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.PathValue("file"), ":download") {
			s.Serve(w, r, content)
			return
		}
		s.Serve(w, r, state)
	})
}

// fileState is the state of a job's file, "" where there is none.
func fileState(j *jobs.Job) string {
	now := time.Now()
	state, _ := j.At(now)
	switch {
	case state != jobs.Completed || j.Forgotten:
		return ""
	case j.State == "" && now.UnixMilli() < j.Created+j.Duration+processing.Milliseconds():
		return "PROCESSING"
	}
	return "ACTIVE"
}

func (s *api) answerFile(x *fake.Exchange) {
	state := fileState(x.Job)
	if state == "" {
		googleapi.Refuse(x, s.noFile(x))
		return
	}
	x.Accept()
	x.JSON(http.StatusOK, map[string]string{
		"name": "files/" + strings.TrimPrefix(x.Job.ID, idPrefix), "mimeType": "video/mp4", "state": state, "source": "GENERATED",
		"uri": fileURI(x, x.Job),
	})
}

func (s *api) noFile(x *fake.Exchange) fake.Problem { return x.Operation.Vendor.Unknown(x.Job.ID) }

func (s *api) answerContent(x *fake.Exchange) {
	j, err := s.Look(x)
	switch {
	case err != nil:
		googleapi.Refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
	case fileState(j) == "" || j.LinkLife > 0 && time.Now().After(time.Unix(*j.Ended(time.Now()), 0).Add(s.LinkLife(j))):
		googleapi.Refuse(x, s.noFile(x))
	case fileState(j) != "ACTIVE" || x.HTTP.URL.Query().Get("alt") != "media":
		googleapi.Refuse(x, *fake.Invalidf("", "The file is not in an ACTIVE state and usage is not allowed."))
	default:
		x.Accept()
		s.ServeContent(x, j, 0)
	}
}

// fileURI leads to the bytes; the vendor leaves alt=media in it.
func fileURI(x *fake.Exchange, j *jobs.Job) string {
	return "http://" + x.HTTP.Host + "/omni/v1beta/files/" + strings.TrimPrefix(j.ID, idPrefix) + ":download?alt=media"
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{
		ID: idPrefix + fake.RandomWord(26), Seconds: strings.TrimSuffix(q.format.Duration, "s"), Size: q.format.Resolution,
		Remixed: q.Previous,
	}
	for _, m := range q.media {
		m.Describe(&spec)
	}
	spec.Metadata, _ = json.Marshal(q.format) // a struct of texts
	j := s.Submit(x, spec)
	if j == nil {
		return
	}
	if !q.Background && !await(x, j) {
		return
	}
	s.answer(x, j)
}

// await waits for the end of a job that is made in the foreground, and reports whether the client did.
func await(x *fake.Exchange, j *jobs.Job) bool {
	tick := time.NewTicker(blockStep)
	defer tick.Stop()
	for {
		if state, _ := j.At(time.Now()); state != jobs.Queued && state != jobs.Running {
			return true
		}
		select {
		case <-tick.C:
		case <-x.HTTP.Context().Done():
			return false
		}
	}
}

func (s *api) answerGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		s.answer(x, j)
	}
}

// answer writes the interaction of a job, its video inline or as the address of a file, as the create wanted it.
func (s *api) answer(x *fake.Exchange, j *jobs.Job) {
	now := time.Now()
	state, _ := j.At(now)
	updated := now
	if at := j.Ended(now); at != nil {
		updated = time.Unix(*at, 0)
	}
	i := map[string]any{
		"id": j.ID, "object": "interaction", "model": j.Model, "created": time.UnixMilli(j.Created).UTC().Format(time.RFC3339),
		"updated": updated.UTC().Format(time.RFC3339),
	}
	var word string
	switch state {
	case jobs.Queued:
		word = "queued"
	case jobs.Running:
		word = "in_progress"
	case jobs.Completed:
		word = "completed"
		i["steps"] = []any{
			map[string]any{"type": "thought", "summary": []any{}},
			map[string]any{"type": "model_output", "content": []any{output(x, j)}},
		}
		const tokensPerSecond = 5792
		seconds, _ := strconv.Atoi(j.Seconds) // written by answerCreate
		i["usage"] = map[string]any{"output_tokens_by_modality": []any{map[string]any{
			"modality": "video",
			"tokens":   tokensPerSecond * max(seconds, 1),
		}}}
	case jobs.Canceled:
		word = "cancelled"
	case jobs.Expired:
		word = "incomplete"
	default:
		fault := j.FaultAs(now, "internal")
		if fault.Code == "refused" { // sent as an answer of words
			word = "completed"
			i["steps"] = []any{map[string]any{"type": "model_output", "content": []any{map[string]string{"type": "text", "text": fault.Message}}}}
			break
		}
		word = "failed"
		i["error"] = map[string]string{"code": fault.Code, "message": fault.Message}
	}
	i["status"] = j.Named(word)
	s.Inline(x, j, i)
}

func output(x *fake.Exchange, j *jobs.Job) map[string]string {
	var wanted format
	_ = json.Unmarshal(j.Metadata, &wanted) // what answerCreate wrote
	video := map[string]string{"type": "video", "mime_type": "video/mp4"}
	if wanted.Delivery == "uri" {
		video["uri"] = fileURI(x, j)
	} else {
		video["data"] = fake.InlineOf(0)
	}
	return video
}

func (s *api) answerCancel(x *fake.Exchange) {
	if state, _ := x.Job.At(time.Now()); state != jobs.Queued && state != jobs.Running {
		googleapi.Refuse(x, *fake.Invalidf("", "The interaction is not a running background interaction."))
		return
	}
	if j := s.Cancel(x, nil); j != nil {
		s.answer(x, j)
	}
}

func (s *api) answerDelete(x *fake.Exchange) {
	if j := s.Cancel(x, func(j *jobs.Job) { j.Deleted = true }); j != nil {
		x.JSON(http.StatusOK, map[string]any{})
	}
}
