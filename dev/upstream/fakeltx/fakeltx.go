// Package fakeltx fakes Lightricks' LTX API. Shapes: docs.ltx.io (asynchronous generation, text-to-video, image-to-video, audio-to-video,
// errors).
//
// Below /ltx/v2/: {text,image,audio}-to-video[/{id}].
package fakeltx

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const name = "ltx"

type api struct{ *fake.Server }

// Serve serves the API under /ltx.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: 24 * time.Hour, FromEnd: true})
	for _, operation := range []string{"text-to-video", "image-to-video", "audio-to-video"} {
		s.Handle("POST /ltx/v2/"+operation, fake.Operation{
			Vendor: v, Name: "video.create", Parse: s.parseCreate(operation),
			Answer: s.answerCreate,
		})
		s.Handle("GET /ltx/v2/"+operation+"/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerJob})
	}
}

func refuse(x *fake.Exchange, p fake.Problem) {
	code := p.Code
	if code == "" || code == "invalid" {
		code = fake.ByStatus[string]{
			http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "insufficient_funds_error",
			http.StatusNotFound:        "not_found_error",
			http.StatusTooManyRequests: "rate_limit_error", http.StatusInternalServerError: "api_error", 0: "invalid_request_error",
		}.Of(p.Status)
	}
	x.JSON(p.Status, map[string]any{"type": "error", "error": map[string]string{"type": code, "message": p.Message}})
}

func refused(message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "invalid_request_error", Message: message}
}

type create struct {
	Model      string `json:"model"`
	Prompt     string `json:"prompt"`
	Duration   *int   `json:"duration"`
	Resolution string `json:"resolution"`
	FPS        *int   `json:"fps"`
	Audio      *bool  `json:"generate_audio"`
	Image      string `json:"image_uri"`
	Last       string `json:"last_frame_uri"`
	Sound      string `json:"audio_uri"`
}

func (s *api) parseCreate(operation string) func(*fake.Exchange) *fake.Problem {
	return func(x *fake.Exchange) *fake.Problem {
		q := new(create)
		if p := x.Decode(q); p != nil {
			return p
		}
		x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
		if q.Model == "" || fake.UnknownModel(q.Model) {
			return refused("model: unknown model")
		}
		return q.check(operation)
	}
}

func (q *create) check(operation string) *fake.Problem {
	sizes := []string{"1280x720", "720x1280", "1920x1080", "1080x1920", "2560x1440", "1440x2560", "3840x2160", "2160x3840"}
	const shortest, usual, longest = 6, 10, 20
	switch {
	case q.Prompt == "" && operation != "audio-to-video":
		return refused("prompt: required")
	case !slices.Contains(sizes, q.Resolution):
		return refused("resolution: invalid")
	case q.Duration == nil && operation != "audio-to-video":
		return refused("duration: required")
	case q.Duration != nil && (*q.Duration < shortest || *q.Duration > longest || *q.Duration%2 != 0):
		return refused("duration: invalid")
	case q.Duration != nil && *q.Duration > usual && (slices.Index(sizes, q.Resolution) > 3 || q.FPS != nil && *q.FPS > 25): //nolint:mnd // the sizes above 1080p
		return refused("duration: too long for the resolution and frame rate")
	case q.FPS != nil && !slices.Contains([]int{24, 25, 48, 50}, *q.FPS):
		return refused("fps: invalid")
	case operation == "image-to-video" && q.Image == "":
		return refused("image_uri: required")
	case operation == "audio-to-video" && q.Sound == "":
		return refused("audio_uri: required")
	}
	for _, image := range []string{q.Image, q.Last} {
		if image == "" {
			continue
		}
		if _, ok := fake.ReadURL(image); !ok {
			return refused("image_uri: invalid")
		}
	}
	return nil
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomID(24), Seconds: "6", Size: q.Resolution}
	if q.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Duration)
	}
	if q.Image != "" {
		m, _ := fake.ReadURL(q.Image) // checked before
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusAccepted, map[string]string{"id": j.ID, "created_at": time.Now().UTC().Format(time.RFC3339), "status": "pending"})
	}
}

func (s *api) answerJob(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	body := map[string]any{"id": j.ID}
	word := "failed"
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "pending"
	case jobs.Running:
		word = "processing"
	case jobs.Completed:
		word = "completed"
		body["result"] = map[string]string{"video_url": s.VideoLink(x, j, 0)}
	default:
		f := j.FaultAs(now, "content_filtered_error")
		body["error"] = map[string]string{"type": f.Code, "message": f.Message}
	}
	body["status"] = j.Named(word)
	x.JSON(http.StatusOK, body)
}
