// Package fakewan fakes the video jobs of Alibaba Cloud's Model Studio. Shapes and codes: alibabacloud.com/help/en/model-studio
// (wan3-video-generation-api-reference, text-to-video-api-reference, image-to-video-general-api-reference,
// manage-asynchronous-tasks, error-code).
//
// Below /wan/api/v1/: services/aigc/{video-generation,image2video}/video-synthesis, tasks/{id}[/cancel].
package fakewan

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const (
	name = "wan"
	root = "/wan/api/v1"
)

type api struct{ *fake.Server }

// Serve serves the API under /wan/api/v1. As there, unknown members of "input" are ignored, an unknown job is a 200 that
// says UNKNOWN, and a link is signed for GET alone.
func Serve(server *fake.Server) {
	s := &api{server}
	v := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuse}
	s.ServeLinks(name, &fake.Links{Life: 24 * time.Hour, FromEnd: true, NoHead: true})
	for _, path := range []string{"/services/aigc/video-generation/video-synthesis", "/services/aigc/image2video/video-synthesis"} {
		framed := strings.Contains(path, "image2video")
		s.Handle("POST "+root+path, fake.Operation{
			Vendor: v, Name: "video.create",
			Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, framed) }, Answer: s.answerCreate,
		})
	}
	s.Handle("GET "+root+"/tasks/{id}", fake.Operation{Vendor: v, Name: "video.get", Parse: s.parseTask, Answer: s.answerTask})
	s.Handle("POST "+root+"/tasks/{id}/cancel", fake.Operation{Vendor: v, Name: "video.cancel", Parse: s.parseTask, Answer: s.answerCancel})
}

func refuse(x *fake.Exchange, p fake.Problem) {
	code := p.Code
	if code == "" || code == "invalid_api_key" || code == "invalid_type" {
		code = fake.ByStatus[string]{
			http.StatusUnauthorized: "InvalidApiKey", http.StatusForbidden: "AccessDenied", http.StatusTooManyRequests: "Throttling.RateQuota",
			http.StatusInternalServerError: "InternalError", 0: "InvalidParameter",
		}.Of(p.Status)
	}
	x.JSON(p.Status, map[string]string{"code": code, "message": p.Message, "request_id": fake.RandomID(32)})
}

func invalid(message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "InvalidParameter", Message: message}
}

// media is an element of "input.media".
type media struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type create struct {
	Model string `json:"model"`
	Input struct {
		Prompt     string   `json:"prompt"`
		Media      []media  `json:"media"`
		Image      string   `json:"img_url"`
		First      string   `json:"first_frame_url"`
		Last       string   `json:"last_frame_url"`
		References []string `json:"reference_urls"`
	} `json:"input"`
	Parameters struct {
		Duration   *int   `json:"duration"`
		Resolution string `json:"resolution"`
		Size       string `json:"size"`
		Ratio      string `json:"ratio"`
		Seed       *int64 `json:"seed"`
	} `json:"parameters"`
}

func parseCreate(x *fake.Exchange, framed bool) *fake.Problem {
	q := new(create)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Input.Prompt
	switch {
	case x.HTTP.Header.Get("X-DashScope-Async") != "enable":
		return &fake.Problem{
			Status: http.StatusForbidden, Kind: fake.Forbidden, Code: "AccessDenied",
			Message: "current user api does not support synchronous calls.",
		}
	case q.Model == "" || fake.UnknownModel(q.Model):
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Code: "ModelNotFound", Message: "Model not exist."}
	case framed != strings.Contains(q.Model, "kf2v"):
		return invalid("url error, please check url!")
	}
	if p := q.checkInput(framed); p != nil {
		return p
	}
	return q.checkParameters()
}

// is reports whether the model's name begins with one of these and holds the kind.
func (q *create) is(kind string, families ...string) bool {
	return strings.Contains(q.Model, kind) && slices.ContainsFunc(families,
		func(family string) bool { return strings.HasPrefix(q.Model, family) })
}

