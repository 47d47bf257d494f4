package fakeark

import (
	"slices"
	"strings"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

// item is one of a create's contents, with the payload of its type alone.
type item struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL *place `json:"image_url"`
	VideoURL *place `json:"video_url"`
	AudioURL *place `json:"audio_url"`
	Draft    *draft `json:"draft_task"`
	Role     string `json:"role"`
}

type place struct {
	URL string `json:"url"`
}

type draft struct {
	ID string `json:"id"`
}

type create struct {
	Model            string `json:"model"`
	Content          []item `json:"content"`
	Resolution       string `json:"resolution"`
	Ratio            string `json:"ratio"`
	Duration         *int   `json:"duration"`
	Frames           *int   `json:"frames"`
	Seed             *int64 `json:"seed"`
	GenerateAudio    *bool  `json:"generate_audio"`
	SafetyIdentifier string `json:"safety_identifier"`
	TaskType         string `json:"omni_reference_task_type"`
	more

	media []fake.Media
	roles map[string]int
}

// more are members that the fake takes as they are.
type more struct {
	Watermark    *bool  `json:"watermark"`
	CameraFixed  *bool  `json:"camera_fixed"`
	LastFrame    *bool  `json:"return_last_frame"`
	Draft        *bool  `json:"draft"`
	ServiceTier  string `json:"service_tier"`
	ExpiresAfter *int   `json:"execution_expires_after"`
	Priority     *int   `json:"priority"`
	Tools        []any  `json:"tools"`
	CallbackURL  string `json:"callback_url"`
	OutputFormat string `json:"output_format"`
}

// The vendor's limits.
const (
	maxIdentifier = 64
	defaultLength = 5
	ownLength     = -1 // a length that the model chooses
)

// family is what models of one generation take.
type family struct {
	from, to    int
	resolutions []string
	references  bool
	audio       bool // generate_audio is known
	seed        bool
	frames      int // images with a role of a frame
	adaptive    bool
}

// familyOf returns the family of a model by its name without the site's prefix. An endpoint accepts every field.
func familyOf(model string) (family, bool) {
	all := []string{"480p", "720p", "1080p", "4k"}
	model = strings.TrimPrefix(strings.TrimPrefix(model, "doubao-"), "dreamina-")
	switch {
	case strings.HasPrefix(model, "seedance-2-5-flash"):
		return family{4, 30, all[:2], true, true, false, 2, true}, true
	case strings.HasPrefix(model, "seedance-2-5"):
		return family{4, 30, all, true, true, false, 2, true}, true
	case strings.HasPrefix(model, "seedance-2-0-fast"), strings.HasPrefix(model, "seedance-2-0-mini"):
		return family{4, 15, all[:2], true, true, false, 2, false}, true
	case strings.HasPrefix(model, "seedance-2-0"):
		return family{4, 15, all, true, true, false, 2, false}, true
	case strings.HasPrefix(model, "seedance-1-5-pro"):
		return family{4, 12, all[:3], false, true, true, 2, false}, true
	case strings.HasPrefix(model, "seedance-1-0-pro-fast"):
		return family{2, 12, all[:3], false, false, true, 1, false}, true
	case strings.HasPrefix(model, "seedance-1-0-pro"):
		return family{2, 12, all[:3], false, false, true, 2, false}, true
	}
	return family{}, false
}

func (q *create) seconds() int {
	if q.Duration == nil || *q.Duration == ownLength {
		return defaultLength
	}
	return *q.Duration
}

func parseCreate(x *fake.Exchange) *fake.Problem {
	q := &create{roles: map[string]int{}}
	p := x.DecodeKnown(q)
	x.Request, x.Model = q, q.Model
	for _, one := range q.Content {
		if one.Type == "text" {
			x.Prompt += one.Text
		}
	}
	if p != nil {
		if p.Param != "" {
			p.Code = "InvalidParameter.UnsupportedParameter"
		}
		return p
	}
	if fake.UnknownModel(q.Model) {
		return &fake.Problem{
			Status: 404, Kind: fake.NotFound, Code: "InvalidEndpointOrModel.NotFound",
			Message: "The model or endpoint " + q.Model + " does not exist or you do not have access to it.",
		}
	}
	if q.Model == "" || len(q.Content) == 0 {
		return &fake.Problem{Status: 400, Kind: fake.Invalid, Code: "MissingParameter", Message: "The request is missing model or content."}
	}
	for _, one := range q.Content {
		if p := q.read(one); p != nil {
			return p
		}
	}
	if p := q.checkModes(); p != nil {
		return p
	}
	if f, ok := familyOf(q.Model); ok {
		return q.checkFamily(f)
	}
	return nil
}

