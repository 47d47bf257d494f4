// Package fakepixverse fakes PixVerse's API platform. Shapes and codes: docs.platform.pixverse.ai (text-to-video, image-to-video,
// transition, fusion, extend, upload, get-video-generation-status, error-codes, common-errors).
//
// Below /pixverse/openapi/v2/: {image,media}/upload, video/{text,img,transition,fusion,extend}/generate, video/result/{id}.
package fakepixverse

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const (
	name = "pixverse"
	root = "/pixverse/openapi/v2"
)

type api struct {
	*fake.Server

	mu       sync.Mutex
	uploaded map[uint64]fake.Media // by the id of the upload
}

// Serve serves the API under /pixverse/openapi/v2. As there, refusals have status 200, a create names inputs by the ids of their
// uploads, and one whose Ai-trace-id was seen makes no second video.
func Serve(server *fake.Server) {
	s := &api{Server: server, uploaded: map[uint64]fake.Media{}}
	v := &fake.Vendor{Name: name, Authenticate: authenticate, Refuse: refuse, Unknown: func(string) fake.Problem {
		return *refused(500008, "The requested data not found.")
	}}
	s.ServeLinks(name, nil)
	s.Handle("POST "+root+"/image/upload", fake.Operation{
		Vendor: v, Name: "upload",
		Answer: func(x *fake.Exchange) { s.answerUpload(x, "image", "image_url") },
	})
	s.Handle("POST "+root+"/media/upload", fake.Operation{
		Vendor: v, Name: "upload",
		Answer: func(x *fake.Exchange) { s.answerUpload(x, "file", "file_url") },
	})
	for _, mode := range []string{"text", "img", "transition", "fusion", "extend"} {
		s.Handle("POST "+root+"/video/"+mode+"/generate",
			fake.Operation{
				Vendor: v, Name: "video.create", Parse: func(x *fake.Exchange) *fake.Problem { return s.parseCreate(x, mode) },
				Answer: s.answerCreate,
			})
	}
	s.Handle("GET "+root+"/video/result/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerResult})
}

// authenticate requires an id of the request next to the key.
func authenticate(x *fake.Exchange) (string, *fake.Problem) {
	key, refusal := fake.HeaderKey("API-KEY")(x)
	if refusal == nil && x.HTTP.Header.Get("Ai-trace-id") == "" {
		refusal = refused(400011, "Ai-trace-id is required")
	}
	return key, refusal
}

// answer writes the envelope of every answer.
func answer(x *fake.Exchange, status, code int, message string, resp any) {
	x.JSON(status, map[string]any{"ErrCode": code, "ErrMsg": message, "Resp": resp})
}

func refused(code int, message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: strconv.Itoa(code), Message: message}
}

// refuse answers with a 200 where the vendor knows what is wrong.
func refuse(x *fake.Exchange, p fake.Problem) {
	code, err := strconv.Atoi(p.Code)
	status := http.StatusOK
	if err != nil {
		code = fake.ByStatus[int]{
			http.StatusUnauthorized: 400012, http.StatusForbidden: 500020, http.StatusNotFound: 500008, http.StatusTooManyRequests: 500044,
			http.StatusPaymentRequired: 500090, http.StatusInternalServerError: 99999, 0: 400017,
		}.Of(p.Status)
		if p.Status >= http.StatusInternalServerError {
			status = p.Status
		}
	}
	answer(x, status, code, p.Message, nil)
}

// answerUpload keeps a picture or a video.
func (s *api) answerUpload(x *fake.Exchange, file, link string) {
	form, p := fake.ParseForm(x)
	if p != nil {
		refuse(x, *p)
		return
	}
	var m fake.Media
	const largest = 20 << 20
	switch sent := form.File(file); {
	case sent != nil && len(sent.Data) > largest:
		refuse(x, *refused(500041, "image is too large"))
		return
	case sent != nil:
		m = fake.Media{Type: sent.ContentType, Data: append([]byte(nil), sent.Data...)}
	case form.Value(link) != "":
		m = fake.Media{URL: form.Value(link)}
	default:
		refuse(x, *refused(400013, file+" is empty"))
		return
	}
	x.Accept()
	text := fake.RandomNumber(15)
	id, _ := strconv.ParseUint(text, 10, 64) // made here
	s.mu.Lock()
	s.uploaded[id] = m
	s.mu.Unlock()
	resp := map[string]any{"img_id": id, "img_url": "https://media.pixverse.ai/upload/" + text}
	if file == "file" {
		resp = map[string]any{"media_id": id, "media_type": "video", "url": "https://media.pixverse.ai/upload/" + text}
	}
	answer(x, http.StatusOK, 0, "Success", resp)
}

// input is what was uploaded under an id.
func (s *api) input(id uint64) (fake.Media, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.uploaded[id]
	return m, ok
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomNumber(15), Seconds: strconv.Itoa(q.Duration), Size: q.Quality, Width: 1280, Height: 720}
	// Another create with the same id is taken for the same, whatever it says.
	spec.Idempotency = name + " " + x.HTTP.Header.Get("Ai-trace-id")
	spec.RequestSHA = spec.Idempotency
	for _, id := range q.inputs() {
		if m, ok := s.input(id); ok {
			m.Describe(&spec)
			break
		}
	}
	if j := s.Submit(x, spec); j != nil {
		id, _ := strconv.ParseUint(j.ID, 10, 64) // made here
		answer(x, http.StatusOK, 0, "Success", map[string]any{"video_id": id, "credits": 45})
	}
}

// The vendor's numbers for the states of a job.
const (
	done, running, failed = 1, 5, 8
)

func (s *api) answerResult(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	id, _ := strconv.ParseUint(j.ID, 10, 64) // made here
	resp := map[string]any{"id": id, "prompt": j.Prompt, "url": "", "seed": 0, "outputWidth": 0, "outputHeight": 0}
	status := failed
	switch state, _ := j.At(time.Now()); state {
	case jobs.Queued, jobs.Running:
		status = running
	case jobs.Completed:
		status = done
		resp["url"], resp["outputWidth"], resp["outputHeight"] = s.VideoLink(x, j, 0), j.Width, j.Height
	}
	resp["status"] = status
	if j.Word != "" {
		resp["status"] = j.Word
	}
	answer(x, http.StatusOK, 0, "Success", resp)
}