// sized: the model takes "size" and not "resolution".
func (q *create) sized() bool {
	return q.is("-t2v", "wan2.5", "wan2.6") || q.is("-r2v", "wan2.6")
}

// imaged: the model takes its image as "img_url".
func (q *create) imaged() bool { return q.is("-i2v", "wan2.5", "wan2.6") }

func (q *create) checkInput(framed bool) *fake.Problem {
	types := make(map[string]int)
	for _, one := range q.Input.Media {
		types[one.Type]++
		if !slices.Contains([]string{
			"first_frame", "last_frame", "first_clip", "driving_audio", "reference_image", "reference_video", "reference_audio", "video", "file",
			"link",
		}, one.Type) {
			return invalid("media type is invalid")
		}
		if m, ok := fake.ReadURL(one.URL); !ok || m.URL == "" && !strings.HasSuffix(one.Type, "_frame") && one.Type != "reference_image" {
			return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "InvalidURL", Message: "The media cannot be read."}
		}
	}
	images, references := types["first_frame"]+types["last_frame"], types["reference_image"]+types["reference_video"]+types["reference_audio"]
	switch {
	case types["first_frame"] > 1, types["last_frame"] > 1, types["reference_image"] > 10, types["reference_video"] > 5,
		types["reference_audio"] > 5:
		return invalid("too many media")
	case framed && (q.Input.First == "" || q.Input.Last == ""):
		return invalid("first_frame_url and last_frame_url are required")
	case q.is("", "wan3.0") && images > 0 && references > 0:
		return invalid("frames and references exclude each other")
	case q.is("", "wan3.0") && types["last_frame"] > types["first_frame"]:
		return invalid("last_frame needs first_frame")
	case q.imaged() && q.Input.Image == "", q.is("-i2v", "wan2.7") && images+types["first_clip"] == 0, q.is("-i2v", "happyhorse") &&
		types["first_frame"] == 0:
		return invalid("an image must be provided")
	case q.is("-t2v", "wan2", "happyhorse") && (len(q.Input.Media) > 0 || q.Input.Image != ""):
		return invalid("this model takes no image")
	case q.Input.Prompt == "" && (q.is("-t2v", "wan2", "happyhorse") || len(q.Input.Media)+len(q.Input.References) == 0 &&
		q.Input.Image == "" && !framed):
		return invalid("prompt is required")
	}
	return nil
}

