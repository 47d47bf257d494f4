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

// videoForm is a multipart body: a JSON body with its texts, and its inputs.
type videoForm struct {
	fields []*formField
	// references are the inputs of input_reference, for input_reference_role. others are those of the common fields.
	references, others []providers.Media
}

// formField is a field with texts. A repeated field, or one named "name[]", is an array, and one with members an object.
type formField struct {
	name    string
	texts   []string
	array   bool
	members map[string]string
}

// readSora reads and checks the body of an operation: JSON, or a form with the same fields.
func readSora(x *edge.Request, r *http.Request, check *body.Checker) (b *body.JSON, form videoForm, err error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return nil, form, err
	}
	if boundary, isForm := body.IsForm(r.Header.Get("Content-Type")); isForm {
		if raw, err = form.read(raw, boundary, check); err != nil {
			return nil, form, err
		}
	}
	b, err = check.Check(raw)
	return b, form, err
}

// read returns the JSON body of a form.
func (f *videoForm) read(raw []byte, boundary string, check *body.Checker) ([]byte, error) {
	parts, err := body.ParseForm(raw, boundary)
	if err != nil {
		return nil, err
	}
	if len(parts) > maxFormParts {
		return nil, providers.InvalidField("", "The multipart body has too many parts.")
	}
	for _, part := range parts {
		if err := f.add(part, check); err != nil {
			return nil, err
		}
	}
	members := make([]rawjson.Edit, len(f.fields))
	for i, field := range f.fields {
		value, err := field.value()
		if err != nil {
			return nil, err
		}
		members[i] = body.Named(field.name, value)
	}
	return body.WithMembers(nil, members...), nil
}

func (f *videoForm) add(part body.Part, check *body.Checker) error {
	name := part.Name
	field, member := splitName(name)
	role, isInput := commonInputs()[field]
	isReference, inputs := field == "input_reference", &f.others
	if isReference {
		inputs = &f.references
	}
	switch {
	case part.Encoded:
		return providers.InvalidField(name, "Invalid request: '%s' must not be encoded.", name)
	case part.FileName != "" || part.Typed && (isInput || isReference):
		if !isInput && !isReference || member != "" {
			return providers.InvalidField(name, "Invalid request: '%s' must not be a file.", name)
		}
		base := part.FileName
		if base != "" {
			base = filepath.Base(base) // RFC 7578: ignore the path
		}
		input, err := newUpload(role, field, base, part.Content)
		*inputs = append(*inputs, input)
		return err
	case len(part.Content) > body.MaxPartText && !isInput && !isReference: // a data URL may be as long as a file
		return providers.InvalidField(name, "Invalid request: '%s' is too long.", name)
	case !utf8.Valid(part.Content):
		return providers.InvalidField(name, "Invalid request: '%s' is not valid UTF-8.", name)
	}
	text := string(part.Content)
	switch {
	case member != "" && (field == "metadata" || isReference), field == "video" && member == "id":
		f.field(field).setMember(member, text)
	case isReference:
		var own providers.VideoRequest
		err := addReferences(&own, objectOrText(text))
		*inputs = append(*inputs, own.Inputs...)
		return err
	case isInput && (field != "video" || !tasks.IsTaskID(text)):
		input, err := newMedia(role, field, part.Content)
		*inputs = append(*inputs, input)
		return err
	case field == "input_reference_role":
		f.field(field).addText(text, true)
	default:
		name, array := strings.CutSuffix(name, "[]")
		value := f.field(name)
		if check.Has(name) && value.texts != nil {
			return providers.InvalidField(name, "Invalid request: '%s' is given more than once.", name)
		}
		value.addText(text, array)
	}
	return nil
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

// field returns the field with the name.
func (f *videoForm) field(name string) *formField {
	at := slices.IndexFunc(f.fields, func(other *formField) bool { return other.name == name })
	if at < 0 {
		at = len(f.fields)
		f.fields = append(f.fields, &formField{name: name})
	}
	return f.fields[at]
}

func (f *formField) addText(text string, array bool) {
	f.texts = append(f.texts, text)
	f.array = f.array || array || len(f.texts) > 1
}

func (f *formField) setMember(name, text string) {
	if f.members == nil {
		f.members = make(map[string]string)
	}
	f.members[name] = text
}

// value returns the field in JSON.
func (f *formField) value() ([]byte, error) {
	switch {
	case f.texts == nil:
		return json.Marshal(f.members)
	case f.array:
		return json.Marshal(f.texts)
	case f.name == "metadata":
		return objectOrText(f.texts[0]), nil
	default:
		return rawjson.Quote(f.texts[0]), nil
	}
}

// objectOrText returns a text that is a JSON object as it is, and any other text as a JSON string.
func objectOrText(text string) rawjson.Value {
	if raw := rawjson.Trim([]byte(text)); raw.IsObject() && rawjson.Valid(raw) {
		return raw
	}
	return rawjson.Value(rawjson.Quote(text))
}
