// Package fakezhipu fakes the video API of Zhipu (Z.ai). Shapes and codes: docs.bigmodel.cn (video generation, async-result, api-code),
// docs.z.ai (generate-video, api-code).
//
// Below /zhipu/: videos/generations, async-result/{id}.
package fakezhipu

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const name = "zhipu"

type api struct{ *fake.Server }

// Serve serves the API under /zhipu. As there, a request_id that was seen is refused, and no job is looked up by it.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: 24 * time.Hour, FromEnd: true})
	s.Handle("POST /zhipu/videos/generations", fake.Operation{Vendor: v, Name: "video.create", Parse: s.parseCreate, Answer: s.answerCreate})
	s.Handle("GET /zhipu/async-result/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.ParseID, Answer: s.answerResult})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	code := p.Code
	if _, err := strconv.Atoi(code); err != nil {
		code = fake.ByStatus[string]{
			http.StatusUnauthorized: "1000", http.StatusForbidden: "1220", http.StatusNotFound: "1200", http.StatusTooManyRequests: "1302",
			http.StatusInternalServerError: "1230", 0: "1210",
		}.Of(p.Status)
	}
	x.JSON(p.Status, map[string]any{"error": map[string]string{"code": code, "message": p.Message}})
}

func refused(code, message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: code, Message: message}
}

// images is a text or a list of them.
type images []string

// UnmarshalJSON implements json.Unmarshaler.
func (i *images) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*i = images{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(i))
}

type create struct {
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	Images    images `json:"image_url"`
	Size      string `json:"size"`
	Ratio     string `json:"aspect_ratio"`
	FPS       *int   `json:"fps"`
	Duration  *int   `json:"duration"`
	RequestID string `json:"request_id"`
}

func (s *api) parseCreate(x *fake.Exchange) *fake.Problem {
	q := new(create)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if q.Model == "" || fake.UnknownModel(q.Model) {
		return refused("1211", "The model does not exist.")
	}
	return q.check()
}

func (q *create) check() *fake.Problem {
	const longestPrompt, shortestID, largestImage = 512, 6, 5 << 20
	vidu := strings.HasPrefix(q.Model, "vidu")
	lengths, most := []int{5, 10}, 1
	switch {
	case vidu:
		lengths = []int{4, 5}
	case strings.HasPrefix(q.Model, "cogvideox-3"):
		most = 2
	}
	switch {
	case strings.Contains(q.Model, "start-end"):
		most = 2
	case strings.Contains(q.Model, "reference"):
		most = 3
	}
	switch {
	case q.Prompt == "" && len(q.Images) == 0:
		return refused("1213", "prompt or image_url is required")
	case utf8.RuneCountInString(q.Prompt) > longestPrompt:
		return refused("1214", "prompt is too long")
	case len(q.Images) > most, strings.HasSuffix(q.Model, "-text") && len(q.Images) > 0, strings.Contains(q.Model, "start-end") &&
		len(q.Images) != 2:
		return refused("1214", "image_url is invalid")
	case q.Duration != nil && (!slices.Contains(lengths, *q.Duration) || strings.HasPrefix(q.Model, "cogvideox-flash")):
		return refused("1214", "duration is invalid")
	case q.FPS != nil && *q.FPS != 30 && *q.FPS != 60:
		return refused("1214", "fps is invalid")
	case !vidu && q.Size != "" && !slices.Contains([]string{
		"1280x720", "720x1280", "1024x1024", "1920x1080", "1080x1920", "2048x1080",
		"3840x2160",
	}, q.Size):
		return refused("1214", "size is invalid")
	case !vidu && q.Ratio != "":
		return refused("1214", "aspect_ratio is invalid")
	case q.RequestID != "" && len(q.RequestID) < shortestID:
		return refused("1214", "request_id is too short")
	}
	for _, image := range q.Images {
		m, ok := fake.ReadURL(image)
		if !ok {
			m, ok = fake.ReadBase64(image)
		}
		if !ok || len(m.Data) > largestImage {
			return refused("1214", "image_url is invalid")
		}
	}
	return nil
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	seen := s.Jobs.List(func(j *jobs.Job) bool {
		return j.Vendor == name && j.Key == x.Key && q.RequestID != "" && j.Lookup == q.RequestID
	})
	if len(seen) > 0 {
		refuse(x, *refused("1231", "You already have this request: "+q.RequestID))
		return
	}
	spec := jobs.Job{ID: fake.RandomNumber(19), Lookup: q.RequestID, Seconds: "5", Size: cmp.Or(q.Size, "1920x1080")}
	if q.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Duration)
	}
	if len(q.Images) > 0 {
		m, ok := fake.ReadURL(q.Images[0])
		if !ok {
			m, _ = fake.ReadBase64(q.Images[0]) // checked before
		}
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]string{"model": j.Model, "id": j.ID, "request_id": j.Lookup, "task_status": "PROCESSING"})
	}
}

func (s *api) answerResult(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	body := map[string]any{"model": j.Model, "request_id": j.Lookup}
	word := "FAIL"
	switch state, _ := j.At(now); state {
	case jobs.Queued, jobs.Running:
		word = "PROCESSING"
	case jobs.Completed:
		word = "SUCCESS"
		body["video_result"] = []map[string]string{{"url": s.VideoLink(x, j, 0), "cover_image_url": s.CoverLink(x, j)}}
	default:
		if f := j.Fault(now); f != nil {
			body["error"] = f
		}
	}
	body["task_status"] = j.Named(word)
	x.JSON(http.StatusOK, body)
}
