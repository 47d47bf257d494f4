package fakehailuo

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

// baseResp is in every answer of the first API.
type baseResp struct {
	Code    int    `json:"status_code"`
	Message string `json:"status_msg"`
}

func fine() baseResp { return baseResp{0, "success"} }

// refuseFirst answers with a 200 where the vendor knows what is wrong.
func refuseFirst(x *fake.Exchange, p fake.Problem) {
	status := http.StatusOK
	if p.Status >= http.StatusInternalServerError {
		status = p.Status
	}
	x.JSON(status, map[string]any{"task_id": "", "status": "", "base_resp": baseResp{codeOf(p), p.Message}})
}

type firstCreate struct {
	Model      string  `json:"model"`
	Prompt     string  `json:"prompt"`
	First      string  `json:"first_frame_image"`
	Last       string  `json:"last_frame_image"`
	Duration   *int    `json:"duration"`
	Resolution *string `json:"resolution"`
	Callback   string  `json:"callback_url"`
	Subjects   []struct {
		Type  string   `json:"type"`
		Image []string `json:"image"`
	} `json:"subject_reference"`
}

func parseFirst(x *fake.Exchange) *fake.Problem {
	q := new(firstCreate)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if q.Model == "" || fake.UnknownModel(q.Model) || isSecond(q.Model) {
		return invalid("model")
	}
	return q.check()
}

func (q *firstCreate) check() *fake.Problem {
	const longestPrompt = 2000
	known := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(q.Model, prefix) })
	}
	switch {
	case utf8.RuneCountInString(q.Prompt) > longestPrompt:
		return invalid("prompt is too long")
	case q.Callback != "":
		return invalid("callback_url does not answer the challenge")
	case q.First != "" && !isMedia(q.First), q.Last != "" && !isMedia(q.Last):
		return invalid("image")
	case q.Prompt == "" && q.First == "" && len(q.Subjects) == 0:
		return invalid("prompt is required")
	case known("T2V-01") && q.First != "", q.Last != "" && !known("MiniMax-Hailuo-02"):
		return invalid("this model takes no such image")
	case known("I2V-01", "MiniMax-Hailuo-2.3-Fast") && q.First == "":
		return invalid("first_frame_image is required")
	case known("S2V-01") != (len(q.Subjects) > 0):
		return invalid("subject_reference")
	case len(q.Subjects) > 0 && (len(q.Subjects) != 1 || q.Subjects[0].Type != "character" || len(q.Subjects[0].Image) != 1 ||
		!isMedia(q.Subjects[0].Image[0])):
		return invalid("subject_reference")
	case known("T2V-01", "I2V-01", "S2V-01"):
		if q.Duration != nil || q.Resolution != nil {
			return invalid("this model takes neither duration nor resolution")
		}
		return nil
	}
	return q.checkFrame()
}

// checkFrame checks length and size.
func (q *firstCreate) checkFrame() *fake.Problem {
	seconds, resolution := 6, "768P"
	if q.Duration != nil {
		seconds = *q.Duration
	}
	if q.Resolution != nil {
		resolution = *q.Resolution
	}
	low := resolution == "512P" && strings.HasPrefix(q.Model, "MiniMax-Hailuo-02") && q.First != "" && q.Last == ""
	switch {
	case seconds != 6 && seconds != 10:
		return invalid("duration")
	case !low && resolution != "768P" && resolution != "1080P":
		return invalid("resolution")
	case resolution == "1080P" && seconds == 10:
		return invalid("1080P takes 6 seconds")
	}
	return nil
}

func (s *api) answerFirst(x *fake.Exchange) {
	q := fake.RequestOf[firstCreate](x)
	spec := jobs.Job{ID: fake.RandomNumber(15), Seconds: "6", Width: 1366, Height: 768}
	if q.Duration != nil {
		spec.Seconds = strconv.Itoa(*q.Duration)
	}
	if q.Resolution != nil {
		spec.Size = *q.Resolution
	}
	describe(&spec, q.First)
	if len(q.Subjects) > 0 {
		describe(&spec, q.Subjects[0].Image[0])
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]any{"task_id": j.ID, "base_resp": fine()})
	}
}

// find finds a job of the first API, or of the second.
func (s *api) find(x *fake.Exchange, id string, second bool) *fake.Problem {
	if p := s.ParseJob(x, id); p != nil || isSecond(x.Job.Model) != second {
		x.Job = nil
		return unknownTask()
	}
	return nil
}

func (s *api) parseFirstQuery(x *fake.Exchange) *fake.Problem {
	return s.find(x, x.HTTP.URL.Query().Get("task_id"), false)
}

func (s *api) answerFirstQuery(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	answer := map[string]any{"task_id": j.ID, "file_id": "", "base_resp": fine()}
	word := "Fail"
	now := time.Now()
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "Queueing"
	case jobs.Running:
		word = "Processing"
	case jobs.Completed:
		word = "Success"
		answer["file_id"], answer["video_width"], answer["video_height"] = j.ID, j.Width, j.Height
	default:
		if f := j.Fault(now); f != nil {
			code, err := strconv.Atoi(f.Code)
			if err != nil {
				code = 1000
			}
			answer["base_resp"] = baseResp{code, f.Message}
		}
	}
	answer["status"] = j.Named(word)
	x.JSON(http.StatusOK, answer)
}

// parseFile finds the job of a file, whose id is the job's.
func (s *api) parseFile(x *fake.Exchange) *fake.Problem {
	return s.find(x, x.HTTP.URL.Query().Get("file_id"), false)
}

// answerFile names the link; a file's id is a number here.
func (s *api) answerFile(x *fake.Exchange) {
	j, err := s.Look(x)
	if err != nil {
		refuseFirst(x, fake.Problem{Status: http.StatusInternalServerError, Message: err.Error()})
		return
	}
	if state, _ := j.At(time.Now()); state != jobs.Completed || j.Forgotten {
		refuseFirst(x, *invalid("file_id"))
		return
	}
	x.Accept()
	id, _ := strconv.ParseUint(j.ID, 10, 64) // made here
	link := s.VideoLink(x, j, 0)
	x.JSON(http.StatusOK, map[string]any{"file": map[string]any{
		"file_id": id, "bytes": j.Bytes, "created_at": j.Created / 1000, "filename": "output_aigc.mp4", "purpose": "video_generation",
		"download_url": link, "backup_download_url": link,
	}, "base_resp": fine()})
}
