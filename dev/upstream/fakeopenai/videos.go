package fakeopenai

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

func (s *api) routeVideos(v *fake.Vendor, prefix string) {
	parse := func(x *fake.Exchange) *fake.Problem {
		id := x.HTTP.PathValue("id")
		p := s.ParseJob(x, id)
		if p != nil {
			p.Param = "video_id"
		}
		return p
	}
	s.Handle("POST "+prefix+"/videos", fake.Operation{Vendor: v, Name: "video.create", Parse: parseVideo, Answer: s.answerVideoCreate})
	s.Handle("GET "+prefix+"/videos", fake.Operation{Vendor: v, Name: "video.list", Answer: s.answerVideoList})
	s.Handle("GET "+prefix+"/videos/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: parse, Answer: s.answerVideoGet})
	s.Handle("DELETE "+prefix+"/videos/{id}", fake.Operation{Vendor: v, Name: "video.delete", Parse: parse, Answer: s.answerVideoDelete})
	s.Handle("GET "+prefix+"/videos/{id}/content",
		fake.Operation{Vendor: v, Name: "video.content", Parse: parse, Answer: s.answerVideoContent})
	s.Handle("POST "+prefix+"/videos/{id}/remix",
		fake.Operation{Vendor: v, Name: "video.remix", Parse: s.parseRemix, Answer: s.answerVideoCreate})
}

// videoObject is the vendor's job. The keys that may be null are always there.
type videoObject struct {
	ID          string      `json:"id"`
	Object      string      `json:"object"`
	Model       string      `json:"model"`
	Status      string      `json:"status"`
	Progress    int         `json:"progress"`
	CreatedAt   int64       `json:"created_at"`
	CompletedAt *int64      `json:"completed_at"`
	ExpiresAt   *int64      `json:"expires_at"`
	Seconds     string      `json:"seconds"`
	Size        string      `json:"size"`
	Prompt      string      `json:"prompt"`
	Remixed     *string     `json:"remixed_from_video_id"`
	Error       *jobs.Fault `json:"error"`
}

func (s *api) videoObject(j *jobs.Job) videoObject {
	now := time.Now()
	state, progress := j.At(now)
	if state == jobs.Canceled {
		state = jobs.Failed // the format has no other word
	}
	o := videoObject{
		ID: j.ID, Object: "video", Model: j.Model, Status: j.Named(state), Progress: progress, CreatedAt: j.Created / 1000,
		Seconds: j.Seconds, Size: j.Size, Prompt: j.Prompt, Error: j.Fault(now),
	}
	if state == jobs.Completed {
		o.CompletedAt = j.Ended(now)
		expires := *o.CompletedAt + int64(s.LinkLife(j).Seconds())
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
	file    *fake.FormFile
	remixed *jobs.Job
}

func parseVideo(x *fake.Exchange) *fake.Problem {
	q := new(videoRequest)
	if strings.HasPrefix(x.HTTP.Header.Get("Content-Type"), "multipart/") {
		f, p := fake.ParseForm(x)
		if p != nil {
			return p
		}
		q.Model, q.Prompt, q.Seconds, q.Size = f.Value("model"), f.Value("prompt"), f.Value("seconds"), f.Value("size")
		q.file = f.File("input_reference")
	} else {
		if p := NeedJSON(x); p != nil {
			return p
		}
		if p := x.Decode(q); p != nil {
			return p
		}
	}
	if q.Model == "" {
		q.Model = "sora-2"
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if p := q.check(); p != nil {
		return p
	}
	if q.Seconds == "" {
		q.Seconds = "4"
	}
	if q.Size == "" {
		q.Size = "720x1280"
	}
	return CheckModel(x)
}

// check refuses what the vendor refuses. Only its own models are that strict: compatible servers take other values.
func (q *videoRequest) check() *fake.Problem {
	if q.Prompt == "" {
		return Missing("prompt")
	}
	if q.file != nil && !slices.Contains([]string{"image/jpeg", "image/png", "image/webp", "video/mp4"}, q.file.ContentType) {
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "unsupported_mimetype", Param: "input_reference",
			Message: fmt.Sprintf("Invalid file 'input_reference': unsupported mimetype ('%s'). Supported file formats are 'image/jpeg', 'image/png', 'image/webp', and 'video/mp4'.", q.file.ContentType),
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
func oneOf(param, value string, values ...string) *fake.Problem {
	if value == "" || slices.Contains(values, value) {
		return nil
	}
	return &fake.Problem{
		Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "invalid_value", Param: param,
		Message: fmt.Sprintf("Invalid value: '%s'. Supported values are: '%s'.", value, strings.Join(values, "', '")),
	}
}

func (s *api) parseRemix(x *fake.Exchange) *fake.Problem {
	p := s.ParseJob(x, x.HTTP.PathValue("id"))
	source := x.Job
	if p != nil {
		return p
	}
	x.Job = nil
	q := new(videoRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	q.Model, q.Seconds, q.Size, q.remixed = source.Model, source.Seconds, source.Size, source
	x.Request, x.Prompt = q, q.Prompt
	if state, _ := source.At(time.Now()); state != jobs.Completed {
		return &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "video_id",
			Message: "Video with id '" + source.ID + "' is not completed.",
		}
	}
	return q.check()
}

func (s *api) answerVideoCreate(x *fake.Exchange) {
	q := fake.RequestOf[videoRequest](x)
	spec := jobs.Job{ID: "video_" + fake.RandomID(48), Seconds: q.Seconds, Size: q.Size}
	if q.remixed != nil {
		spec.Remixed = q.remixed.ID
		if x.Operation.Vendor.Name == "generic" { // a gateway of our kind, unlike the vendor
			spec.Idempotency = IdempotencyOf(x)
		}
	}
	if q.file != nil {
		spec.InputSHA256, spec.InputBytes = fake.DigestOf(q.file.Data), len(q.file.Data)
	} else if q.InputReference != nil {
		reference := []byte(q.InputReference.ImageURL + q.InputReference.FileID)
		spec.InputSHA256, spec.InputBytes = fake.DigestOf(reference), len(reference)
	}
	if j := s.Submit(x, spec); j != nil {
		setHeaders(x)
		x.JSON(http.StatusOK, s.videoObject(j))
	}
}

func (s *api) answerVideoGet(x *fake.Exchange) {
	if j := s.Poll(x); j != nil {
		setHeaders(x)
		x.JSON(http.StatusOK, s.videoObject(j))
	}
}

func (s *api) answerVideoDelete(x *fake.Exchange) {
	if state, _ := x.Job.At(time.Now()); state != jobs.Completed && state != jobs.Failed {
		Refuse(x, fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "video_id",
			Message: "Only completed or failed videos can be deleted.",
		})
		return
	}
	if _, err := s.Jobs.Change(x.Job.ID, func(j *jobs.Job) { j.Deleted = true }); err != nil {
		Refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
		return
	}
	x.Accept()
	setHeaders(x)
	x.JSON(http.StatusOK, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{x.Job.ID, "video.deleted", true})
}

func (s *api) answerVideoContent(x *fake.Exchange) {
	j, err := s.Look(x)
	if err != nil {
		Refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
		return
	}
	now := time.Now()
	state, _ := j.At(now)
	notFound := fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Param: "video_id"}
	switch {
	case j.Forgotten:
		notFound.Message = "Video with id '" + j.ID + "' not found."
	case state != jobs.Completed:
		notFound.Message = "Video is not ready yet, use GET /v1/videos/{video_id} to check status."
	case now.After(time.Unix(*j.Ended(now), 0).Add(s.LinkLife(j))):
		notFound.Message = "Video content has expired."
	default:
		x.Accept()
		setHeaders(x)
		s.answerVariant(x, j)
		return
	}
	Refuse(x, notFound)
}

func (s *api) answerVariant(x *fake.Exchange, j *jobs.Job) {
	switch variant := x.HTTP.URL.Query().Get("variant"); variant {
	case "", "video":
		output, _ := strconv.Atoi(x.HTTP.URL.Query().Get("index"))
		s.ServeContent(x, j, output)
	case "thumbnail":
		x.Bytes(http.StatusOK, "image/webp", s.Clip.Thumbnail)
	case "spritesheet":
		x.Bytes(http.StatusOK, "image/jpeg", s.Clip.Spritesheet)
	default:
		Refuse(x, *oneOf("variant", variant, "video", "thumbnail", "spritesheet"))
	}
}

// answerVideoList pages through the key's jobs, newest first unless asked otherwise.
func (s *api) answerVideoList(x *fake.Exchange) {
	query := x.HTTP.URL.Query()
	limit := 20
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > 100 {
			Refuse(x, fake.Problem{
				Status: http.StatusBadRequest, Kind: fake.Invalid, Param: "limit",
				Message: "Invalid 'limit': expected an integer between 0 and 100.",
			})
			return
		}
		limit = n
	}
	if p := oneOf("order", query.Get("order"), "asc", "desc"); p != nil {
		Refuse(x, *p)
		return
	}
	found := s.Jobs.List(func(j *jobs.Job) bool {
		return j.Vendor == x.Operation.Vendor.Name && j.Key == x.Key && !j.Deleted && !j.Forgotten
	})
	if query.Get("order") != "asc" {
		slices.Reverse(found)
	}
	if after := query.Get("after"); after != "" {
		at := slices.IndexFunc(found, func(j jobs.Job) bool { return j.ID == after })
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
	x.Accept()
	setHeaders(x)
	x.JSON(http.StatusOK, page)
}

// IdempotencyOf is what repeats of a create have in common, "" where the call carries no key.
func IdempotencyOf(x *fake.Exchange) string {
	key := x.HTTP.Header.Get("Idempotency-Key")
	if key == "" {
		return ""
	}
	return strings.Join([]string{"generic", x.Key, key}, "\n")
}
