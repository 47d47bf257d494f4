package upstream

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (s *server) routeOpenAIVideos(v *vendor, prefix string) {
	parse := func(x *exchange) *problem {
		id := x.r.PathValue("id")
		p := s.parseJob(x, id)
		if p != nil {
			p.param = "video_id"
		}
		return p
	}
	s.handle("POST "+prefix+"/videos", operation{v, "video.create", parseVideo, s.answerVideoCreate})
	s.handle("GET "+prefix+"/videos", operation{v, "video.list", nil, s.answerVideoList})
	s.handle("GET "+prefix+"/videos/{id}", operation{v, "video.get", parse, s.answerVideoGet})
	s.handle("DELETE "+prefix+"/videos/{id}", operation{v, "video.delete", parse, s.answerVideoDelete})
	s.handle("GET "+prefix+"/videos/{id}/content", operation{v, "video.content", parse, s.answerVideoContent})
	s.handle("POST "+prefix+"/videos/{id}/remix", operation{v, "video.remix", s.parseRemix, s.answerVideoCreate})
}

// videoObject is the vendor's job. The keys that may be null are always there.
type videoObject struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Model       string  `json:"model"`
	Status      string  `json:"status"`
	Progress    int     `json:"progress"`
	CreatedAt   int64   `json:"created_at"`
	CompletedAt *int64  `json:"completed_at"`
	ExpiresAt   *int64  `json:"expires_at"`
	Seconds     string  `json:"seconds"`
	Size        string  `json:"size"`
	Prompt      string  `json:"prompt"`
	Remixed     *string `json:"remixed_from_video_id"`
	Error       *fault  `json:"error"`
}

func (s *server) videoObject(j *job) videoObject {
	now := time.Now()
	state, progress := j.at(now)
	if state == stateCanceled {
		state = stateFailed // the format has no other word
	}
	o := videoObject{
		ID: j.ID, Object: "video", Model: j.Model, Status: j.word(state), Progress: progress, CreatedAt: j.Created / 1000,
		Seconds: j.Seconds, Size: j.Size, Prompt: j.Prompt, Error: j.fault(now),
	}
	if state == stateCompleted {
		o.CompletedAt = j.ended(now)
		expires := *o.CompletedAt + int64(s.linkLife(j).Seconds())
		o.ExpiresAt = &expires
	}
	if j.Remixed != "" {
		o.Remixed = &j.Remixed
	}
	return o
}

// videoRequest is a create, whichever body brought it.
type videoRequest struct {
	Model          string `json:"model"`
	Prompt         string `json:"prompt"`
	Seconds        string `json:"seconds"`
	Size           string `json:"size"`
	InputReference *struct {
		FileID   string `json:"file_id"`
		ImageURL string `json:"image_url"`
	} `json:"input_reference"`
	file    *formFile
	remixed *job
}

func parseVideo(x *exchange) *problem {
	q := new(videoRequest)
	if strings.HasPrefix(x.r.Header.Get("Content-Type"), "multipart/") {
		f, p := parseForm(x)
		if p != nil {
			return p
		}
		q.Model, q.Prompt, q.Seconds, q.Size = f.value("model"), f.value("prompt"), f.value("seconds"), f.value("size")
		q.file = f.file("input_reference")
	} else {
		if p := needJSON(x); p != nil {
			return p
		}
		if p := x.decode(q); p != nil {
			return p
		}
	}
	if q.Model == "" {
		q.Model = "sora-2"
	}
	x.request, x.model, x.prompt = q, q.Model, q.Prompt
	if p := q.check(); p != nil {
		return p
	}
	if q.Seconds == "" {
		q.Seconds = "4"
	}
	if q.Size == "" {
		q.Size = "720x1280"
	}
	return checkModel(x)
}

// check refuses what the vendor refuses. Only its own models are that strict: compatible servers take other values.
func (q *videoRequest) check() *problem {
	if q.Prompt == "" {
		return missing("prompt")
	}
	if q.file != nil && !slices.Contains([]string{"image/jpeg", "image/png", "image/webp", "video/mp4"}, q.file.contentType) {
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid, code: "unsupported_mimetype", param: "input_reference",
			message: fmt.Sprintf("Invalid file 'input_reference': unsupported mimetype ('%s'). Supported file formats are 'image/jpeg', 'image/png', 'image/webp', and 'video/mp4'.", q.file.contentType),
		}
	}
	if !strings.HasPrefix(q.Model, "sora-") {
		return nil
	}
	if p := oneOf("seconds", q.Seconds, "4", "8", "12"); p != nil {
		return p
	}
	return oneOf("size", q.Size, "720x1280", "1280x720", "1024x1792", "1792x1024")
}

// oneOf refuses a value that is given and not listed.
func oneOf(param, value string, values ...string) *problem {
	if value == "" || slices.Contains(values, value) {
		return nil
	}
	return &problem{
		status: http.StatusBadRequest, kind: kindInvalid, code: "invalid_value", param: param,
		message: fmt.Sprintf("Invalid value: '%s'. Supported values are: '%s'.", value, strings.Join(values, "', '")),
	}
}

