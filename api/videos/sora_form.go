package videos

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// maxFormParts bounds the parts of a create.
const maxFormParts = 64

// openAIVideoForm is the multipart body of a video create. It is never filled.
type openAIVideoForm struct {
	Model          string    `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	Prompt         string    `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Seconds        string    `json:"seconds,omitempty" doc:"Seconds to generate"`
	Size           string    `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	InputReference body.File `json:"input_reference,omitzero" doc:"Reference image file: PNG, JPEG or WebP, 32 MiB at most"`
	WebhookURL     string    `json:"webhook_url,omitempty" doc:"Where the task's end is told; needs a token with a webhook secret"`
}

// videoForm collects the parts of a multipart create.
type videoForm struct {
	req providers.VideoRequest
	// reference are the members of an input_reference that came in parts of its own.
	reference map[string]string
	metadata  map[string]string
	extra     map[string]*formValue
	order     []string // of extra
	seen      map[string]bool
	extraSize int // bytes of extra
}

// formValue is a field the contract does not name. One that is repeated, or named "name[]", is an array.
type formValue struct {
	texts []string
	array bool
}

// readSoraForm reads a multipart create. Its images are parts of the body.
func readSoraForm(x *edge.Request, r *http.Request, boundary string) (providers.VideoRequest, error) {
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
	form := videoForm{seen: make(map[string]bool), extra: make(map[string]*formValue)}
	for _, part := range parts {
		if err := form.add(part); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	return form.request()
}

// add takes one part.
func (f *videoForm) add(part body.Part) error {
	name := part.Name
	field, member := splitName(name)
	switch {
	case part.Encoded:
		return providers.InvalidField(name, "Invalid request: '%s' must not be encoded.", name)
	case part.FileName != "" || part.Typed && field == "input_reference":
		if field != "input_reference" || member != "" {
			return providers.InvalidField(name, "Invalid request: '%s' must not be a file.", name)
		}
		base := part.FileName
		if base != "" {
			base = filepath.Base(base) // no path travels, as RFC 7578 has it
		}
		image, err := newUpload("input_reference", base, part.Content)
		if err != nil {
			return err
		}
		return addImage(&f.req, "input_reference", image)
	case len(part.Content) > body.MaxPartText && field != "input_reference": // a data URL may be as long as a file
		return providers.InvalidField(name, "Invalid request: '%s' is too long.", name)
	case !utf8.Valid(part.Content):
		return providers.InvalidField(name, "Invalid request: '%s' is not valid UTF-8.", name)
	}
	return f.addText(name, field, member, string(part.Content))
}

// splitName takes "metadata[style]" apart, and "metadata.style" where the form has no bracket. An array's "name[]" is
// the name itself.
func splitName(name string) (field, member string) {
	field, rest, found := strings.Cut(name, "[")
	if found {
		return field, strings.TrimSuffix(rest, "]")
	}
	field, member, _ = strings.Cut(name, ".")
	if field != "metadata" && field != "input_reference" {
		return name, ""
	}
	return field, member
}

func (f *videoForm) addText(name, field, member, text string) error {
	if member == "" && isVideoField(field) {
		if f.seen[field] {
			return providers.InvalidField(field, "Invalid request: '%s' is given more than once.", field)
		}
		f.seen[field] = true
	}
	var err error
	switch {
	case field == "metadata" && member != "":
		f.metadata = withMember(f.metadata, member, text)
	case field == "input_reference" && member != "":
		f.reference = withMember(f.reference, member, text)
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
		var image providers.Media
		if image, err = readTextReference(text); err == nil {
			err = addImage(&f.req, "input_reference", image)
		}
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
	value, known := f.extra[name]
	if !known {
		value = &formValue{}
		f.extra[name] = value
		f.order = append(f.order, name)
	}
	value.texts = append(value.texts, text)
	value.array = value.array || array || len(value.texts) > 1
	return nil
}

func isVideoField(name string) bool {
	switch name {
	case "model", "prompt", "size", "seconds", "metadata", "webhook_url":
		return true
	default:
		return false
	}
}

func withMember(members map[string]string, name, text string) map[string]string {
	if members == nil {
		members = make(map[string]string)
	}
	members[name] = text
	return members
}

// readTextReference reads an input_reference in a text part: a URL or a JSON object.
func readTextReference(text string) (providers.Media, error) {
	if raw := []byte(strings.TrimSpace(text)); len(raw) > 0 && raw[0] == '{' && json.Valid(raw) {
		return readReference(raw)
	}
	return newMedia("input_reference", []byte(text))
}

// parseMetadata reads a metadata object in a text part.
func parseMetadata(text string) (json.RawMessage, error) {
	raw := []byte(strings.TrimSpace(text))
	if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
		return nil, providers.InvalidField("metadata", "Invalid request: 'metadata' must be a JSON object.")
	}
	return raw, checkNesting("metadata", raw)
}

// request puts the parts together.
func (f *videoForm) request() (providers.VideoRequest, error) {
	if f.reference != nil {
		image, err := referenceOf(func(name string) []byte { return []byte(f.reference[name]) })
		if err != nil {
			return providers.VideoRequest{}, err
		}
		if err := addImage(&f.req, "input_reference", image); err != nil {
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
	for _, name := range f.order {
		var value any = f.extra[name].texts
		if !f.extra[name].array {
			value = f.extra[name].texts[0]
		}
		key, err := json.Marshal(name)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		out = body.AppendMember(out, key, text)
	}
	if out != nil {
		f.req.Extra = append(out, '}')
	}
	return f.req, nil
}