func (q *create) checkParameters() *fake.Problem {
	set := q.Parameters
	shortest, longest := 2, 15
	if q.is("", "wan3.0") {
		longest = 30
	} else if q.is("", "happyhorse") {
		shortest = 3
	}
	const largestSeed = 1<<31 - 1
	switch {
	case set.Duration != nil && (*set.Duration < shortest || *set.Duration > longest) && !strings.Contains(q.Model, "videoedit"):
		return invalid("duration is out of range")
	case set.Duration != nil && strings.HasPrefix(q.Model, "wan2.5") && *set.Duration != 5 && *set.Duration != 10:
		return invalid("duration is 5 or 10")
	case q.sized() && set.Resolution != "", !q.sized() && set.Size != "":
		return invalid("this model takes no such size")
	case set.Resolution != "" && !slices.Contains([]string{"480P", "720P", "1080P"}, set.Resolution):
		return invalid("resolution is invalid")
	case set.Size != "" && !sizeKnown(set.Size):
		return invalid("size is invalid")
	case set.Ratio != "" && !slices.Contains([]string{"adaptive", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"}, set.Ratio):
		return invalid("ratio is invalid")
	case set.Ratio != "" && q.is("-i2v", "wan2.7", "happyhorse"):
		return invalid("ratio is not supported")
	case set.Seed != nil && (*set.Seed < -1 || *set.Seed > largestSeed):
		return invalid("seed is out of range")
	}
	return nil
}

func sizeKnown(size string) bool {
	return slices.Contains([]string{
		"1280*720", "720*1280", "960*960", "1088*832", "832*1088", "1920*1080", "1080*1920", "1440*1440", "1632*1248", "1248*1632",
		"832*480", "480*832", "624*624",
	}, size)
}

// output is what an answer says of a job.
type output struct {
	ID      string `json:"task_id"`
	Status  string `json:"task_status"`
	Submit  string `json:"submit_time,omitempty"`
	End     string `json:"end_time,omitempty"`
	URL     string `json:"video_url,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

func answer(x *fake.Exchange, out output, usage any) {
	body := map[string]any{"output": out, "request_id": fake.RandomID(32)}
	if usage != nil {
		body["usage"] = usage
	}
	x.JSON(http.StatusOK, body)
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{ID: fake.RandomID(32), Seconds: "5", Size: q.Parameters.Size + q.Parameters.Resolution}
	if q.Parameters.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Parameters.Duration)
	}
	inputs := []string{q.Input.Image, q.Input.First}
	for _, one := range q.Input.Media {
		inputs = append(inputs, one.URL)
	}
	for _, text := range inputs {
		if m, ok := fake.ReadURL(text); ok {
			m.Describe(&spec)
			break
		}
	}
	if j := s.Submit(x, spec); j != nil {
		answer(x, output{ID: j.ID, Status: "PENDING"}, nil)
	}
}

// parseTask finds a job: an unknown one is no refusal.
func (s *api) parseTask(x *fake.Exchange) *fake.Problem {
	if x.Job = s.Jobs.Find(name, x.HTTP.PathValue("id")); x.Job != nil {
		x.Model, x.Prompt = x.Job.Model, x.Job.Prompt
	}
	return nil
}

// moment writes a time of day in Beijing.
func moment(milliseconds int64) string {
	const eastOfGreenwich = 8 * 60 * 60
	return time.UnixMilli(milliseconds).In(time.FixedZone("Beijing", eastOfGreenwich)).Format("2006-01-02 15:04:05.000")
}

func (s *api) answerTask(x *fake.Exchange) {
	unknown := output{ID: x.HTTP.PathValue("id"), Status: "UNKNOWN"}
	if x.Job == nil {
		x.Accept()
		answer(x, unknown, nil)
		return
	}
	s.Jobs.Polled(x.Job.ID)
	j, err := s.Look(x)
	if err != nil {
		refuse(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	x.Accept()
	if j.Forgotten {
		answer(x, unknown, nil)
		return
	}
	now := time.Now()
	out := output{ID: j.ID, Status: "FAILED", Submit: moment(j.Created)}
	if ended := j.Ended(now); ended != nil {
		out.End = moment(*ended * 1000)
	}
	var usage any
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		out.Status = "PENDING"
	case jobs.Running:
		out.Status = "RUNNING"
	case jobs.Completed:
		out.Status, out.URL = "SUCCEEDED", s.VideoLink(x, j, 0)
		seconds, _ := strconv.Atoi(j.Seconds) // made here
		usage = map[string]any{"duration": seconds, "size": j.Size, "video_count": 1}
	case jobs.Canceled:
		out.Status = "CANCELED"
	default:
		if f := j.Fault(now); f != nil {
			out.Code, out.Message = f.Code, f.Message
			if f.Code == jobs.DefaultFault().Code {
				out.Code = "InternalError"
			}
		}
	}
	out.Status = j.Named(out.Status)
	answer(x, out, usage)
}

// answerCancel stops a job that waits, and no other.
func (s *api) answerCancel(x *fake.Exchange) {
	if x.Job != nil {
		if state, _ := x.Job.At(time.Now()); state == jobs.Queued {
			if s.Cancel(x, nil) != nil {
				x.JSON(http.StatusOK, map[string]string{"request_id": fake.RandomID(32)})
			}
			return
		}
	}
	refuse(x, fake.Problem{
		Status: http.StatusBadRequest, Code: "UnsupportedOperation",
		Message: "Failed to cancel the task, please confirm if the task is in PENDING status.",
	})
}
