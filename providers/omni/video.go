// Package omni adapts the videos of Gemini Omni, which Google's Gemini API makes as interactions in the background.
//
// Of the product it imports only providers and providers/upstream.
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
// whether an answer has a link or the video itself. The API of Google Cloud wants another credential and is not spoken.

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
		Name: "omni", Classify: upstream.ClassifyRPC, Reason: upstream.RPCReason,
		Authorize: upstream.KeyIn("X-Goog-Api-Key", ""),
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
	body, err := createBody(ctx, to.Model, before, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	var made interaction
	start := upstream.Create(interactionsPath, body)
	start.Inline = true
	if err := v.jobs.Read(ctx, to, start, &made); err != nil {
		return providers.Ticket{}, err
	}
	return upstream.NewTicket(made.ID, nil)
}

// Poll reads the interaction, and of one that is completed the file: it may not be ready yet.
func (v *Videos) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	i, err := v.interaction(ctx, to, ticket)
	if forgotten(err) {
		return upstream.ForgottenJob(), nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	s, err := i.status(to.Key)
	if err != nil || s.State != providers.JobDone {
		return s, err
	}
	return v.ready(ctx, to, i, s)
}

// ready returns the status of a completed interaction by the state of its file. If the state cannot be read, Open shows it.
func (v *Videos) ready(ctx context.Context, to providers.Target, i interaction, s providers.VideoStatus) (providers.VideoStatus, error) {
	name := fileName(i.video().URI)
	if name == "" {
		return s, nil
	}
	var file struct {
		State upstream.Loose `json:"state"`
	}
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: "/files/" + url.PathEscape(name)}, &file)
	if upstream.Forgotten(err) {
		return s, nil
	}
	if err != nil {
		return providers.VideoStatus{}, err
	}
	if file.State == "PROCESSING" {
		return providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: "PROCESSING"}, nil
	}
	return s, nil // a file that is marked FAILED can be read all the same
}

// Pace implements providers.Paced.
func (v *Videos) Pace() providers.Pace { return providers.Pace{Least: leastPoll} }

// Open reads the job's one video: at its link, which requires the key at the vendor's own origin, or in the interaction itself.
func (v *Videos) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	if err := upstream.OneOutput(output); err != nil {
		return providers.Video{}, err
	}
	i, err := v.interaction(ctx, to, ticket)
	if err != nil {
		return providers.Video{}, err
	}
	switch video := i.video(); {
	case video.URI != "":
		return v.jobs.Open(ctx, to, download(string(video.URI)), true)
	case video.Data != "":
		return v.jobs.OpenInline(ctx, to, upstream.JobRequest{Path: path(ticket)}, "data", 0)
	}
	return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
}

// Cancel stops a job. The vendor refuses it for one that has ended, so the interaction is read then.
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
	switch i.Status {
	case "queued", "in_progress", "requires_continuation":
		return fault
	}
	return nil
}

func path(ticket providers.Ticket) string {
	return interactionsPath + "/" + url.PathEscape(ticket.Job)
}

// interaction reads a job. A 400 of another reason than the job's name has been seen to pass, so it decides nothing.
func (v *Videos) interaction(ctx context.Context, to providers.Target, ticket providers.Ticket) (interaction, error) {
	var i interaction
	err := v.jobs.Read(ctx, to, upstream.JobRequest{Path: path(ticket), Inline: true}, &i)
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
		strings.Contains(strings.ToLower(upstream.RPCReason(fault.Upstream.Body)), "invalid interaction")
}

// download is the address of a file's bytes.
func download(uri string) string {
	at, err := url.Parse(uri)
	if err != nil || fileName(upstream.Loose(uri)) == "" {
		return uri
	}
	if !strings.HasSuffix(at.Path, ":download") {
		at.Path += ":download"
	}
	query := at.Query()
	query.Set("alt", "media")
	at.RawQuery = query.Encode()
	return at.String()
}

// fileName is the id of a file in its address, …/files/ID or …/files/ID:download; "" for another address.
func fileName(uri upstream.Loose) string {
	at, err := url.Parse(string(uri))
	if err != nil {
		return ""
	}
	_, name, found := strings.Cut(at.Path, "/files/")
	name = strings.TrimSuffix(name, ":download")
	if !found || strings.Contains(name, "/") {
		return ""
	}
	return name
}

// Check implements providers.Checker, with the list of models.
func (v *Videos) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return v.jobs.CheckModels(ctx, to, "/models?pageSize=1000", models)
}
