package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
)

// Linked implements an adapter for a vendor whose record of a job has links to the videos.
type Linked struct {
	Jobs *Jobs
	// Create writes a create. It fails only before a job was created. ID are the paths of the job's id in the answer.
	Create func(ctx context.Context, to providers.Target, req providers.VideoRequest) (JobRequest, error)
	ID     []string
	// Path is the path of the record of a job, with "%s" for its id. Read, unless nil, reads the record instead.
	Path string
	Read func(ctx context.Context, jobs *Jobs, to providers.Target, ticket providers.Ticket) (Doc, error)
	// Status interprets the record with its Links. Texts that are shown do not contain the key.
	Status func(job Doc, links []string, key providers.Secret) (providers.VideoStatus, error)
	// Links returns the links of the job's videos by output, "" if one cannot be read.
	Links func(job Doc) []string
	// Lost reports whether an error is the vendor's own code for an unknown job; nil: the status shows it.
	Lost func(error) bool
	// LinkKey: links at the channel's own origin require the key.
	LinkKey bool
	// Paced is how often the vendor may and must be polled.
	Paced providers.Pace
	// UnknownJob is an id that no job has, for Check.
	UnknownJob string
}

// Link returns Linked.Links for a vendor that makes one video: the first link at the paths.
func Link(paths ...string) func(Doc) []string {
	return func(job Doc) []string { return []string{string(job.Get(paths...))} }
}

// Submit implements providers.VideoAdapter.
func (l Linked) Submit(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	create, err := l.Create(ctx, to, req)
	if err != nil {
		return providers.Ticket{}, err
	}
	return l.Jobs.Start(ctx, to, create, l.ID...)
}

// Pace implements providers.Paced.
func (l Linked) Pace() providers.Pace { return l.Paced }

// Record reads the record of a job.
func (l Linked) Record(ctx context.Context, to providers.Target, ticket providers.Ticket) (Doc, error) {
	if l.Read != nil {
		return l.Read(ctx, l.Jobs, to, ticket)
	}
	return l.Jobs.Read(ctx, to, JobRequest{Path: l.JobPath(ticket)})
}

// JobPath returns the path of the record of a job.
func (l Linked) JobPath(ticket providers.Ticket) string {
	return fmt.Sprintf(l.Path, url.PathEscape(ticket.Job))
}

// Poll implements providers.VideoAdapter.
func (l Linked) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	record, err := l.Record(ctx, to, ticket)
	switch {
	case l.lost(err):
		return ForgottenJob(), nil
	case err != nil:
		return providers.VideoStatus{}, err
	}
	return l.Status(record, l.Links(record), to.Key)
}

func (l Linked) lost(err error) bool {
	if err != nil && l.Lost != nil {
		return l.Lost(err)
	}
	return Forgotten(err)
}

// Open implements providers.VideoAdapter. It reads the link again each time.
func (l Linked) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return l.open(ctx, to, ticket, output, l.Links)
}

// OpenThumbnail implements providers.Variants for a vendor that makes one cover of each video, with links to the covers.
func (l Linked) OpenThumbnail(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string, covers func(Doc) []string,
) (providers.Video, error) {
	if variant != providers.Thumbnail {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream makes no %s.", variant)
	}
	return l.open(ctx, to, ticket, output, covers)
}

func (l Linked) open(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, links func(Doc) []string,
) (providers.Video, error) {
	record, err := l.Record(ctx, to, ticket)
	if err != nil && (l.Lost == nil || !l.lost(err)) {
		return providers.Video{}, err
	}
	at := links(record)
	if output < 0 || output >= len(at) || at[output] == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream does not have video %d, or no longer.", output+1)
	}
	return l.Jobs.Open(ctx, to, at[output], l.LinkKey)
}

// Check implements providers.Checker with a look-up of a job that does not exist.
func (l Linked) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := l.Record(ctx, to, providers.Ticket{Job: l.UnknownJob})
	return LookedUp(err, l.Lost)
}

