package videos

import (
	"net/http"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// openAIVideoBody is the JSON body of a create. It is never filled: the schema and the field checks are compiled from it.
type openAIVideoBody struct {
	Model          string         `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	Prompt         string         `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Seconds        textOrNumber   `json:"seconds,omitzero" doc:"Seconds to generate"`
	Size           string         `json:"size,omitempty" doc:"Width and height, as in 1280x720"`
	InputReference imageReference `json:"input_reference,omitzero" doc:"Reference image, or several"`
	CommonFields
	Metadata   map[string]any `json:"metadata,omitempty" doc:"Echoed in the task; its members reach the vendor too"`
	WebhookURL string         `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
}

// readSoraBody reads a JSON create.
func (c fieldChecks) readSoraBody(x *edge.Request, r *http.Request, check *body.Checker) (providers.VideoRequest, error) {
	b, err := readJSON(x, r, check)
	if err != nil {
		return providers.VideoRequest{}, err
	}
	req := providers.VideoRequest{
		Model: b.Text("model"), Prompt: b.Text("prompt"), Size: b.Text("size"), WebhookURL: b.Text("webhook_url"),
	}
	if req.Metadata, req.Extra, err = c.readFreely(b); err != nil {
		return req, err
	}
	req.Width, req.Height = parseSize(req.Size)
	if seconds := b.Value("seconds"); seconds != nil {
		if req.Seconds, err = parseSeconds("seconds", numeral(seconds)); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	if reference := b.Value("input_reference"); reference != nil {
		if err := addReferences(&req, reference); err != nil {
			return providers.VideoRequest{}, err
		}
	}
	return req, takeCommon(&req, b)
}
