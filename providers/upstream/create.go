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

// Accept checks a request before it is written: against the table of its model, by RefuseVideo of the vendor, nil for none, and for
// parameters that only the gateway may set. The length must be whole seconds.
func Accept(
	req providers.VideoRequest, model string, table providers.VideoModel, refuse providers.RefuseVideo, reserved ...string,
) (providers.Frame, error) {
	shape := req.Shape()
	frame, fault := table.Accept(shape)
	if fault == nil && refuse != nil {
		fault = refuse(model, shape, frame)
	}
	if fault != nil {
		return frame, fault
	}
	if err := Reserved(req, reserved...); err != nil {
		return frame, err
	}
	_, err := WholeSeconds(req.Seconds)
	return frame, err
}

// Members are the members of a create.
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

// Encode writes the members of a create. They replace parameters of the caller with the same names. The same request has the same
// bytes each time.
func Encode(req providers.VideoRequest, members map[string]any) ([]byte, error) {
	fields, err := req.Parameters()
	if err != nil {
		return nil, err
	}
	return Fields(fields, members)
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

// Object returns the members of an object that the caller gave as the vendor's own parameter of a name, nil for none.
func Object(own map[string]json.RawMessage, name string) (members map[string]json.RawMessage, err error) {
	if raw := own[name]; raw != nil && (json.Unmarshal(raw, &members) != nil || members == nil) {
		return nil, providers.InvalidField(name, "The upstream's own '%s' is an object.", name)
	}
	return members, nil
}

// Reserved refuses parameters that only the gateway may set.
func Reserved(req providers.VideoRequest, names ...string) error {
	fields, err := req.Parameters()
	if err != nil {
		return err
	}
	for _, name := range names {
		if fields[name] != nil {
			return providers.InvalidField(name, "The gateway keeps '%s' at this upstream to itself.", name)
		}
	}
	return nil
}

// Fits refuses a create that is larger than the vendor accepts, in bytes. Its inputs are too large together.
func Fits(body []byte, most int) error {
	if len(body) > most {
		return providers.InvalidField("image", "The request has %d bytes with its inputs, and the upstream takes %d.", len(body), most)
	}
	return nil
}

// WholeSeconds reads a length that a vendor takes as an integer; 0 for "". The error is a *providers.Fault.
func WholeSeconds(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != float64(int(f)) {
		return 0, providers.InvalidField("seconds", "The upstream takes whole seconds, not %s.", text)
	}
	return int(f), nil
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
