package fakerunway

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"modelrelay/dev/upstream/fake"
)

// create is the body of all routes; each model takes a part of it.
type create struct {
	Model          string          `json:"model"`
	PromptText     string          `json:"promptText"`
	PromptImage    json.RawMessage `json:"promptImage"`
	PromptVideo    string          `json:"promptVideo"`
	VideoURI       string          `json:"videoUri"`
	Mode           string          `json:"mode"`
	Ratio          string          `json:"ratio"`
	TargetRatio    string          `json:"targetAspectRatio"`
	Resolution     string          `json:"resolution"`
	Duration       any             `json:"duration"` // a number, or "auto"
	NegativePrompt string          `json:"negativePrompt"`
	Seed           *int64          `json:"seed"`
	Audio          *bool           `json:"audio"`
	References     []source        `json:"references"`
	more

	media   []fake.Media
	uploads *uploads
}

// more are members that the fake takes as they are.
type more struct {
	ReferenceVideos   json.RawMessage `json:"referenceVideos"`
	ReferenceAudio    json.RawMessage `json:"referenceAudio"`
	ContentModeration json.RawMessage `json:"contentModeration"`
	OutputFormat      json.RawMessage `json:"outputFormat"`
	PromptExpansion   json.RawMessage `json:"promptExpansionMode"`
	Keyframes         json.RawMessage `json:"keyframes"`
}

type source struct {
	URI      string `json:"uri"`
	Position string `json:"position"`
	Type     string `json:"type"`
}

// most of a prompt, in UTF-16 units, and of a data URI, in bytes.
const (
	maxPrompt    = 1000
	maxImageText = 5 << 20
	maxVideoText = 16 << 20
)

// rules are what one of the vendor's models takes on a route.
type rules struct {
	routes   []string
	ratios   []string   // nil: any pair of pixels or word
	seconds  [2]float64 // from, to; 0: any
	required []string
	fields   []string // other than model, promptText, ratio, duration, seed
	last     bool     // promptImage may have one at position last
}

// rulesOf is strict about the models whose fields are documented in full, and takes anything of the others, which come monthly.
func rulesOf(model, route string) (rules, bool) {
	pixels := []string{"1280:720", "720:1280", "1104:832", "960:960", "832:1104", "1584:672"}
	switch {
	case strings.HasPrefix(model, "gen4.5"):
		r := rules{
			routes: []string{"text_to_video", "image_to_video"}, ratios: pixels, seconds: [2]float64{2, 10},
			required: []string{"promptText", "ratio", "duration"}, fields: []string{"promptImage", "contentModeration", "outputFormat"},
		}
		if route == "text_to_video" {
			r.ratios = pixels[:2]
		}
		return r, true
	case strings.HasPrefix(model, "gen4_turbo"):
		return rules{
			routes: []string{"image_to_video"}, ratios: pixels, seconds: [2]float64{2, 10}, required: []string{"promptImage", "ratio"},
			fields: []string{"promptImage", "contentModeration"},
		}, true
	case strings.HasPrefix(model, "veo3.1"):
		return rules{
			routes: []string{"text_to_video", "image_to_video"}, ratios: []string{"1280:720", "720:1280", "1080:1920", "1920:1080"},
			seconds:  [2]float64{4, 8},
			required: []string{"ratio"}, fields: []string{"promptImage", "audio", "negativePrompt"}, last: true,
		}, true
	case strings.HasPrefix(model, "aleph2"):
		return rules{
			routes: []string{"video_to_video"}, required: []string{"videoUri"},
			fields: []string{"videoUri", "targetAspectRatio", "keyframes"},
		}, true
	}
	return rules{}, false
}

func (s *api) parseCreate(x *fake.Exchange, route string) *fake.Problem {
	q := &create{uploads: &s.uploads}
	p := x.DecodeKnown(q)
	x.Request, x.Model, x.Prompt = q, q.Model, q.PromptText
	switch {
	case p != nil:
		return p
	case q.Model == "":
		return fake.Invalidf("model", "Required")
	case fake.UnknownModel(q.Model):
		return fake.Invalidf("model", "Invalid discriminator value.")
	}
	if p := q.check(x, route); p != nil {
		return p
	}
	return q.readMedia(route)
}

