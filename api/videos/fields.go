package videos

import (
	"bytes"
	"cmp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// videoFields are the fields of a create in all video formats, for the checks. It is never filled. Numbers may be in strings.
type videoFields struct {
	Model          string         `json:"model,omitempty"`
	ReqKey         string         `json:"req_key,omitempty"`
	Prompt         string         `json:"prompt,omitempty"`
	Seconds        textOrNumber   `json:"seconds,omitzero"`
	Duration       textOrNumber   `json:"duration,omitzero"`
	Frames         textOrNumber   `json:"frames,omitzero"`
	Size           string         `json:"size,omitempty"`
	Width          textOrNumber   `json:"width,omitzero"`
	Height         textOrNumber   `json:"height,omitzero"`
	FPS            textOrNumber   `json:"fps,omitzero"`
	N              textOrNumber   `json:"n,omitzero"`
	Seed           textOrNumber   `json:"seed,omitzero"`
	InputReference imageReference `json:"input_reference,omitzero"`
	CommonFields
	ImageURLs      []string       `json:"image_urls,omitempty" nullable:"false"`
	BinaryData     []string       `json:"binary_data_base64,omitempty" nullable:"false"`
	ResponseFormat string         `json:"response_format,omitempty"`
	User           string         `json:"user,omitempty"`
	Metadata       map[string]any `json:"metadata,omitempty"`
	WebhookURL     string         `json:"webhook_url,omitempty"`
}

// fieldChecks check the members of a create that its format does not document, and the metadata; both reach the vendor. Neither may change
// the price or the model without the gateway.
type fieldChecks struct {
	fields, metadata *body.Checker
}

func newFieldChecks() fieldChecks {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	fields := body.NewChecker[videoFields](registry)
	return fieldChecks{fields: fields, metadata: body.NewChecker[struct{}](registry, fields.Names()...)}
}

// takeFields moves the fields of other video formats from the request's extra members to the request. They mean the same as there.
func (c fieldChecks) takeFields(req *providers.VideoRequest) error {
	if req.Extra == nil {
		return nil
	}
	b, err := c.fields.Check(req.Extra)
	if err != nil {
		return err
	}
	if !b.Any() {
		return nil
	}
	if req.Extra, err = c.extraMembers(b); err != nil {
		return err
	}
	if size := b.Value("size"); size != nil && req.Width != 0 && pixels(b.Text("size")) == 0 {
		// A size that is not in pixels is the vendor's own parameter, in addition to the pixels.
		req.Extra = append(body.AppendMember(bytes.TrimSuffix(req.Extra, []byte("}")), []byte(`"size"`), size), '}')
	}
	if req.Model == "" {
		req.Model = b.Text("req_key")
	}
	if key := b.Text("req_key"); key != "" && key != req.Model {
		return differs("req_key", "model")
	}
	if metadata := b.Value("metadata"); metadata != nil && req.Metadata == nil {
		req.Metadata = bytes.Clone(metadata)
	}
	return take(req, b)
}

// read reads the fields that a create's format documents, except other names of the model, and the remaining members. references precede
// the inputs of the body.
func (c fieldChecks) read(b *body.JSON, references ...providers.Media) (req providers.VideoRequest, err error) {
	req.Model, req.Inputs = b.Text("model"), references
	if req.Metadata, req.Extra, err = c.readFreely(b); err != nil {
		return req, err
	}
	return req, take(&req, b)
}

// takeNamed takes the fields of a format with other names: known has them by their names in the other formats. extra are the members that
// the format does not document. Neither object has its closing brace.
func (c fieldChecks) takeNamed(req *providers.VideoRequest, in dialect, known, extra []byte) error {
	if known != nil {
		b, err := c.fields.Check(append(known, '}'))
		if err == nil {
			err = take(req, b)
		}
		if err != nil {
			return in.fault(providers.AsFault(err))
		}
	}
	switch {
	case len(extra) > maxExtra:
		return tooMuchExtra()
	case extra != nil:
		req.Extra = append(extra, '}')
		return checkNesting("", req.Extra)
	}
	return nil
}

// take reads fields that mean the same in all video formats. Lengths and numbers must agree with those that the request has.
func take(req *providers.VideoRequest, b *body.JSON) error {
	req.Prompt, req.WebhookURL = cmp.Or(req.Prompt, b.Text("prompt")), cmp.Or(req.WebhookURL, b.Text("webhook_url"))
	req.User, req.ResponseFormat = cmp.Or(req.User, b.Text("user")), cmp.Or(req.ResponseFormat, b.Text("response_format"))
	if err := takeSize(req, b); err != nil {
		return err
	}
	for _, name := range [...]string{"seconds", "duration", "frames"} {
		if err := agreeLength(req, name, name, b.Value(name)); err != nil {
			return err
		}
	}
	if raw := b.Value("seed"); raw != nil {
		seed, ok := rawjson.Value(numeral(raw)).Int()
		if !ok {
			return providers.InvalidField("seed", "Invalid request: 'seed' is out of range.")
		}
		req.Seed = &seed
	}
	return takeImages(req, b)
}

// pixels returns the width in a size, 0 if it is not in pixels.
func pixels(size string) int {
	width, _ := parseSize(size)
	return width
}

func takeSize(req *providers.VideoRequest, b *body.JSON) error {
	if size := b.Text("size"); size != "" && (req.Width == 0 || pixels(size) != 0) {
		width, height := parseSize(size)
		if req.Width != 0 && width != 0 && req.Width != width || req.Height != 0 && height != 0 && req.Height != height {
			return differs("size", "width")
		}
		req.Size = size
		if req.Width == 0 && req.Height == 0 {
			req.Width, req.Height = width, height
		}
	}
	for _, field := range [...]struct {
		name string
		into *int
	}{{"width", &req.Width}, {"height", &req.Height}, {"fps", &req.FPS}, {"n", &req.N}} {
		if err := agreeNumber(field.into, field.name, b.Value(field.name)); err != nil {
			return err
		}
	}
	return nil
}

func takeImages(req *providers.VideoRequest, b *body.JSON) error {
	if reference := b.Value("input_reference"); reference != nil {
		if err := addReferences(req, reference); err != nil {
			return err
		}
	}
	if err := takeCommon(req, b); err != nil {
		return err
	}
	if err := addInputs(req, "binary_data_base64", b.Value("binary_data_base64"), newImage); err != nil {
		return err
	}
	return addInputs(req, "image_urls", b.Value("image_urls"), newLink)
}

// readMetadata reads the members of the metadata that determine the price. They stay in the metadata.
func (c fieldChecks) readMetadata(req *providers.VideoRequest) error {
	b, err := c.checkMetadata(req.Metadata)
	if b == nil || err != nil {
		return err
	}
	for _, name := range [...]string{"model", "req_key"} {
		if raw := b.Value(name); raw != nil && raw.Text().String() != req.Model {
			return differs("metadata."+name, "model")
		}
	}
	for _, name := range [...]string{"seconds", "duration", "frames"} {
		if err := agreeLength(req, name, "metadata."+name, b.Value(name)); err != nil {
			return err
		}
	}
	return agreeNumber(&req.N, "metadata.n", b.Value("n"))
}

// checkMetadata returns nil for a request without metadata.
func (c fieldChecks) checkMetadata(metadata []byte) (*body.JSON, error) {
	if metadata == nil {
		return nil, nil //nolint:nilnil // without metadata there is nothing to check
	}
	b, err := c.metadata.Check(metadata)
	if fault := providers.AsFault(err); fault != nil {
		place := "metadata." + fault.Param
		return nil, providers.InvalidField(place, "%s", strings.Replace(fault.Message, "'"+fault.Param+"'", "'"+place+"'", 1))
	}
	return b, nil
}

// refuseFields refuses fields of a remix that it takes from its source.
func (c fieldChecks) refuseFields(req *providers.VideoRequest) error {
	if req.Extra != nil {
		b, err := c.fields.Check(req.Extra)
		if err != nil {
			return err
		}
		for _, name := range c.fields.Names() {
			if b.Value(name) != nil {
				return ofTheSource(name)
			}
		}
		if b.Any() { // nulls
			if req.Extra, err = c.extraMembers(b); err != nil {
				return err
			}
		}
	}
	b, err := c.checkMetadata(req.Metadata)
	if b == nil || err != nil {
		return err
	}
	for _, name := range [...]string{"model", "req_key", "seconds", "duration", "frames", "n", "size", "width", "height"} {
		if b.Value(name) != nil {
			return ofTheSource("metadata." + name)
		}
	}
	return nil
}

func ofTheSource(name string) *providers.Fault {
	return providers.InvalidField(name, "Invalid request: '%s' cannot be given: a remix has the value of its source video.", name)
}

func differs(name, from string) *providers.Fault {
	return providers.InvalidField(name, "Invalid request: '%s' differs from '%s'.", name, from)
}
