package api

import (
	"math"
	"net/http"

	"modelrelay/api/body"
	"modelrelay/api/edge"
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
func (s *Server) readGenericBody(x *edge.Request, r *http.Request, check *body.Checker) (providers.VideoRequest, error) {
	raw, err := x.ReadBody(r)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	b, err := check.Check(raw)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req := providers.VideoRequest{
		Model: b.Text("model"), Prompt: b.Text("prompt"), User: b.Text("user"), ResponseFormat: b.Text("response_format"),
		WebhookURL: b.Text("webhook_url"),
	}
	if req.Metadata, req.Extra, err = s.video.readFreely(b); err != nil {
		return req, err
	}
	for _, field := range [...]struct {
		name string
		into *int
	}{{"width", &req.Width}, {"height", &req.Height}, {"fps", &req.FPS}, {"n", &req.N}} {
		if *field.into, err = positive(field.name, b.Value(field.name)); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if raw := b.Value("seed"); raw != nil {
		seed, ok := body.Integer(raw)
		if !ok {
			return providers.VideoRequest{}, providers.InvalidField("seed", "Invalid request: 'seed' is out of range.")
		}
		req.Seed = &seed
	}
	if raw := b.Value("duration"); raw != nil {
		if req.Seconds, err = parseSeconds("duration", body.Decimal(raw)); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if image := body.Unquote(b.Value("image")); len(image) > 0 {
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
	n, ok := body.Integer(raw)
	if !ok || n <= 0 || n > math.MaxInt32 {
		return 0, providers.InvalidField(param, "Invalid request: '%s' must be an integer above 0.", param)
	}
	return int(n), nil
}