func (s *server) parseRemix(x *exchange) *problem {
	p := s.parseJob(x, x.r.PathValue("id"))
	source := x.job
	if p != nil {
		return p
	}
	x.job = nil
	q := new(videoRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	q.Model, q.Seconds, q.Size, q.remixed = source.Model, source.Seconds, source.Size, source
	x.request, x.prompt = q, q.Prompt
	if state, _ := source.at(time.Now()); state != stateCompleted {
		return &problem{
			status: http.StatusBadRequest, kind: kindInvalid, param: "video_id",
			message: "Video with id '" + source.ID + "' is not completed.",
		}
	}
	return q.check()
}

func (s *server) answerVideoCreate(x *exchange) {
	q := requestOf[videoRequest](x)
	spec := job{ID: "video_" + randomID(48), Seconds: q.Seconds, Size: q.Size, RequestSHA: digestOf(x.body)}
	if q.remixed != nil {
		spec.Remixed = q.remixed.ID
		if x.operation.vendor.name == "generic" { // a gateway of our kind, unlike the vendor
			spec.Idempotency = idempotencyOf(x)
		}
	}
	if q.file != nil {
		spec.InputSHA256, spec.InputBytes = digestOf(q.file.data), len(q.file.data)
	} else if q.InputReference != nil {
		reference := []byte(q.InputReference.ImageURL + q.InputReference.FileID)
		spec.InputSHA256, spec.InputBytes = digestOf(reference), len(reference)
	}
	if j := s.submit(x, spec); j != nil {
		openAIHeaders(x)
		x.json(http.StatusOK, s.videoObject(j))
	}
}

func (s *server) answerVideoGet(x *exchange) {
	s.jobs.polled(x.job.ID)
	j, err := s.look(x)
	switch {
	case err != nil:
		refuseOpenAI(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
	case j.Forgotten:
		refuseOpenAI(x, *s.parseJob(x, j.ID))
	default:
		x.accept()
		openAIHeaders(x)
		x.json(http.StatusOK, s.videoObject(j))
	}
}

func (s *server) answerVideoDelete(x *exchange) {
	if state, _ := x.job.at(time.Now()); state != stateCompleted && state != stateFailed {
		refuseOpenAI(x, problem{
			status: http.StatusBadRequest, kind: kindInvalid, param: "video_id",
			message: "Only completed or failed videos can be deleted.",
		})
		return
	}
	if _, err := s.jobs.change(x.job.ID, func(j *job) { j.Deleted = true }); err != nil {
		refuseOpenAI(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
		return
	}
	x.accept()
	openAIHeaders(x)
	x.json(http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{x.job.ID, "video.deleted", true})
}

func (s *server) answerVideoContent(x *exchange) {
	j, err := s.look(x)
	if err != nil {
		refuseOpenAI(x, problem{status: http.StatusInternalServerError, kind: kindInternal, message: err.Error()})
		return
	}
	now := time.Now()
	state, _ := j.at(now)
	notFound := problem{status: http.StatusNotFound, kind: kindNotFound, param: "video_id"}
	switch {
	case j.Forgotten:
		notFound.message = "Video with id '" + j.ID + "' not found."
	case state != stateCompleted:
		notFound.message = "Video is not ready yet, use GET /v1/videos/{video_id} to check status."
	case now.After(time.Unix(*j.ended(now), 0).Add(s.linkLife(j))):
		notFound.message = "Video content has expired."
	default:
		x.accept()
		openAIHeaders(x)
		s.answerVariant(x, j)
		return
	}
	refuseOpenAI(x, notFound)
}

func (s *server) answerVariant(x *exchange, j *job) {
	switch variant := x.r.URL.Query().Get("variant"); variant {
	case "", "video":
		output, _ := strconv.Atoi(x.r.URL.Query().Get("index"))
		s.serveContent(x, j, output)
	case "thumbnail":
		x.bytes(http.StatusOK, "image/webp", s.clip.thumbnail)
	case "spritesheet":
		x.bytes(http.StatusOK, "image/jpeg", s.clip.spritesheet)
	default:
		refuseOpenAI(x, *oneOf("variant", variant, "video", "thumbnail", "spritesheet"))
	}
}

// answerVideoList pages through the key's jobs, newest first unless asked otherwise.
func (s *server) answerVideoList(x *exchange) {
	query := x.r.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 100 {
			refuseOpenAI(x, problem{status: http.StatusBadRequest, kind: kindInvalid, param: "limit", message: "Invalid 'limit': expected an integer between 0 and 100."})
			return
		}
		limit = n
	}
	if p := oneOf("order", query.Get("order"), "asc", "desc"); p != nil {
		refuseOpenAI(x, *p)
		return
	}
	found := s.jobs.list(func(j *job) bool {
		return j.Vendor == x.operation.vendor.name && j.Key == x.key && !j.Deleted && !j.Forgotten
	})
	if query.Get("order") != "asc" {
		slices.Reverse(found)
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(found, func(j job) bool { return j.ID == after })
		found = found[at+1:]
	}
	var page struct {
		Object  string        `json:"object"`
		Data    []videoObject `json:"data"`
		FirstID *string       `json:"first_id"`
		LastID  *string       `json:"last_id"`
		HasMore bool          `json:"has_more"`
	}
	page.Object, page.Data = "list", []videoObject{}
	if len(found) > limit {
		found, page.HasMore = found[:limit], true
	}
	for i := range found {
		page.Data = append(page.Data, s.videoObject(&found[i]))
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	x.accept()
	openAIHeaders(x)
	x.json(http.StatusOK, page)
}
