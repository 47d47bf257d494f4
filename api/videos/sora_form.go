package videos

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/workflows/tasks"
)

const maxFormParts = 64

// openAIVideoForm is the multipart body of a video create. It is never filled.
type openAIVideoForm struct {
	Model           string      `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	Prompt          string      `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Seconds         string      `json:"seconds,omitempty" doc:"Seconds to generate"`
	Size            string      `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	InputReference  body.File   `json:"input_reference,omitzero" doc:"Reference image file: PNG, JPEG or WebP, and other kinds where the model takes them, 32 MiB at most; several as input_reference[]"`
	ReferenceRoles  []string    `json:"input_reference_role[],omitempty" nullable:"false" doc:"The role of each, in their order: first_frame, last_frame or reference"`
	LastImage       body.File   `json:"last_image,omitzero" doc:"Image file that the video ends with, or its URL"`
	ReferenceImages []body.File `json:"reference_images[],omitempty" nullable:"false" doc:"Image files of what the video shows"`
	Video           body.File   `json:"video,omitzero" doc:"Video file to change or to continue, or its URL"`
	Audio           body.File   `json:"audio,omitzero" doc:"Sound file to use, or its URL"`
	NegativePrompt  string      `json:"negative_prompt,omitempty" doc:"What the video must not show"`
	AspectRatio     string      `json:"aspect_ratio,omitempty" doc:"Width to height, as in 16:9, in place of pixels"`
	Resolution      string      `json:"resolution,omitempty" doc:"A word such as 720p or 4k, in place of pixels"`
	GenerateAudio   string      `json:"generate_audio,omitempty" doc:"true or false"`
	WebhookURL      string      `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

type videoForm struct {
	req providers.VideoRequest
	// others are files of the common fields. Those of input_reference precede them, for input_reference_role.
	others providers.VideoRequest
	roles  []string // of the input_references
	// reference has the members of an input_reference in separate parts.
	reference map[string]string
	metadata  map[string]string
	// sources: the video may be the id of a task, which is stored in source.
	sources   bool
	source    string
	extra     []*formValue
	seen      map[string]bool
	extraSize int // bytes of extra
}

// formValue is an undocumented field. A repeated field, or one named "name[]", is an array.
type formValue struct {
	name  string
	texts []string
	array bool
}

func readSoraForm(x *edge.Request, r *http.Request, boundary string) (providers.VideoRequest, error) {
	return new(videoForm).read(x, r, boundary)
}

func (f *videoForm) read(x *edge.Request, r *http.Request, boundary string) (providers.VideoRequest, error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	parts, err := body.ParseForm(raw, boundary)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	if len(parts) > maxFormParts {
		return providers.VideoRequest{}, providers.InvalidField("", "The multipart body has too many parts.")
	}
	f.seen = make(map[string]bool)
	for _, part := range parts {
		if err := f.add(part); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	return f.request()
}

func (f *videoForm) add(part body.Part) error {
	name := part.Name
	field, member := splitName(name)
	role, takesFile := commonInputs()[field]
	takesFile = takesFile || field == "input_reference"
	switch {
	case part.Encoded:
		return providers.InvalidField(name, "Invalid request: '%s' must not be encoded.", name)
	case part.FileName != "" || part.Typed && takesFile:
		if !takesFile || member != "" {
			return providers.InvalidField(name, "Invalid request: '%s' must not be a file.", name)
		}
		base := part.FileName
		if base != "" {
			base = filepath.Base(base) // RFC 7578: ignore the path
		}
		input, err := newUpload(role, field, base, part.Content)
		if err != nil {
			return err
		}
		if field != "input_reference" {
			return addInput(&f.others, field, input)
		}
		return addInput(&f.req, field, input)
	case len(part.Content) > body.MaxPartText && !takesFile: // a data URL may be as long as a file
		return providers.InvalidField(name, "Invalid request: '%s' is too long.", name)
	case !utf8.Valid(part.Content):
		return providers.InvalidField(name, "Invalid request: '%s' is not valid UTF-8.", name)
	}
	return f.addText(name, field, member, string(part.Content))
}

// splitName splits "metadata[style]", and "metadata.style" in the syntax of openai-go. It does not split an array's "name[]".
func splitName(name string) (field, member string) {
	field, rest, found := strings.Cut(name, "[")
	if found {
		return field, strings.TrimSuffix(rest, "]")
	}
	field, member, _ = strings.Cut(name, ".")
	if field != "metadata" && field != "input_reference" && field != "video" {
		return name, ""
	}
	return field, member
}

func (f *videoForm) addText(name, field, member, text string) error {
	if member == "" && slices.Contains([]string{"model", "prompt", "size", "seconds", "metadata", "webhook_url"}, field) {
		if f.seen[field] {
			return providers.InvalidField(field, "Invalid request: '%s' is given more than once.", field)
		}
		f.seen[field] = true
	}
	role, takesFile := commonInputs()[field]
	var err error
	switch {
	case field == "metadata" && member != "":
		f.metadata = withMember(f.metadata, member, text)
	case field == "input_reference" && member != "":
		f.reference = withMember(f.reference, member, text)
	case f.sources && field == "video" && (member == "id" || tasks.IsTaskID(text)):
		f.source = text
	case takesFile:
		var input providers.Media
		if input, err = newMedia(role, field, []byte(text)); err == nil {
			err = addInput(&f.others, field, input)
		}
	case field == "input_reference_role":
		f.roles = append(f.roles, text)
	case name == "model":
		f.req.Model = text
	case name == "prompt":
		f.req.Prompt = text
	case name == "size":
		f.req.Size = text
		f.req.Width, f.req.Height = parseSize(text)
	case name == "seconds":
		f.req.Seconds, err = parseSeconds("seconds", text)
	case name == "metadata":
		f.req.Metadata, err = parseMetadata(text)
	case field == "input_reference":
		err = addTextReference(&f.req, text)
	case name == "webhook_url":
		f.req.WebhookURL = text
	default:
		err = f.addExtra(name, text)
	}
	return err
}

func (f *videoForm) addExtra(name, text string) error {
	if f.extraSize += len(name) + len(text); f.extraSize > maxExtra {
		return tooMuchExtra()
	}
	name, array := strings.CutSuffix(name, "[]")
	at := slices.IndexFunc(f.extra, func(other *formValue) bool { return other.name == name })
	if at < 0 {
		at = len(f.extra)
		f.extra = append(f.extra, &formValue{name: name})
	}
	value := f.extra[at]
	value.texts = append(value.texts, text)
	value.array = value.array || array || len(value.texts) > 1
	return nil
}

func withMember(members map[string]string, name, text string) map[string]string {
	if members == nil {
		members = make(map[string]string)
	}
	members[name] = text
	return members
}

// addTextReference reads an input_reference in a text part: a URL or a JSON object.
func addTextReference(req *providers.VideoRequest, text string) error {
	if raw := []byte(strings.TrimSpace(text)); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return addReferences(req, raw)
	}
	image, err := newImage("input_reference", []byte(text))
	if err != nil {
		return err
	}
	return addInput(req, "input_reference", image)
}

func parseMetadata(text string) (json.RawMessage, error) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil, providers.InvalidField("metadata", "Invalid request: 'metadata' must be a JSON object.")
	}
	return raw, checkNesting("metadata", raw)
}

func (f *videoForm) request() (providers.VideoRequest, error) {
	if f.reference != nil {
		image, err := referenceOf(func(name string) []byte { return []byte(f.reference[name]) })
		if err != nil {
			return providers.VideoRequest{}, err
		}
		if err := addInput(&f.req, "input_reference", image); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if f.roles != nil {
		raw, err := json.Marshal(f.roles)
		if err == nil {
			err = takeRoles(&f.req, raw)
		}
		if err != nil {
			return providers.VideoRequest{}, err
		}
	}
	for _, input := range f.others.Inputs {
		if err := addInput(&f.req, "input_reference", input); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if f.metadata != nil && f.req.Metadata == nil {
		raw, err := json.Marshal(f.metadata)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		f.req.Metadata = raw
	}
	var out []byte
	for _, field := range f.extra {
		var value any = field.texts
		if !field.array {
			value = field.texts[0]
		}
		text, err := json.Marshal(value)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		out = body.AppendMember(out, rawjson.Quote(field.name), text)
	}
	if out != nil {
		f.req.Extra = append(out, '}')
	}
	return f.req, nil
}