func (q *create) check(x *fake.Exchange, route string) *fake.Problem {
	var given map[string]json.RawMessage
	if p := x.Decode(&given); p != nil {
		return p
	}
	r, strict := rulesOf(q.Model, route)
	if strict {
		if p := r.check(q, given, route); p != nil {
			return p
		}
	}
	seconds, number := q.Duration.(float64)
	switch _, _, pair := strings.Cut(q.Ratio, ":"); {
	case len(utf16.Encode([]rune(q.PromptText))) > maxPrompt && strict:
		return fake.Invalidf("promptText", "String must contain at most %d character(s)", maxPrompt)
	case q.Duration != nil && !number && (strict || q.Duration != "auto"):
		return fake.Invalidf("duration", "Expected number")
	case seconds < 0:
		return fake.Invalidf("duration", "Number must be greater than 0")
	case q.Ratio != "" && !pair && q.Ratio != "adaptive" && !strings.HasPrefix(q.Ratio, "auto_"):
		return fake.Invalidf("ratio", "Invalid enum value.")
	case q.Seed != nil && (*q.Seed < 0 || *q.Seed > 1<<32-1):
		return fake.Invalidf("seed", "Number must be less than or equal to 4294967295")
	}
	return nil
}

func (r *rules) check(q *create, given map[string]json.RawMessage, route string) *fake.Problem {
	if !slices.Contains(r.routes, route) {
		return fake.Invalidf("model", "Invalid discriminator value.")
	}
	for _, name := range r.required {
		if given[name] == nil {
			return fake.Invalidf(name, "Required")
		}
	}
	taken := append([]string{"model", "promptText", "seed"}, r.fields...)
	if r.seconds[1] > 0 {
		taken = append(taken, "ratio", "duration")
	}
	for name := range given {
		if !slices.Contains(taken, name) || name == "promptImage" && route == "text_to_video" {
			return fake.Invalidf(name, "Unrecognized key(s) in object: '%s'", name)
		}
	}
	if r.ratios != nil && q.Ratio != "" && !slices.Contains(r.ratios, q.Ratio) {
		return fake.Invalidf("ratio", "Invalid enum value. Expected '%s', received '%s'", strings.Join(r.ratios, "' | '"), q.Ratio)
	}
	if seconds, ok := q.Duration.(float64); ok && (seconds != math.Trunc(seconds) || seconds < r.seconds[0] || seconds > r.seconds[1]) {
		return fake.Invalidf("duration", "Number must be an integer from %v to %v", r.seconds[0], r.seconds[1])
	}
	if r.last || q.PromptImage == nil {
		return nil
	}
	images, _ := q.images()
	if slices.ContainsFunc(images, func(s source) bool { return s.Position != "first" && s.Position != "" }) || len(images) > 1 {
		return fake.Invalidf("promptImage", "Array must contain at most 1 element(s)")
	}
	return nil
}

// images reads promptImage, a text or a list.
func (q *create) images() ([]source, bool) {
	var one string
	if q.PromptImage == nil {
		return nil, true
	}
	if json.Unmarshal(q.PromptImage, &one) == nil {
		return []source{{URI: one, Position: "first"}}, true
	}
	var list []source
	return list, json.Unmarshal(q.PromptImage, &list) == nil && len(list) > 0
}

// readMedia reads all inputs, as the vendor fetches them before it takes the task.
func (q *create) readMedia(route string) *fake.Problem {
	images, ok := q.images()
	switch {
	case !ok:
		return fake.Invalidf("promptImage", "Invalid input")
	case route == "image_to_video" && len(images) == 0:
		return fake.Invalidf("promptImage", "Required")
	case route == "text_to_video" && q.PromptText == "":
		return fake.Invalidf("promptText", "Required")
	case route == "video_to_video" && q.PromptVideo == "" && q.VideoURI == "":
		return fake.Invalidf("videoUri", "Required")
	}
	positions := map[string]int{}
	for i, image := range images {
		positions[image.Position]++
		if image.Position != "" && image.Position != "first" && image.Position != "last" || image.Position != "" &&
			positions[image.Position] > 1 {
			return fake.Invalidf("promptImage."+strconv.Itoa(i)+".position", "Invalid enum value.")
		}
		if p := q.read("promptImage."+strconv.Itoa(i)+".uri", image.URI, maxImageText, true); p != nil {
			return p
		}
	}
	for i, image := range q.References {
		if p := q.read("references."+strconv.Itoa(i)+".uri", image.URI, maxImageText, true); p != nil {
			return p
		}
	}
	for name, uri := range map[string]string{"promptVideo": q.PromptVideo, "videoUri": q.VideoURI} {
		if uri != "" {
			if p := q.read(name, uri, maxVideoText, false); p != nil {
				return p
			}
		}
	}
	return nil
}

func (q *create) read(name, uri string, most int, image bool) *fake.Problem {
	m, ok := fake.ReadURL(uri)
	if strings.HasPrefix(uri, uploadScheme) {
		m, ok = q.uploads.find(uri)
	}
	switch {
	case len(uri) > most:
		return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Param: name, Message: "The data URI is too large."}
	case !ok || image && !m.IsImage():
		return fake.Invalidf(name, "Invalid asset.")
	}
	q.media = append(q.media, m)
	return nil
}
