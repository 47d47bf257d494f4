package upstream

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
)

// Record is a vendor's record of a job.
type Record interface {
	// VideoStatus interprets the record. Texts that are shown do not contain the key.
	VideoStatus(key providers.Secret) (providers.VideoStatus, error)
	// VideoLinks are the links of the job's videos by output, "" if one cannot be read.
	VideoLinks() []string
}

// Linked implements an adapter, except Submit, for a vendor whose record of a job has links to the videos.
type Linked[R Record] struct {
	Jobs *Jobs
	// Path returns the path of the record of a job. Read, unless nil, reads the record instead.
	Path func(ticket providers.Ticket) string
	Read func(ctx context.Context, to providers.Target, ticket providers.Ticket) (R, error)
	// Lost reports whether an error is the vendor's own code for an unknown job; nil: the status shows it.
	Lost func(error) bool
	// LinkKey: links at the channel's own origin require the key.
	LinkKey bool
	// Paced is how often the vendor may and must be polled.
	Paced providers.Pace
	// UnknownJob is an id that no job has, for Check.
	UnknownJob string
}

// Pace implements providers.Paced.
func (l Linked[R]) Pace() providers.Pace { return l.Paced }

// Record reads the record of a job.
func (l Linked[R]) Record(ctx context.Context, to providers.Target, ticket providers.Ticket) (record R, err error) {
	if l.Read != nil {
		return l.Read(ctx, to, ticket)
	}
	err = l.Jobs.Read(ctx, to, JobRequest{Path: l.Path(ticket)}, &record)
	return record, err
}

// Poll implements providers.VideoAdapter.
func (l Linked[R]) Poll(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
	record, err := l.Record(ctx, to, ticket)
	switch {
	case l.lost(err):
		return ForgottenJob(), nil
	case err != nil && l.Lost != nil: // which has reported that the job is there
		return providers.VideoStatus{}, err
	case err != nil:
		return Unread(err)
	}
	return record.VideoStatus(to.Key)
}

func (l Linked[R]) lost(err error) bool { return err != nil && l.Lost != nil && l.Lost(err) }

// Open implements providers.VideoAdapter. It reads the link again each time.
func (l Linked[R]) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return l.open(ctx, to, ticket, output, R.VideoLinks)
}

// OpenThumbnail implements providers.Variants for a vendor that makes one cover of each video, with links to the covers.
func (l Linked[R]) OpenThumbnail(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string, covers func(R) []string,
) (providers.Video, error) {
	if variant != providers.Thumbnail {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream makes no %s.", variant)
	}
	return l.open(ctx, to, ticket, output, covers)
}

func (l Linked[R]) open(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, links func(R) []string,
) (providers.Video, error) {
	record, err := l.Record(ctx, to, ticket)
	if err != nil && !l.lost(err) {
		return providers.Video{}, err
	}
	at := links(record)
	if output < 0 || output >= len(at) || at[output] == "" {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream does not have video %d, or no longer.", output+1)
	}
	return l.Jobs.Open(ctx, to, at[output], l.LinkKey)
}

// Check implements providers.Checker with a look-up of a job that does not exist.
func (l Linked[R]) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := l.Record(ctx, to, providers.Ticket{Job: l.UnknownJob})
	return LookedUp(err, l.Lost)
}

// Start sends a create once and returns the ticket of the job. The named member of the answer is the job's id.
func (j *Jobs) Start(ctx context.Context, to providers.Target, path string, body []byte, id string) (providers.Ticket, error) {
	made := make(map[string]json.RawMessage)
	if err := j.Read(ctx, to, Create(path, body), &made); err != nil {
		return providers.Ticket{}, err
	}
	return NewTicket(LooseOf(made[id]), nil)
}

// Create returns the request of a create, which is paid.
func Create(path string, body []byte) JobRequest {
	return JobRequest{Method: http.MethodPost, Path: path, Body: body, Paid: true}
}

// NewTicket returns the ticket of a job with the adapter's data, nil for none. A job without an id is a malformed answer.
func NewTicket(id Loose, own any) (providers.Ticket, error) {
	if id == "" {
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

// Stop sends the request that cancels a job. A job that the vendor does not know is not an error.
func (j *Jobs) Stop(ctx context.Context, to providers.Target, method, path string) error {
	_, err := j.Do(ctx, to, JobRequest{Method: method, Path: path})
	if Forgotten(err) {
		return nil
	}
	return err
}

// States maps a vendor's status to the state of a job. An unknown status, or none, means running. The adapter handles failed jobs
// before.
type States struct {
	// Queued and Done are the vendor's statuses, separated by spaces.
	Queued, Done string
	// Life is how long the links of a finished job work from now; 0 if unknown or in the record.
	Life time.Duration
}

// Status returns the status of a job with the links of its videos. A finished job without a link is a malformed answer.
func (s States) Status(word Loose, links []string) (providers.VideoStatus, error) {
	status := providers.VideoStatus{State: providers.JobRunning, Progress: -1, Word: providers.Cut(string(word), providers.WordLimit)}
	switch {
	case slices.Contains(strings.Fields(s.Queued), string(word)):
		status.State = providers.JobQueued
	case slices.Contains(strings.Fields(s.Done), string(word)):
		if len(links) == 0 || links[0] == "" {
			return providers.VideoStatus{}, BrokenAnswer("done without a link", nil)
		}
		status.State, status.Outputs = providers.JobDone, len(links)
		if s.Life > 0 {
			status.Dies = time.Now().Add(s.Life)
		}
	}
	return status, nil
}
