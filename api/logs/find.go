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
	// findTimeout bounds the search for a call, about.
	findTimeout = 4 * time.Second
	// clockSkew is the maximal difference between the clocks of gateways.
	clockSkew = time.Minute
	// usualCall is longer than most calls take: the search for a request's id begins so long after the request.
	usualCall = 5 * time.Minute
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
	filter, ends := calllog.Filter{ID: id}, time.Now().Add(findTimeout)
	if arrived, own := edge.RequestTime(id); own {
		// Another gateway may have made the id, and sent the call here at about that time.
		filter.Since, filter.Until = arrived.Add(-clockSkew), arrived.Add(clockSkew)
		request := filter
		request.ID, request.Request = "", id
		for _, after := range []string{calllog.PlaceAt(filter.Until.Add(usualCall)), ""} {
			found, _, err := r.collect(ctx, request, calllog.Range{After: after, Limit: 1}, ends)
			if err != nil {
				return Call{}, err
			}
			if len(found) > 0 {
				return NewCall(found[0]), nil
			}
		}
	}
	found, searched, err := r.collect(ctx, filter, calllog.Range{Limit: 1}, ends)
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
	found, _, err = r.collect(ctx, filter, calllog.Range{Limit: 1 + maxOthers}, time.Now().Add(findTimeout))
	for _, other := range found {
		if other.ID != call.ID {
			call.Others = append(call.Others, other.ID)
		}
	}
	return call, err
}

// collect reads pages of a range until it has the range's number of calls, the log ends, or at the given time.
func (r Reader) collect(
	ctx context.Context, filter calllog.Filter, within calllog.Range, ends time.Time,
) (found []calllog.Call, searched calllog.Page, err error) {
	for most := within.Limit; ; {
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