// read reads one of the contents and counts its role.
func (q *create) read(one item) *fake.Problem {
	payloads := map[string]bool{
		"text": one.Text != "", "image_url": one.ImageURL != nil, "video_url": one.VideoURL != nil, "audio_url": one.AudioURL != nil,
		"draft_task": one.Draft != nil,
	}
	for name, there := range payloads {
		if there != (name == one.Type) {
			return fake.Invalidf("content", "An item of type %q has that payload alone.", one.Type)
		}
	}
	role := one.Role
	var at *place
	var roles []string
	switch one.Type {
	case "image_url":
		at, roles = one.ImageURL, []string{"first_frame", "last_frame", "reference_image"}
		if role == "" {
			role = "first_frame"
		}
	case "video_url":
		at, roles = one.VideoURL, []string{"reference_video"}
	case "audio_url":
		at, roles = one.AudioURL, []string{"reference_audio"}
	case "text":
		return nil
	case "draft_task":
		q.roles["draft"]++
		return nil
	default:
		return fake.Invalidf("content.type", "The type %q is not known.", one.Type)
	}
	if !slices.Contains(roles, role) {
		return fake.Invalidf("content.role", "The role %q does not go with the type %q.", role, one.Type)
	}
	q.roles[role]++
	if strings.HasPrefix(at.URL, "asset://") {
		return nil
	}
	m, ok := fake.ReadURL(at.URL)
	switch {
	case !ok, one.Type == "video_url" && m.URL == "", one.Type == "image_url" && !m.IsImage():
		return &fake.Problem{Status: 400, Kind: fake.Invalid, Code: "InvalidParameter", Param: one.Type, Message: "The media is not valid."}
	case m.URL == "" && m.Type != strings.ToLower(m.Type):
		return &fake.Problem{
			Status: 400, Kind: fake.Invalid, Code: "InvalidImageURL.Format", Param: one.Type,
			Message: "The type of a data URI is in lower case.",
		}
	}
	q.media = append(q.media, m)
	return nil
}

// checkModes refuses roles that exclude one another.
func (q *create) checkModes() *fake.Problem {
	frames := q.roles["first_frame"] + q.roles["last_frame"]
	references := q.roles["reference_image"] + q.roles["reference_video"] + q.roles["reference_audio"]
	constraint := func(message string) *fake.Problem {
		return &fake.Problem{Status: 400, Kind: fake.Invalid, Code: "InvalidParameter.TaskTypeConstraint", Param: "content", Message: message}
	}
	switch {
	case q.roles["first_frame"] > 1 || q.roles["last_frame"] > 1:
		return constraint("Two images need the roles first_frame and last_frame.")
	case q.roles["last_frame"] > q.roles["first_frame"]:
		return constraint("last_frame needs first_frame.")
	case frames > 0 && references > 0:
		return constraint("Frames and references exclude one another.")
	case q.roles["draft"] > 0 && len(q.Content) > 1:
		return constraint("draft_task stands alone.")
	case len(q.SafetyIdentifier) > maxIdentifier:
		return fake.Invalidf("safety_identifier", "The identifier has at most %d characters.", maxIdentifier)
	}
	return nil
}

func (q *create) checkFamily(f family) *fake.Problem {
	frames := q.roles["first_frame"] + q.roles["last_frame"]
	references := q.roles["reference_image"] + q.roles["reference_video"] + q.roles["reference_audio"]
	unsupported := func(name string) *fake.Problem {
		return &fake.Problem{
			Status: 400, Kind: fake.Invalid, Code: "InvalidParameter.UnsupportedParameter", Param: name,
			Message: "The parameter " + name + " is not supported by the model.",
		}
	}
	switch {
	case references > 0 && !f.references:
		return unsupported("content.role")
	case frames > f.frames:
		return unsupported("content.role")
	case q.Seed != nil && !f.seed:
		return unsupported("seed")
	case q.Frames != nil && !strings.Contains(q.Model, "seedance-1-0"):
		return unsupported("frames")
	case q.GenerateAudio != nil && !f.audio:
		return unsupported("generate_audio")
	case q.TaskType != "" && !strings.Contains(q.Model, "seedance-2-5"):
		return unsupported("omni_reference_task_type")
	case q.Duration != nil && *q.Duration != ownLength && (*q.Duration < f.from || *q.Duration > f.to):
		return fake.Invalidf("duration", "The duration must be from %d to %d.", f.from, f.to)
	case q.Resolution != "" && !slices.Contains(f.resolutions, q.Resolution):
		return fake.Invalidf("resolution", "The resolution %q is not supported by the model.", q.Resolution)
	case q.Ratio != "" && !slices.Contains([]string{"16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"}, q.Ratio):
		return fake.Invalidf("ratio", "The ratio %q is not supported.", q.Ratio)
	}
	return nil
}

// late is what the vendor says of a task only when it takes it from the queue.
func (q *create) late() *jobs.Fault {
	f, _ := familyOf(q.Model)
	if f.adaptive && q.roles["first_frame"] > 0 && q.Ratio != "" && q.Ratio != "adaptive" {
		return &jobs.Fault{Code: "InvalidParameter.TaskTypeConstraint", Message: "With frames the ratio must be adaptive."}
	}
	return nil
}
