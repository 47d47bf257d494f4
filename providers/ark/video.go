// Package ark adapts the video jobs of Volcengine Ark and BytePlus ModelArk (Seedance).
//
// Of the product it imports only providers and providers/upstream.
package ark

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: volcengine/ark-runtime-go (arkruntime/content_generation.go and its schemas),
// volcengine/volcengine-python-sdk (arkruntime/resources/content_generation/tasks.py), volcengine/ark-cli (skills/arkcli-gen and
// arkcli-doctor: modes, limits, error codes), vercel/ai packages/bytedance; of Seedance 2.5 in 4k and its Flash
// byteplus-sa/ComfyUI-BytePlus-ModelArk, release v0.9.0.

// BaseURL is the vendor's own address in China. That of BytePlus is https://ark.ap-southeast.bytepluses.com/api/v3.
const BaseURL = "https://ark.cn-beijing.volces.com/api/v3"

const (
	tasksPath = "/contents/generations/tasks"
	// leastPoll is the interval between polls in the vendor's own samples.
	leastPoll = 10 * time.Second
	// linkLife is how long a link to a result works from the job's end.
	linkLife = 24 * time.Hour
)

// Videos implements the jobs of POST /contents/generations/tasks.
type Videos struct{ upstream.Linked[task] }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked[task]{
		Paced: providers.Pace{Least: leastPoll},
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "ark", Classify: classify, Failed: failureCode}), Path: taskPath,
		UnknownJob: "cgt-20240101000000-00000",
	}}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.Jobs.Start(ctx, to, tasksPath, body, "id")
}

// Cancel stops a job that waits; one that runs cannot be stopped. The same request deletes the record of a job that has
// ended, video and all, so the job is read first.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	t, err := v.Record(ctx, to, ticket)
	if upstream.Forgotten(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch t.Status {
	case "queued":
	case "succeeded", "failed", "cancelled", "expired":
		return nil
	default:
		return &providers.Fault{Kind: providers.Conflict, Message: "The upstream stops no job that runs.", Accepted: providers.NotAccepted}
	}
	return v.Jobs.Stop(ctx, to, http.MethodDelete, taskPath(ticket))
}

func taskPath(ticket providers.Ticket) string { return tasksPath + "/" + url.PathEscape(ticket.Job) }

// task is the vendor's job.
type task struct {
	ID      upstream.Loose `json:"id"`
	Status  upstream.Loose `json:"status"`
	Created upstream.Loose `json:"created_at"`
	Updated upstream.Loose `json:"updated_at"`
	Content struct {
		VideoURL upstream.Loose `json:"video_url"`
	} `json:"content"`
	Duration   upstream.Loose  `json:"duration"`
	Resolution upstream.Loose  `json:"resolution"`
	Sound      json.RawMessage `json:"generate_audio"`
	Usage      json.RawMessage `json:"usage"`
	Identifier upstream.Loose  `json:"safety_identifier"`
	Error      json.RawMessage `json:"error"`
}

// tokens returns the tokens that the vendor bills.
func (t task) tokens() providers.VideoTokens {
	var usage struct {
		Output upstream.Loose `json:"completion_tokens"`
	}
	_ = json.Unmarshal(t.Usage, &usage) // errors leave it empty
	return providers.VideoTokens{Output: usage.Output.Count()}
}

// VideoLinks returns the link to the video, which requires no key.
func (t task) VideoLinks() []string { return []string{string(t.Content.VideoURL)} }

// VideoStatus implements upstream.Record.
func (t task) VideoStatus(key providers.Secret) (providers.VideoStatus, error) {
	word := string(t.Status)
	switch word {
	case "failed":
		code, message := upstream.Words(t.Error)
		return upstream.FailedJob(word, failureCode(code), code, message, false, key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case "cancelled":
		return upstream.FailedJob(word, providers.FailedVendor, word, "The job was cancelled at the upstream.", false, key), nil
	}
	s, err := upstream.States{Queued: "queued", Done: "succeeded", Life: linkLife}.Status(t.Status, t.VideoLinks())
	if err != nil || s.State != providers.JobDone {
		return s, err
	}
	s.Seconds, s.Took = t.Duration.Number(), upstream.Took(t.Created, t.Updated)
	s.Resolution, s.Tokens = providers.Cut(string(t.Resolution), providers.WordLimit), t.tokens()
	if on := string(t.Sound); on == "true" || on == "false" {
		s.Audio = on
	}
	if ended := t.Updated.Time(); !ended.IsZero() {
		s.Dies = ended.Add(linkLife)
	}
	return s, nil
}
