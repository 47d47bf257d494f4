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

// Record is what a vendor says of a job.
type Record interface {
	// VideoStatus reads the vendor's words. The key is taken out of those that are shown.
	VideoStatus(key providers.Secret) (providers.VideoStatus, error)
	// VideoLinks are where the job's videos lie, by output; one that is "", or missing, cannot be read.
	VideoLinks() []string
}

// Linked is the part of an adapter whose vendor keeps a record of each job with links to its videos: all but the submit.
type Linked[R Record] struct {
	Jobs *Jobs
	// Path is where the record of a job lies. Read, where it is not nil, reads one in the vendor's own way.
	Path func(ticket providers.Ticket) string
	Read func(ctx context.Context, to providers.Target, ticket providers.Ticket) (R, error)
	// Lost tells the vendor's own word that it does not know a job; nil where the status does.
	Lost func(error) bool
	// LinkKey: links at the channel's own origin want the key.
	LinkKey bool
	// Paced is how often the vendor may be asked about a job, and how often it must be.
	Paced providers.Pace
	// Nobody is the id of a job that nobody has made, for Check.
	Nobody string
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
	case err != nil && l.Lost != nil: // which has told that the job is there
		return providers.VideoStatus{}, err
	case err != nil:
		return Unread(err)
	}
	return record.VideoStatus(to.Key)
}

func (l Linked[R]) lost(err error) bool { return err != nil && l.Lost != nil && l.Lost(err) }

// Open implements providers.VideoAdapter. The link is asked for anew each time.
func (l Linked[R]) Open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int) (providers.Video, error) {
	return l.open(ctx, to, ticket, output, R.VideoLinks)
}

// OpenThumbnail is providers.Variants of a vendor that makes one picture of each video, at the links of covers.
func (l Linked[R]) OpenThumbnail(
	ctx context.Context, to providers.Target, ticket providers.Ticket, output int, variant string, covers func(R) []string,
) (providers.Video, error) {
	if variant != providers.Thumbnail {
		return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream makes no %s.", variant)
	}
	return l.open(ctx, to, ticket, output, covers)
}

func (l Linked[R]) open(ctx context.Context, to providers.Target, ticket providers.Ticket, output int, links func(R) []string) (providers.Video, error) {
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

// Check implements providers.Checker, by a look-up of a job that nobody has made.
func (l Linked[R]) Check(ctx context.Context, to providers.Target, _ []string) (providers.Checked, error) {
	_, err := l.Record(ctx, to, providers.Ticket{Job: l.Nobody})
	return LookedUp(err, l.Lost)
}

// Start sends a create, once, and makes the ticket of the job that it started, whose id is the named member of the answer.
func (j *Jobs) Start(ctx context.Context, to providers.Target, path string, body []byte, id string) (providers.Ticket, error) {
	made := make(map[string]json.RawMessage)
	if err := j.Read(ctx, to, Create(path, body), &made); err != nil {
		return providers.Ticket{}, err
	}
	return NewTicket(LooseOf(made[id]), nil)
}

// Create is the request of a create, which is paid for.
func Create(path string, body []byte) JobRequest {
	return JobRequest{Method: http.MethodPost, Path: path, Body: body, Paid: true}
}

// NewTicket is the ticket of a job, with the adapter's own part, nil for none. A job without an id is a broken answer.
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

// Stop sends the request that cancels a job. That the vendor does not know the job is no error.
func (j *Jobs) Stop(ctx context.Context, to providers.Target, method, path string) error {
	_, err := j.Do(ctx, to, JobRequest{Method: method, Path: path})
	if Forgotten(err) {
		return nil
	}
	return err
}

// States reads a vendor's word for where a job stands. An unknown one, and none at all, means still running; words for a job that
// failed are the adapter's to read before.
type States struct {
	// Queued and Done are the vendor's words, separated by spaces.
	Queued, Done string
	// Life is how long the links of a job that is done work from now; 0 where it is not known, or said in the record.
	Life time.Duration
}

// Status is that of a job with the links of its videos. One that is done and has no link is a broken answer.
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
