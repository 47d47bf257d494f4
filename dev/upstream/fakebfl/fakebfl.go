// Package fakebfl fakes the video API of Black Forest Labs. Shapes: docs.bfl.ai (FLUX 3 video, integration guidelines, errors).
//
// Below /bfl/v1/: {model}, whose body is strict, and get_result?id={id}, which is the polling_url of a create.
package fakebfl

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const (
	name = "bfl"
	read = "/bfl/v1/get_result"
	// linkLife is how long a result link works after the job's end.
	linkLife = 10 * time.Minute
	// second is the cost of a second in credits.
	second = 17
)

type api struct{ *fake.Server }

// Serve serves the API under /bfl.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.HeaderKey("X-Key"), Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: linkLife, FromEnd: true})
	s.Handle("POST /bfl/v1/{model}", fake.Operation{Vendor: v, Name: "video.create", Parse: s.parseCreate, Answer: s.answerCreate})
	s.Handle("GET "+read, fake.Operation{Vendor: v, Name: "video.get", Parse: s.parseRead, Answer: s.answerRead})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	switch p.Status {
	case http.StatusUnauthorized:
		p.Status = http.StatusForbidden
	case http.StatusNotFound:
		x.JSON(p.Status, map[string]any{"id": x.HTTP.URL.Query().Get("id"), "status": "Task not found", "result": nil})
		return
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		x.JSON(http.StatusUnprocessableEntity, map[string]any{"detail": []any{map[string]any{
			"loc": []string{"body", p.Param}, "msg": p.Message,
			"type": "value_error",
		}}})
		return
	}
	x.JSON(p.Status, map[string]string{"detail": p.Message})
}

func refused(member, message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusUnprocessableEntity, Kind: fake.Invalid, Param: member, Message: message}
}

type create struct {
	Mode       string          `json:"mode"`
	Prompt     string          `json:"prompt"`
	Keyframes  json.RawMessage `json:"keyframes"`
	StartVideo string          `json:"start_video"`
	Resolution string          `json:"resolution"`
	Duration   json.RawMessage `json:"duration"`
	Aspect     string          `json:"aspect_ratio"`
	Audio      *bool           `json:"generate_audio"`
	Tolerance  *int            `json:"safety_tolerance"`
	Draft      *bool           `json:"draft"`
}

func (s *api) parseCreate(x *fake.Exchange) *fake.Problem {
	q := new(create)
	if p := x.DecodeKnown(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, x.HTTP.PathValue("model"), q.Prompt
	if fake.UnknownModel(x.Model) {
		return refused("model", "unknown model")
	}
	return q.check()
}

// frames are the keyframes: one image, or a list of them.
func (q *create) frames() []string {
	var one string
	if json.Unmarshal(q.Keyframes, &one) == nil && one != "" {
		return []string{one}
	}
	var list []string
	_ = json.Unmarshal(q.Keyframes, &list) // another shape has none
	return list
}

func (q *create) seconds() int {
	n := 5
	_ = json.Unmarshal(q.Duration, &n) // "auto" is the usual length
	return n
}

func (q *create) check() *fake.Problem {
	const shortest, longest, most = 5, 20, 10
	frames := q.frames()
	switch {
	case q.Prompt == "":
		return refused("prompt", "Field required")
	case !slices.Contains([]string{"t2v", "i2v", "v2v"}, q.Mode):
		return refused("mode", "Input should be 't2v', 'i2v' or 'v2v'")
	case (q.Mode == "i2v") != (len(frames) > 0) || len(frames) > most:
		return refused("keyframes", "i2v has 1 to 10 keyframes")
	case (q.Mode == "v2v") != (q.StartVideo != ""):
		return refused("start_video", "v2v has a start_video")
	case !slices.Contains([]string{"", "hd", "fhd"}, q.Resolution):
		return refused("resolution", "Input should be 'hd' or 'fhd'")
	case q.seconds() < shortest || q.seconds() > longest:
		return refused("duration", "Input should be between 5 and 20")
	case !slices.Contains([]string{"", "auto", "21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"}, q.Aspect):
		return refused("aspect_ratio", "Input should be a ratio of the list")
	}
	for _, image := range frames {
		if m, ok := readMedia(image); !ok || !m.IsImage() {
			return refused("keyframes", "no image")
		}
	}
	return nil
}

// readMedia reads an address or Base64.
func readMedia(text string) (fake.Media, bool) {
	if m, ok := fake.ReadURL(text); ok {
		return m, true
	}
	return fake.ReadBase64(text)
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomID(32), Seconds: strconv.Itoa(q.seconds()), Size: q.Resolution}
	if frames := q.frames(); len(frames) > 0 {
		m, _ := readMedia(frames[0]) // checked before
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]any{
			"id": j.ID, "polling_url": "http://" + x.HTTP.Host + read + "?id=" + j.ID,
			"cost": q.seconds() * second,
		})
	}
}

func (s *api) parseRead(x *fake.Exchange) *fake.Problem {
	return s.ParseJob(x, x.HTTP.URL.Query().Get("id"))
}

func (s *api) answerRead(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	body := map[string]any{"id": j.ID, "result": nil, "details": nil}
	word := "Error"
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "Pending"
	case jobs.Running:
		word = "Generating"
	case jobs.Completed:
		word = "Ready"
		body["result"] = map[string]string{"sample": s.VideoLink(x, j, 0)}
	default:
		if j.FaultAs(now, "").Code != "" {
			word = "Content Moderated"
		}
	}
	body["status"] = j.Named(word)
	x.JSON(http.StatusOK, body)
}
