// Package ark adapts the video jobs of Volcengine Ark and BytePlus ModelArk (Seedance).
package ark

import (
	"context"
	"net/http"
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
type Videos struct{ upstream.Linked }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.Linked{
		Jobs:  upstream.NewJobs(client, upstream.JobVendor{Name: "ark", Code: []string{"error.code"}, Classify: classify, Failed: failureCode}),
		ID:    []string{"id"},
		Path:  tasksPath + "/%s",
		Links: upstream.Link("content.video_url"), // which requires no key
		Paced: providers.Pace{Least: leastPoll}, UnknownJob: "cgt-20240101000000-00000",
		Create: create, Status: status,
	}}
}

// Cancel stops a queued job; a running one cannot be stopped. The same request deletes the record and the video of a job that has ended.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	return v.StopWaiting(ctx, to, ticket, false, upstream.JobRequest{Method: http.MethodDelete, Path: v.JobPath(ticket)})
}

func status(job upstream.Doc, links []string, key providers.Secret) (providers.VideoStatus, error) {
	state := job.Get("status")
	switch word := string(state); word {
	case "failed":
		code := string(job.Get("error.code"))
		return upstream.FailedJob(word, failureCode(code), code, string(job.Get("error.message")), false, key), nil
	case "expired":
		return upstream.FailedJob(word, providers.FailedTimeout, word, "The upstream gave the job up.", false, key), nil
	case "cancelled":
		return upstream.FailedJob(word, providers.FailedVendor, word, "The job was cancelled at the upstream.", false, key), nil
	}
	s, err := upstream.States{Queued: "queued", Done: "succeeded", Life: linkLife}.Status(state, links)
	if err != nil || s.State != providers.JobDone {
		return s, err
	}
	created, updated := job.Get("created_at"), job.Get("updated_at")
	s.Seconds, s.Took = job.Get("duration").Number(), upstream.Took(created, updated)
	s.Resolution = providers.Cut(string(job.Get("resolution")), providers.WordLimit)
	s.Tokens.Output = job.Get("usage.completion_tokens").Count() // which the vendor bills
	if on := string(job.At("generate_audio")); on == "true" || on == "false" {
		s.Audio = on
	}
	if ended := updated.Time(); !ended.IsZero() {
		s.ExpiresAt = ended.Add(linkLife)
	}
	return s, nil
}
