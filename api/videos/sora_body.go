package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// openAIVideoBody is the JSON body of a video create. It is never filled: the schema and the field checks are compiled
// from it.
type openAIVideoBody struct {
	Model          string         `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	Prompt         string         `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Seconds        textOrNumber   `json:"seconds,omitzero" doc:"Seconds to generate"`
	Size           string         `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	InputReference imageReference `json:"input_reference,omitzero" doc:"Reference image"`
	Metadata       map[string]any `json:"metadata,omitempty" doc:"Echoed in the task; its members reach the vendor too"`
	WebhookURL     string         `json:"webhook_url,omitempty" doc:"Where the task's end is told; needs a token with a webhook secret"`
}

// textOrNumber is a number, or a string that holds one.
type textOrNumber struct{}

// Schema implements huma.SchemaProvider.
func (textOrNumber) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeNumber}}}
}

// imageReference is an image's URL, bare or in an object.
type imageReference struct{}

// Schema implements huma.SchemaProvider.
func (imageReference) Schema(huma.Registry) *huma.Schema {
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	return &huma.Schema{OneOf: []*huma.Schema{
		text("The image's http, https or data URL, or its bytes in Base64: PNG, JPEG or WebP, 32 MiB at most"),
		{
			Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
				"image_url": text("The same, in an object"), "file_id": text("Not supported here"),
			},
		},
	}}
}

// readVideoBody reads a JSON create.
func (s *Server) readVideoBody(x *edge.Request, r *http.Request, check *body.Checker) (providers.VideoRequest, error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	b, err := check.Check(raw)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req := providers.VideoRequest{
		Model: b.Text("model"), Prompt: b.Text("prompt"), Size: b.Text("size"), WebhookURL: b.Text("webhook_url"),
	}
	if req.Metadata, req.Extra, err = s.video.readFreely(b); err != nil {
		return req, err
	}
	req.Width, req.Height = parseSize(req.Size)
	if seconds := b.Value("seconds"); seconds != nil {
		text := body.Decimal(seconds)
		if seconds[0] == '"' {
			text = string(body.Unquote(seconds))
		}
		if req.Seconds, err = parseSeconds("seconds", text); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if reference := b.Value("input_reference"); reference != nil {
		image, err := readReference(reference)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		req.Images = []providers.Media{image}
	}
	return req, nil
}

// readReference reads an input_reference that is not a file: a URL, bare or as {"image_url": URL}.
func readReference(raw []byte) (providers.Media, error) {
	if raw[0] == '"' {
		return newMedia("input_reference", body.Unquote(raw))
	}
	return referenceOf(func(name string) []byte {
		at := body.Member(raw, name)
		return body.Unquote(raw[at.From:at.To])
	})
}

// referenceOf reads an input_reference by its members.
func referenceOf(member func(name string) []byte) (providers.Media, error) {
	if address := member("image_url"); len(address) > 0 {
		return newMedia("input_reference.image_url", address)
	}
	if len(member("file_id")) > 0 {
		return providers.Media{}, providers.InvalidField("input_reference.file_id",
			"Invalid request: 'input_reference.file_id' is not supported here; send the image itself or its URL.")
	}
	return providers.Media{}, providers.InvalidField("input_reference",
		"Invalid request: 'input_reference' must hold an image file or an 'image_url'.")
}

// Bounds of what a video create may hold beside the contract's fields. It is put into one order, kept, and read again by
// whatever has to do with the task.
const (
	// maxExtra is that of all fields together that the contract does not name, in bytes.
	maxExtra = 1 << 20
	// maxNesting is how deep the arrays and objects of these fields, and of the metadata, may lie in one another.
	maxNesting = 100
)

// readFreely reads the fields that hold what the client likes: the metadata, and those the contract does not name.
func (c videoChecks) readFreely(b *body.JSON) (metadata, extra json.RawMessage, err error) {
	metadata = bytes.Clone(b.Value("metadata"))
	if err := checkNesting("metadata", metadata); err != nil {
		return nil, nil, err
	}
	extra, err = c.extraMembers(b)
	return metadata, extra, err
}

// extraMembers collects the members of a body its format does not name; nil where there are none. Those of another format,
// an image for instance, are as large as there.
func (c videoChecks) extraMembers(b *body.JSON) (json.RawMessage, error) {
	var out []byte
	size := 0 // of the members that no format names
	for nameAt, at := range body.Members(b.Raw) {
		name, value := b.Raw[nameAt.From:nameAt.To], b.Raw[at.From:at.To]
		text := string(body.Unquote(name))
		if b.Span(text) != (providers.Span{}) {
			continue
		}
		if !c.fields.Knows(text) {
			size += len(name) + len(value)
		}
		if size > maxExtra {
			return nil, tooMuchExtra()
		}
		if err := checkNesting("", value); err != nil {
			return nil, err
		}
		out = body.AppendMember(out, name, value)
	}
	if out == nil {
		return nil, nil
	}
	return append(out, '}'), nil
}

// tooMuchExtra is the fault of a create with too long fields that the contract does not name.
func tooMuchExtra() *providers.Fault {
	return providers.InvalidField("", "Invalid request: the fields that are not documented here have more than %d MiB together.", maxExtra>>20)
}

// checkNesting tells whether a JSON value is nested too deeply. The value is valid.
func checkNesting(param string, value []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted:
			if c == '\\' {
				i++
			}
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '[' || c == '{':
			if depth++; depth > maxNesting {
				return providers.InvalidField(param, "The metadata, or a field that is not documented here, is nested too deeply: %d levels are allowed.", maxNesting)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}
