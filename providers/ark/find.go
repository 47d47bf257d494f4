package ark

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// pageSize is the largest page of the list. mostPages is how many pages one look-up reads.
	pageSize  = 500
	mostPages = 4
	// listEvery is the interval at which an account may read a page, with a margin.
	listEvery = 1500 * time.Millisecond
)

// Find searches the vendor's list of a week's jobs for the attempt's safety_identifier. A job that is not listed may still exist.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	name, err := named(req)
	if err != nil {
		return providers.Ticket{}, upstream.Undecided(err)
	}
	if name == "" {
		return providers.Ticket{}, &providers.Fault{
			Kind: providers.Upstream, Message: "It is not known whether the upstream accepted the job.",
			Err: fmt.Errorf("%w for a safety_identifier of the client's own", providers.ErrNoLookup),
		}
	}
	for page := 1; page <= mostPages; page++ {
		if page > 1 {
			if err := pause(ctx); err != nil {
				return providers.Ticket{}, upstream.Undecided(err)
			}
		}
		items, err := v.list(ctx, to, page)
		if err != nil {
			return providers.Ticket{}, upstream.Undecided(err)
		}
		for _, one := range items {
			if id := one.Get("id"); string(one.Get("safety_identifier")) == name && id != "" {
				return upstream.NewTicket(id, nil)
			}
		}
		if len(items) < pageSize {
			break
		}
	}
	return providers.Ticket{}, &providers.Fault{Kind: providers.NotFound, Message: "The upstream lists no such job."}
}

// list returns a page of the jobs of the target's model. Keys with restricted rights may list only these.
func (v *Videos) list(ctx context.Context, to providers.Target, page int) ([]upstream.Doc, error) {
	query := url.Values{"page_num": {strconv.Itoa(page)}, "page_size": {strconv.Itoa(pageSize)}, "filter.model": {to.Model}}
	list, err := v.Jobs.Read(ctx, to, upstream.JobRequest{Path: tasksPath + "?" + query.Encode()})
	return slices.Collect(list.All("items")), err
}

// pause waits until the next page may be read.
func pause(ctx context.Context) error {
	timer := time.NewTimer(listEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
