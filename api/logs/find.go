package logs

import (
	"context"
	"fmt"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/calllog"
)

const (
	// findTimeout bounds the search for a call by an id that does not have its time, about.
	findTimeout = 4 * time.Second
	// maxOthers is the maximum number of other calls with the same client value that Find names.
	maxOthers = 20
)

// Find returns a call by any of its ids, the request's own before all others: a value that another client chose does not hide it. Of
// several calls with a client's value it returns the newest and names the others. A missing call is a providers.Fault of kind NotFound.
func (r Reader) Find(ctx context.Context, id string) (Call, error) {
	call, err := r.find(ctx, id)
	return r.shown(call), err
}

func (r Reader) find(ctx context.Context, id string) (Call, error) {
	var found []calllog.Call
	var searched calllog.Page
	arrived, own := edge.RequestTime(id)
	var err error
	filter := calllog.Filter{ID: id}
	if own { // another gateway may have made the id, and sent the call here at about that time
		found, err = r.named(ctx, filter, arrived)
	} else {
		found, searched, err = r.collect(ctx, filter, 1)
	}
	switch {
	case err != nil:
		return Call{}, err
	case len(found) == 0:
		return Call{}, notFound(id, searched)
	}
	call := NewCall(found[0])
	if call.ClientID != id {
		return call, nil
	}
	if !own {
		found, _, err = r.collect(ctx, filter, 1+maxOthers)
	}
	for _, other := range found {
		if other.ID != call.ID {
			call.Others = append(call.Others, other.ID)
		}
	}
	return call, err
}

func (r Reader) named(ctx context.Context, filter calllog.Filter, arrived time.Time) ([]calllog.Call, error) {
	if r.calls == nil {
		return nil, noLog()
	}
	filter.Token = r.token
	found, err := r.calls.Named(ctx, filter, arrived, 1+maxOthers, r.token)
	return found, awayFault("The log of calls", err)
}

// collect reads pages until it has most calls, the log ends or the time has passed.
func (r Reader) collect(ctx context.Context, filter calllog.Filter, most int) (found []calllog.Call, searched calllog.Page, err error) {
	within := calllog.Range{Limit: most}
	for ends := time.Now().Add(findTimeout); ; {
		page, err := r.scan(ctx, filter, within)
		if err != nil {
			return nil, searched, err
		}
		found = append(found, page.Calls...)
		if page.Looked > 0 {
			searched.Looked, searched.Back = searched.Looked+page.Looked, page.Back
		}
		within.After, within.Limit = page.Next, most-len(found)
		if page.Next == "" || within.Limit <= 0 || time.Now().After(ends) {
			return found, searched, nil
		}
	}
}

// notFound returns the fault of a search without a result, with the time that it reached.
func notFound(id string, searched calllog.Page) error {
	message := fmt.Sprintf("No call has the id %q.", id)
	if searched.Looked > 0 {
		message = fmt.Sprintf("None of the last %d calls, back to %s, has the id %q.", searched.Looked, searched.Back.Format(time.RFC3339), id)
	}
	return &providers.Fault{Kind: providers.NotFound, Message: message}
}
