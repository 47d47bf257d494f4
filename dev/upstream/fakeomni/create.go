package fakeomni

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
	"modelrelay/dev/upstream/jobs"
)

// create is the body of a create.
type create struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Background bool            `json:"background"`
	Store      *bool           `json:"store"`
	Previous   string          `json:"previous_interaction_id"`
	Generation struct {
		Video struct {
			Task string `json:"task"`
		} `json:"video_config"`
		Seed *int `json:"seed"`
	} `json:"generation_config"`
	Response json.RawMessage   `json:"response_format"`
	Labels   map[string]string `json:"labels"`
	Webhook  map[string]any    `json:"webhook_config"`

	format format
	parts  []part
	media  []fake.Media
}

// format is the video that is wanted.
type format struct {
	Type        string `json:"type"`
	AspectRatio string `json:"aspect_ratio"`
	Duration    string `json:"duration"`
	Resolution  string `json:"resolution"`
	Delivery    string `json:"delivery"`
}

// part is one of a create's inputs.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MimeType string `json:"mime_type"`
	Data     string `json:"data"`
	URI      string `json:"uri"`
}

// maxImages is how many images a video from references takes.
const maxImages = 10

func (s *api) parseCreate(x *fake.Exchange) *fake.Problem {
	q := new(create)
	p := googleapi.Unknown(x.DecodeKnown(q))
	x.Request, x.Model = q, q.Model
	if p != nil {
		return p
	}
	if p := q.readInput(); p != nil {
		return p
	}
	for _, one := range q.parts {
		if one.Type == "text" {
			x.Prompt += one.Text
		}
	}
	switch {
	case q.Model == "":
		return fake.Invalidf("", "model is required")
	case fake.UnknownModel(q.Model) || !strings.HasPrefix(q.Model, "gemini-omni-"):
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "models/" + q.Model + " is not found."}
	case q.Background && q.Store != nil && !*q.Store:
		return fake.Invalidf("", "background requires store.")
	case x.Prompt == "" && len(q.media) == 0:
		return fake.Invalidf("", "input is required")
	}
	if p := q.readFormat(); p != nil {
		return p
	}
	if p := q.checkTask(); p != nil {
		return p
	}
	return s.checkPrevious(q)
}

// readInput reads a text, or the list of parts.
func (q *create) readInput() *fake.Problem {
	var text string
	if json.Unmarshal(q.Input, &text) == nil {
		q.parts = []part{{Type: "text", Text: text}}
		return nil
	}
	if json.Unmarshal(q.Input, &q.parts) != nil {
		return fake.Invalidf("", "Invalid value at 'input'.")
	}
	for i, one := range q.parts {
		at := "input[" + strconv.Itoa(i) + "]"
		switch one.Type {
		case "text":
			continue
		case "image", "video":
		default:
			return fake.Invalidf("", "Invalid value at '%s.type'.", at)
		}
		m, ok := fake.ReadBase64(one.Data)
		switch {
		case (one.Data == "") == (one.URI == ""):
			return fake.Invalidf("", "Exactly one of data and uri is needed at '%s'.", at)
		case one.URI != "":
			m.URL = one.URI
		case !ok || one.MimeType == "" || one.Type == "image" && !m.IsImage():
			return fake.Invalidf("", "Unable to process input %s at '%s'.", one.Type, at)
		}
		q.media = append(q.media, m)
	}
	return nil
}

// readFormat reads response_format, an object or a list of one.
func (q *create) readFormat() *fake.Problem {
	var list []json.RawMessage
	raw := q.Response
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		raw = list[0]
	}
	if raw == nil || json.Unmarshal(raw, &q.format) != nil || q.format.Type != "video" {
		return fake.Invalidf("", "Invalid value at 'response_format'.") // a number for the duration, or no video
	}
	var given map[string]json.RawMessage
	_ = json.Unmarshal(raw, &given) // was read just now
	for name := range given {
		if !slices.Contains([]string{"type", "aspect_ratio", "duration", "resolution", "delivery", "gcs_uri"}, name) {
			return fake.Invalidf("", "Invalid JSON payload received. Unknown name \"%s\" at 'response_format': Cannot find field.", name)
		}
	}
	longest := 10
	if strings.HasPrefix(q.Model, "gemini-omni-1.2") {
		longest = 15
	}
	const shortest = 3
	seconds, err := strconv.Atoi(strings.TrimSuffix(q.format.Duration, "s"))
	switch f := q.format; {
	case f.Duration != "" && (err != nil || !strings.HasSuffix(f.Duration, "s") || seconds < shortest || seconds > longest):
		return fake.Invalidf("", "duration must be from %ds to %ds.", shortest, longest)
	case f.AspectRatio != "" && f.AspectRatio != "16:9" && f.AspectRatio != "9:16":
		return fake.Invalidf("", "aspect_ratio must be 16:9 or 9:16.")
	case f.Resolution != "" && !slices.Contains([]string{"360p", "720p", "1080p", "4k"}, f.Resolution):
		return fake.Invalidf("", "Invalid value at 'response_format.resolution'.")
	case f.Delivery != "" && f.Delivery != "inline" && f.Delivery != "uri":
		return fake.Invalidf("", "Invalid value at 'response_format.delivery'.")
	}
	return nil
}

// checkTask refuses inputs that do not go with the task.
func (q *create) checkTask() *fake.Problem {
	images, videos := 0, 0
	for _, one := range q.parts {
		switch one.Type {
		case "image":
			images++
		case "video":
			videos++
		}
	}
	wrong := false
	switch q.Generation.Video.Task {
	case "":
	case "text_to_video":
		wrong = images+videos > 0
	case "image_to_video":
		wrong = images < 1 || images > 2 || videos > 0
	case "reference_to_video":
		wrong = images+videos < 1 || images > maxImages
	case "edit", "extend", "upscale":
		wrong = videos != 1 && q.Previous == ""
	default:
		return fake.Invalidf("", "Invalid value at 'generation_config.video_config.task'.")
	}
	if wrong {
		return fake.Invalidf("", "The inputs do not go with the task %s.", q.Generation.Video.Task)
	}
	return nil
}

func (s *api) checkPrevious(q *create) *fake.Problem {
	if q.Previous == "" {
		return nil
	}
	j := s.Jobs.Find("omni", q.Previous)
	if j == nil {
		return fake.Invalidf("", "Invalid previous interaction name.")
	}
	if state, _ := j.At(time.Now()); state != jobs.Completed {
		return fake.Invalidf("", "The previous interaction is not completed.")
	}
	return nil
}