// StopWaiting cancels a job of a vendor whose request for that also deletes a job that has ended, so the job is read first. running: the
// vendor stops a job that has begun as well.
func (l Linked) StopWaiting(ctx context.Context, to providers.Target, ticket providers.Ticket, running bool, stop JobRequest) error {
	state, err := l.state(ctx, to, ticket)
	switch {
	case err != nil || state == "":
		return err
	case state == providers.JobRunning && !running:
		return runs(nil)
	}
	if _, err = l.Jobs.Do(ctx, to, stop); l.lost(err) {
		return nil
	}
	return err
}

// StopUnlessRefused cancels a job of a vendor that refuses the request for a job that has ended, and perhaps for one that has begun. After
// a fault for which refused returns true, it reads the job.
func (l Linked) StopUnlessRefused(
	ctx context.Context, to providers.Target, ticket providers.Ticket, stop JobRequest, refused func(*providers.Fault) bool,
) error {
	_, err := l.Jobs.Do(ctx, to, stop)
	if err == nil || l.lost(err) {
		return nil
	}
	fault := providers.AsFault(err)
	if !refused(fault) {
		return err
	}
	state, err := l.state(ctx, to, ticket)
	if err != nil || state == "" {
		return err
	}
	return runs(fault)
}

// state returns the state of a job that continues, "" for a job that has ended or is unknown to the vendor.
func (l Linked) state(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoState, error) {
	record, err := l.Record(ctx, to, ticket)
	switch {
	case l.lost(err):
		return "", nil
	case err != nil:
		return "", err
	}
	status, err := l.Status(record, l.Links(record), to.Key)
	if err != nil || status.State != providers.JobQueued && status.State != providers.JobRunning {
		return "", nil //nolint:nilerr // a finished job without a link
	}
	return status.State, nil
}

func runs(cause *providers.Fault) *providers.Fault {
	fault := &providers.Fault{Kind: providers.Conflict, Message: "The upstream cannot stop a running job.", Accepted: providers.NotAccepted}
	if cause != nil {
		fault.Err = cause
	}
	return fault
}

// Start sends a create once and returns the ticket of the job. id are the paths of the job's id in the answer.
func (j *Jobs) Start(ctx context.Context, to providers.Target, create JobRequest, id ...string) (providers.Ticket, error) {
	made, err := j.Read(ctx, to, create)
	if err != nil {
		return providers.Ticket{}, err
	}
	return NewTicket(made.Get(id...), create.Own)
}

// Create returns the request of a create, which is paid.
func Create(path string, body []byte) JobRequest {
	return JobRequest{Method: http.MethodPost, Path: path, Body: body, Paid: true}
}

// NewTicket returns the ticket of a job with the adapter's data, nil for none. An answer without an id, or with the id 0, is malformed.
func NewTicket(id Loose, own any) (providers.Ticket, error) {
	if id == "" || id == "0" {
		return providers.Ticket{}, BrokenAnswer("no id of the job", nil)
	}
	ticket := providers.Ticket{Job: string(id)}
	if own == nil {
		return ticket, nil
	}
	var err error
	if ticket.Data, err = json.Marshal(own); err != nil {
		return providers.Ticket{}, BrokenAnswer("ticket", err)
	}
	return ticket, nil
}

// States maps a vendor's status to the state of a job. An unknown status, or none, means running. The adapter handles failed jobs before.
type States struct {
	// Queued and Done are the vendor's statuses, separated by spaces.
	Queued, Done string
	// Life is how long the links of a finished job work from now; 0 if unknown or in the record.
	Life time.Duration
}

// Status returns the status of a job with the links of its videos. A finished job without a link is a malformed answer.
func (s States) Status(word Loose, links []string) (providers.VideoStatus, error) {
	status := providers.VideoStatus{State: providers.JobRunning, Progress: -1, VendorState: providers.Cut(string(word), providers.WordLimit)}
	switch {
	case slices.Contains(strings.Fields(s.Queued), string(word)):
		status.State = providers.JobQueued
	case slices.Contains(strings.Fields(s.Done), string(word)):
		if len(links) == 0 || links[0] == "" {
			return providers.VideoStatus{}, BrokenAnswer("done without a link", nil)
		}
		status.State, status.Outputs = providers.JobDone, len(links)
		if s.Life > 0 {
			status.ExpiresAt = time.Now().Add(s.Life)
		}
	}
	return status, nil
}
