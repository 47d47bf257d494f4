package api

import (
	"bytes"
	"math"
	"net/http"
	"strconv"

	"modelrelay/providers"
)

// genericVideoBody is the body of a create in the generic format. It is never filled: the schema and the field checks
// are compiled from it.
type genericVideoBody struct {
	Model          string         `json:"model,omitempty" doc:"Model or style id; the deployment may have a default"`
	Prompt         string         `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Image          string         `json:"image,omitempty" doc:"Reference image: an http, https or data URL, or its bytes in Base64 (PNG, JPEG or WebP, 32 MiB at most)"`
	Duration       float64        `json:"duration,omitempty" doc:"Seconds to generate"`
	Width          int            `json:"width,omitempty" doc:"In pixels"`
	Height         int            `json:"height,omitempty" doc:"In pixels"`
	FPS            int            `json:"fps,omitempty" doc:"Frames per second, where the vendor lets them be chosen"`
	Seed           int64          `json:"seed,omitempty"`
	N              int            `json:"n,omitempty" doc:"Number of videos; more than one only where the vendor makes several"`
	ResponseFormat string         `json:"response_format,omitempty" doc:"Kept with the task; the answer always has URLs"`
	User           string         `json:"user,omitempty" doc:"The caller's own user, kept with the task"`
	Metadata       map[string]any `json:"metadata,omitempty" doc:"Extension parameters such as negative_prompt, style, quality_level: echoed in the task, and sent to the vendor"`
	WebhookURL     string         `json:"webhook_url,omitempty" doc:"Where the task's end is told; needs a token with a webhook secret"`
}

// readGenericBody reads a create in the generic format.
func (s *Server) readGenericBody(x *exchange, r *http.Request, check *checker) (providers.VideoRequest, error) {
	raw, err := s.readBody(x, r)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	b, err := check.check(raw)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req := providers.VideoRequest{
		Model: b.text("model"), Prompt: b.text("prompt"), User: b.text("user"), ResponseFormat: b.text("response_format"),
		WebhookURL: b.text("webhook_url"),
	}
	if req.Metadata, req.Extra, err = s.video.readFreely(b); err != nil {
		return req, err
	}
	for _, field := range [...]struct {
		name string
		into *int
	}{{"width", &req.Width}, {"height", &req.Height}, {"fps", &req.FPS}, {"n", &req.N}} {
		if *field.into, err = positive(field.name, b.value(field.name)); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if raw := b.value("seed"); raw != nil {
		seed, ok := integer(raw)
		if !ok {
			return providers.VideoRequest{}, providers.InvalidField("seed", "Invalid request: 'seed' is out of range.")
		}
		req.Seed = &seed
	}
	if raw := b.value("duration"); raw != nil {
		if req.Seconds, err = parseSeconds("duration", decimal(raw)); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if image := unquoted(b.value("image")); len(image) > 0 {
		image, err := newMedia("image", image)
		if err != nil {
			return providers.VideoRequest{}, err
		}
		req.Images = []providers.Media{image}
	}
	return req, nil
}

// positive reads a JSON integer above 0; 0 for nil.
func positive(param string, raw []byte) (int, error) {
	if raw == nil {
		return 0, nil
	}
	n, ok := integer(raw)
	if !ok || n <= 0 || n > math.MaxInt32 {
		return 0, providers.InvalidField(param, "Invalid request: '%s' must be an integer above 0.", param)
	}
	return int(n), nil
}

// integer reads a JSON number without a fraction, which may be written with one or with an exponent.
func integer(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) > 1<<53 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// decimal writes a JSON number without an exponent.
func decimal(raw []byte) string {
	if !bytes.ContainsAny(raw, "eE") {
		return string(raw)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return string(raw)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}
