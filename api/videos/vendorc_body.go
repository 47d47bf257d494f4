package videos

import (
	"cmp"
	"net/http"
	"time"

	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
)

const versionPattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`

// vendorCFrames is the frame rate of the vendor's videos. A video has one frame more.
const vendorCFrames = 24

// vendorCBody is the body of both actions. It is never filled.
type vendorCBody struct {
	ReqKey     string   `json:"req_key,omitempty" doc:"Request type id; the model if model is absent"`
	Model      string   `json:"model,omitempty" doc:"Model id, in place of req_key"`
	Prompt     string   `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	BinaryData []string `json:"binary_data_base64,omitempty" nullable:"false" doc:"Reference images in Base64: PNG, JPEG or WebP, 32 MiB at most each"`
	ImageURLs  []string `json:"image_urls,omitempty" nullable:"false" doc:"Reference images by http or https URL"`
	Seed       int64    `json:"seed,omitempty"`
	WebhookURL string   `json:"webhook_url,omitempty" doc:"Address that receives the event at the task's end; requires a token with a webhook secret"`
	TaskID     string   `json:"task_id,omitempty" doc:"Id of the task; required for a result"`
	Wait       int      `json:"wait,omitempty" doc:"For a result: seconds to wait for the next change, 60 at most; also accepted in the query"`
}

func (v vendorC) readSubmit(x *edge.Request, r *http.Request) (req providers.VideoRequest, on work, err error) {
	b, err := readJSON(x, r, v.check)
	if err != nil {
		return req, on, err
	}
	req, err = v.service.checks.read(b)
	req.Model = cmp.Or(req.Model, b.Text("req_key"))
	if err == nil && req.Prompt == "" && len(req.Inputs) == 0 && b.Text("req_key") == "" {
		err = noPrompt()
	}
	return req, on, err
}

// readResult reads the body of a result: the task's id, and the wait for a change.
func (v vendorC) readResult(x *edge.Request, r *http.Request) (id string, wait time.Duration, err error) {
	b, err := readJSON(x, r, v.check)
	if err != nil {
		return "", 0, err
	}
	if id = b.Text("task_id"); id == "" {
		return "", 0, providers.InvalidField("task_id", "Invalid request: 'task_id' is required.")
	}
	x.ReleaseBody() // the wait may be long
	given := []byte(r.URL.Query().Get("wait"))
	if len(given) == 0 {
		given = b.Value("wait")
	}
	wait, err = apitasks.ParseWait(given)
	return id, wait, err
}
