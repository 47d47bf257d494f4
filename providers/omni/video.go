// Package omni adapts the videos of Gemini Omni, which Google's Gemini API makes as interactions in the background.
package omni

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Wire facts of this package: googleapis/js-genai 3.1.0 (types of interactions, routes), google-gemini/cookbook
// quickstarts/Get_started_Omni.ipynb, google-gemini/gemini-skills skills/gemini-omni-flash-api. Not documented, and read both ways:
// whether an answer has a link or the video itself. The API of Google Cloud requires another credential and is not supported.

// BaseURL is the vendor's own address.
const BaseURL = "https://generativelanguage.googleapis.com/v1beta"

const (
	interactionsPath = "/interactions"
	// leastPoll is the interval between polls in the vendor's own samples.
	leastPoll = 10 * time.Second
	// fileLife is how long the vendor keeps a file.
	fileLife = 48 * time.Hour
)

// Videos implements the jobs of POST /interactions. The vendor has no list of them, so a lost one cannot be found.
type Videos struct{ jobs *upstream.Jobs }

// NewVideos returns the adapter over the process's client.
func NewVideos(client *http.Client) *Videos {
	return &Videos{upstream.NewJobs(client, upstream.JobVendor{
		Name: "omni", Classify: upstream.ClassifyRPC, Authorize: upstream.KeyIn("X-Goog-Api-Key", ""),
	})}
}

// Submit starts a job.
func (v *Videos) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	return v.create(ctx, to, "", req)
}

// Remix starts a job that changes the video of an interaction by a prompt.
func (v *Videos) Remix(
	ctx context.Context, to providers.Target, source providers.Ticket, req providers.VideoRequest,
) (providers.Ticket, error) {
	return v.create(ctx, to, source.Job, req)
}

func (v *Videos) create(ctx context.Context, to providers.Target, before string, req providers.VideoRequest) (providers.Ticket, error) {
	create, err := create(ctx, to.Model, before, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return v.jobs.Start(ctx, to, create, "id")
}

// Poll reads the interaction, and the file of a completed one, which may not be ready yet.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	i, err := v.interaction(ctx, to, ticket)
	if forgotten(err) {
		return upstream.ForgottenJob(), nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	s, err := statusOf(i, to.Key)
	if err != nil || s.State != providers.JobDone {
		return s, err
	}
	return v.ready(ctx, to, i, s)
}

// ready returns the status of a completed interaction by the state of its file. If the state cannot be read, Open shows it.
func (v *Videos) ready(ctx context.Context, to providers.Target, job upstream.Doc, s providers.VideoStatus) (providers.VideoStatus, error) {
	name := upstream.RPCFile(string(videoOf(job).Get("uri")))
	if name == "" {
		return s, nil
	}
	file, err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: "/files/" + url.PathEscape(name)})
	if upstream.Forgotten(err) {
		return s, nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	if file.Get("state") == "PROCESSING" {
		return providers.VideoStatus{State: providers.JobRunning, Progress: -1, VendorState: "PROCESSING"}, nil
	}
	return s, nil // a file with state FAILED can be read nevertheless
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's only video: at its link, which requires the key at the vendor's own origin, or in the interaction itself.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	i, err := v.interaction(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	video := videoOf(i)
	switch uri := string(video.Get("uri")); {
	case uri != "":
		return v.jobs.Open(ctx, to, upstream.Download(uri), true)
	case video != nil:
		return v.jobs.OpenInline(ctx, to, upstream.JobRequest{Path: path(ticket)}, "data", 0)
	}
	return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
}

// Cancel stops a job. The vendor refuses the request for a job that has ended, so the interaction is then read.
func (v *Videos) Cancel(ctx context.Context, to providers.Target, ticket providers.Ticket) error {
	_, err := v.jobs.Do(ctx, to, upstream.JobRequest{Method: http.MethodPost, Path: path(ticket) + "/cancel", Inline: true})
	if forgotten(err) {
		return nil
	}
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Kind != providers.Invalid {
		return err
	}
	i, err := v.interaction(ctx, to, ticket)
	if err != nil && !forgotten(err) {
		return err
	}
	switch i.Get("status") {
	case "queued", "in_progress", "requires_continuation":
		return fault
	}
	return nil
}

func path(ticket providers.Ticket) string {
	return interactionsPath + "/" + url.PathEscape(ticket.Job)
}

// interaction reads a job. A 400 for another reason than the job's name was temporary in practice, so it does not decide about the job.
func (v *Videos) interaction(ctx context.Context, to providers.Target, ticket providers.Ticket) (upstream.Doc, error) {
	i, err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: path(ticket), Inline: true})
	var fault *providers.Fault
	if errors.As(err, &fault) && fault.Kind == providers.Invalid && !forgotten(err) {
		upstream.Reclass(fault, http.StatusBadGateway)
	}
	return i, err
}

// forgotten reports whether an error is the vendor's code for an unknown job, which is a 400 as a rule.
func forgotten(err error) bool {
	var fault *providers.Fault
	if !errors.As(err, &fault) || fault.Upstream == nil {
		return false
	}
	return upstream.Forgotten(err) || fault.Upstream.Status == http.StatusBadRequest &&
		strings.Contains(strings.ToLower(upstream.Reason(fault.Upstream.Body)), "invalid interaction")
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.jobs.CheckModels(ctx, to, "/models?pageSize=1000", models)
}
