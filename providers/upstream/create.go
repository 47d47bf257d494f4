package upstream

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// Draft is a create that is being written. It keeps the first fault, after which it reads nothing.
type Draft struct {
	// Members replace the caller's own parameters of the same names.
	Members
	// Own are the caller's own parameters. Frame is the size and the length in the model's values.
	Own   map[string]json.RawMessage
	Frame providers.Frame

	fault error
}

// NewDraft begins a create. It checks the request: against the table of its model, by RefuseVideo of the vendor, nil for none, and for
// parameters that only the gateway may set. The length must be whole seconds.
func NewDraft(
	req providers.VideoRequest, model string, table providers.VideoModel, refuse providers.RefuseVideo, reserved ...string,
) *Draft {
	d := &Draft{Members: make(Members)}
	shape := req.Shape()
	frame, fault := table.Accept(shape)
	if fault == nil && refuse != nil {
		fault = refuse(model, shape, frame)
	}
	d.Frame = frame
	if fault != nil {
		d.fault = fault
	}
	own, err := req.Parameters()
	d.Refuse(err)
	d.Own = own
	d.Reserve(reserved...)
	d.Refuse(wholeSeconds(req.Seconds))
	return d
}

// Refuse keeps a fault, unless there is an earlier one. nil is none.
func (d *Draft) Refuse(err error) { d.fault = cmp.Or(d.fault, err) }

// Err returns the first fault, nil for none.
func (d *Draft) Err() error { return d.fault }

// Reserve refuses parameters of the caller that only the gateway may set.
func (d *Draft) Reserve(names ...string) {
	for _, name := range names {
		if d.Own[name] != nil {
			d.Refuse(providers.InvalidField(name, "The gateway reserves '%s' at this upstream.", name))
		}
	}
}

// Object returns the members of an object that the caller gave as the vendor's own parameter of a name, nil for none.
func (d *Draft) Object(name string) (members map[string]json.RawMessage) {
	if raw := d.Own[name]; raw != nil && (json.Unmarshal(raw, &members) != nil || members == nil) {
		d.Refuse(providers.InvalidField(name, "The upstream's own '%s' is an object.", name))
	}
	return members
}

// Text returns an input as most vendors accept it: its URL, or its bytes in a data URL.
func (d *Draft) Text(ctx context.Context, input providers.Media) string {
	return d.read(ctx, input, InputText)
}

// Base64 returns an input as some vendors accept it: its URL, or its bytes in Base64.
func (d *Draft) Base64(ctx context.Context, input providers.Media) string {
	return d.read(ctx, input, InputBase64)
}

func (d *Draft) read(
	ctx context.Context, input providers.Media, read func(context.Context, providers.Media) (string, error),
) string {
	if d.fault != nil {
		return ""
	}
	text, err := read(ctx, input)
	d.Refuse(err)
	return text
}

// Create returns the request, or the first fault. The same request has the same bytes each time. most bounds them, 0 for no bound.
func (d *Draft) Create(path string, most int) (JobRequest, error) {
	if d.fault != nil {
		return JobRequest{}, d.fault
	}
	body, err := Fields(d.Own, d.Members)
	if err == nil && most > 0 && len(body) > most { // its inputs are too large together
		err = providers.InvalidField("image", "The request has %d bytes with its inputs, and the upstream accepts %d.", len(body), most)
	}
	return Create(path, body), err
}

// Members are members of a create.
type Members map[string]any

// Words sets the texts that are not empty.
func (m Members) Words(texts map[string]string) {
	for name, text := range texts {
		if text != "" {
			m[name] = text
		}
	}
}

// Number sets a number if it is above 0.
func (m Members) Number(name string, n int) {
	if n > 0 {
		m[name] = n
	}
}

// Seed sets the seed if the request has one.
func (m Members) Seed(req providers.VideoRequest) {
	if req.Seed != nil {
		m["seed"] = *req.Seed
	}
}

// Sound sets the switch for sound if the request has it and the model has the option.
func (m Members) Sound(name string, req providers.VideoRequest, table providers.VideoModel) {
	if req.GenerateAudio != nil && table.Audio == providers.AudioOption {
		m[name] = *req.GenerateAudio
	}
}

// Fields writes members into existing fields.
func Fields(fields map[string]json.RawMessage, members map[string]any) ([]byte, error) {
	for name, value := range members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, providers.Unwritable(err)
		}
		fields[name] = raw
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, providers.Unwritable(err)
	}
	return body, nil
}

// Under adds members that the request leaves open.
func (m Members) Under(own map[string]json.RawMessage) {
	for name, value := range own {
		if _, set := m[name]; !set {
			m[name] = value
		}
	}
}

// wholeSeconds refuses a length with a fraction.
func wholeSeconds(text string) error {
	if text == "" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int(f)) {
		return providers.InvalidField("seconds", "The upstream takes whole seconds, not %s.", text)
	}
	return nil
}

// SecondsFrom lists the whole seconds of a range, both ends included, for a VideoModel.
func SecondsFrom(from, to int) (words []string) {
	for n := from; n <= to; n++ {
		words = append(words, strconv.Itoa(n))
	}
	return words
}

// InputText returns an input as most vendors accept it: its URL, or its bytes in a data URL.
func InputText(ctx context.Context, input providers.Media) (string, error) {
	text, err := InputBase64(ctx, input)
	if err != nil || input.URL != "" {
		return text, err
	}
	return "data:" + cmp.Or(input.ContentType, "application/octet-stream") + ";base64," + text, nil
}

// InputBase64 returns an input as some vendors accept it: its URL, or its bytes in Base64.
func InputBase64(ctx context.Context, input providers.Media) (string, error) {
	if input.URL != "" {
		return input.URL, nil
	}
	var text strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	if err := input.CopyTo(ctx, encoder); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", providers.Unwritable(err)
	}
	return text.String(), nil
}
