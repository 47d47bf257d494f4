package fakehailuo

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

// refuseSecond answers with a status of its own, and the code at the end of the message.
func refuseSecond(x *fake.Exchange, p fake.Problem) {
	status := p.Status
	if status == http.StatusNotFound {
		status = http.StatusBadRequest
	}
	kind := fake.ByStatus[string]{
		http.StatusUnauthorized: "authorized_error", http.StatusPaymentRequired: "insufficient_balance_error",
		http.StatusUnprocessableEntity: "unprocessable_entity_error", http.StatusTooManyRequests: "rate_limit_error",
		http.StatusInternalServerError: "server_error", 0: "bad_request_error",
	}.Of(status)
	x.JSON(status, map[string]any{"type": "error", "request_id": fake.RandomID(32), "error": map[string]string{
		"type": kind, "message": fmt.Sprintf("%s (%d)", p.Message, codeOf(p)), "http_code": strconv.Itoa(status),
	}})
}

// link is the address within an item of content.
type link struct {
	URL string `json:"url"`
}

type item struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Image link   `json:"image_url"`
	Video link   `json:"video_url"`
	Audio link   `json:"audio_url"`
	Role  string `json:"role"`
}

type secondCreate struct {
	Model      string `json:"model"`
	Content    []item `json:"content"`
	Resolution string `json:"resolution"`
	Duration   int    `json:"duration"`
	Ratio      string `json:"ratio"`
	Callback   string `json:"callback_url"`
}

func parseSecond(x *fake.Exchange) *fake.Problem {
	q := new(secondCreate)
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model = q, q.Model
	for _, one := range q.Content {
		if one.Type == "text" {
			x.Prompt = one.Text
		}
	}
	if !isSecond(q.Model) {
		return invalid("model")
	}
	return q.check(x.Prompt)
}

func (q *secondCreate) check(prompt string) *fake.Problem {
	const longestPrompt, mostFiles = 7000, 12
	roles := make(map[string]int)
	for _, one := range q.Content {
		roles[one.Role]++
		if p := one.check(); p != nil {
			return p
		}
	}
	frames, references := roles["first_frame"]+roles["last_frame"], roles["reference_image"]+roles["reference_video"]+roles["reference_audio"]
	least, sizes := 4, []string{"768P", "2K"}
	if strings.HasPrefix(strings.ToLower(q.Model), "minimax-h3-max") {
		least, sizes = 5, []string{"480P", "768P"}
	}
	switch {
	case prompt == "" || roles[""] != 1 || utf8.RuneCountInString(prompt) > longestPrompt:
		return invalid("content: exactly one text")
	case roles["first_frame"] > 1, roles["last_frame"] > roles["first_frame"], frames > 0 && references > 0:
		return invalid("content: frames")
	case roles["reference_image"] > 9, roles["reference_video"] > 3, roles["reference_audio"] > 3, references > mostFiles:
		return invalid("content: too many references")
	case roles["reference_audio"] > 0 && roles["reference_image"]+roles["reference_video"] == 0:
		return invalid("content: audio alone")
	case !slices.Contains(sizes, q.Resolution):
		return invalid("resolution")
	case q.Duration < least || q.Duration > 15:
		return invalid("duration")
	case q.Ratio != "" && !slices.Contains([]string{"adaptive", "21:9", "16:9", "4:3", "1:1", "3:4", "9:16"}, q.Ratio):
		return invalid("ratio")
	case frames+references == 0 && (q.Ratio == "" || q.Ratio == "adaptive"):
		return invalid("ratio is required for text")
	case q.Callback != "":
		return invalid("callback_url does not answer the challenge")
	}
	return nil
}

func (one item) check() *fake.Problem {
	kinds := map[string]string{
		"": "text", "first_frame": "image_url", "last_frame": "image_url", "reference_image": "image_url", "reference_video": "video_url",
		"reference_audio": "audio_url",
	}
	if kind, known := kinds[one.Role]; !known || kind != one.Type {
		return invalid("content: role")
	}
	if one.Type != "text" && !isMedia(one.Image.URL+one.Video.URL+one.Audio.URL) {
		return invalid("content: url")
	}
	return nil
}

func (s *api) answerSecond(x *fake.Exchange) {
	q := fake.RequestOf[secondCreate](x)
	spec := jobs.Job{ID: fake.RandomNumber(15), Seconds: strconv.Itoa(q.Duration), Size: q.Resolution}
	for _, one := range q.Content {
		if one.Type == "image_url" {
			describe(&spec, one.Image.URL)
			break
		}
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]string{"task_id": j.ID})
	}
}

func (s *api) parseSecondQuery(x *fake.Exchange) *fake.Problem {
	return s.find(x, x.HTTP.PathValue("id"), true)
}

func (s *api) answerSecondQuery(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	task := map[string]any{
		"id": j.ID, "model": j.Model, "created_at": j.Created / 1000, "updated_at": now.Unix(), "resolution": j.Size, "task_type": "generation",
		"modality": "video",
	}
	word := "failed"
	switch state, _ := j.At(now); state {
	case jobs.Queued:
		word = "queued"
	case jobs.Running:
		word = "running"
	case jobs.Completed:
		word = "succeeded"
		seconds, _ := strconv.Atoi(j.Seconds) // made here
		task["content"], task["duration"] = link{s.VideoLink(x, j, 0)}, seconds
		task["usage"] = map[string]int{"total_seconds": seconds, "output_seconds": seconds}
		task["updated_at"] = *j.Ended(now)
	case jobs.Canceled:
		word = "cancelled"
	case jobs.Expired:
		word = "expired"
	default:
		if f := j.Fault(now); f != nil {
			task["error"] = f
		}
	}
	task["status"] = j.Named(word)
	x.JSON(http.StatusOK, map[string]any{"task": task})
}

// answerDelete cancels a queued job, and erases one that has ended.
func (s *api) answerDelete(x *fake.Exchange) {
	switch state, _ := x.Job.At(time.Now()); state {
	case jobs.Running, jobs.Canceled:
		refuseSecond(x, *invalid("the task cannot be deleted"))
	case jobs.Queued:
		if s.Cancel(x, nil) != nil {
			x.JSON(http.StatusOK, map[string]string{"action": "cancel"})
		}
	default:
		if s.Cancel(x, func(j *jobs.Job) { j.Deleted = true }) != nil {
			x.JSON(http.StatusOK, map[string]string{"action": "delete"})
		}
	}
}
