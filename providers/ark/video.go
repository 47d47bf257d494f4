// Package ark adapts the video jobs of Volcengine Ark and BytePlus ModelArk (Seedance).
//
// Of the product it imports providers and providers/upstream alone.
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
// arkcli-doctor: modes, limits, error codes), vercel/ai packages/bytedance.

// BaseURL is the vendor's own address in China. That of BytePlus is https://ark.ap-southeast.bytepluses.com/api/v3.
const BaseURL = "https://ark.cn-beijing.volces.com/api/v3"

const (
	tasksPath = "/contents/generations/tasks"
	// leastPoll is how often the vendor's own samples ask at most.
	leastPoll = 10 * time.Second
	// linkLife is how long a link to a result works from the job's end.
	linkLife = 24 * time.Hour
)

// Videos drives the jobs of POST /contents/generations/tasks.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos makes the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{Name: "ark", Classify: classify})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	body, err := createBody(ctx, to.Model, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made task
	if err := v.jobs.Read(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: tasksPath, Body: body, Paid: true}, &made); err != nil {
		return providers.Ticket{}, err
	}
	if made.ID == "" {
		return providers.Ticket{}, upstream.BrokenAnswer("no id", nil)
	}
	return providers.Ticket{Job: string(made.ID)}, nil
}

// Poll reads the job.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	t, err := v.task(ctx, to, ticket)
	if err != nil {
		return upstream.Unread(err)
	}
	return t.status(to.Key)
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's one video at the link of its record, which takes no key.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	t, err := v.task(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	if t.Content.VideoURL == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
	}
	return v.jobs.Open(ctx, to, string(t.Content.VideoURL), false)
}

// Cancel stops a job that waits; one that runs cannot be stopped. The same request deletes the record of a job that has
// ended, video and all, so the job is read first.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	t, err := v.task(ctx, to, ticket)
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
	_, err = v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodDelete, Path: tasksPath + "/" + url.PathEscape(ticket.Job)})
	if upstream.Forgotten(err) {
		return nil
	}
	return err
}

func (v *Videos) task(ctx context.Context, to providers.Target, ticket providers.Ticket) (task, error) {
	var t task
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: tasksPath + "/" + url.PathEscape(ticket.Job)}, &t)
	return t, err
}

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

// tokens are what the vendor bills.
func (t task) tokens() providers.VideoTokens {
	var usage struct {
		Output upstream.Loose `json:"completion_tokens"`
	}
	_ = json.Unmarshal(t.Usage, &usage) // another shape counts nothing
	return providers.VideoTokens{Output: usage.Output.Count()}
}

// status reads the vendor's words. An unknown one, and none at all, means still running.
func (t task) status(key providers.Secret) (providers.VideoStatus, error) {
	word := string(t.Status)
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(word, providers.WordLimit)}
	switch word {
	case "queued":
		s.State = providers.JobQueued
	case "succeeded":
		if t.Content.VideoURL == "" {
			return providers.VideoStatus{}, upstream.BrokenAnswer("succeeded without a link", nil)
		}
		s.State, s.Outputs, s.Seconds = providers.JobDone, 1, t.Duration.Number()
		s.Took, s.Dies = upstream.Took(t.Created, t.Updated), t.Updated.Time()
		s.Resolution, s.Tokens = providers.Cut(string(t.Resolution), providers.WordLimit), t.tokens()
		if on := string(t.Sound); on == "true" || on == "false" {
			s.Audio = on
		}
		if s.Dies.IsZero() {
			s.Dies = time.Now()
		}
		s.Dies = s.Dies.Add(linkLife)
	case "failed":
		why := said(t.Error)
		return upstream.FailedJob(word, failureCode(why.Code), why.Code, why.Message, false, key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case "cancelled":
		return upstream.FailedJob(word, providers.FailedVendor, word, "The job was cancelled at the upstream.", false, key), nil
	}
	return s, nil
}

// Check implements providers.Checker, by a look-up of a job that nobody has made.
func (v *Videos) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := v.task(ctx, to, providers.Ticket{Job: "cgt-20240101000000-00000"})
	return upstream.LookedUp(err, nil)
}
