package vidu

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// pageSize is the size of a page of the list. mostPages is how many pages one look-up reads. mostReads bounds its reads of single tasks.
	pageSize  = 100
	mostPages = 50
	mostReads = 20
)

// Find searches the list of the last days' tasks for the request's idempotency key as payload. A task that is not listed may still exist.
func (v *Videos) Find(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
	ticket, err := v.find(ctx, to, req)
	switch {
	case err != nil:
		return providers.Ticket{}, upstream.Undecided(err)
	case ticket.Job != "":
		return ticket, nil
	}
	// The vendor does not document how soon and for how long a job is listed, so an unlisted job may exist.
	return ticket, providers.Faultf(providers.NotFound, "The upstream lists no such job.")
}

func (v *Videos) find(ctx context.Context, to providers.Target, req providers.VideoRequest) (ticket providers.Ticket, err error) {
	reads, token, before := 0, "", upstream.Loose("")
	for page := range mostPages {
		tasks, next, err := v.list(ctx, to, page, token)
		if err != nil {
			return ticket, err
		}
		if len(tasks) > 0 && tasks[0].Get("id") == before {
			return ticket, nil // the same page again
		}
		if len(tasks) > 0 {
			before = tasks[0].Get("id")
		}
		for _, one := range tasks {
			id, payload, prompt := one.Get("id"), one.At("payload"), one.Get("prompt")
			// The vendor does not document the payload in the list, but its clients use it. If it is missing, the task is read.
			if payload == nil && (prompt == upstream.Loose(req.Prompt) || prompt == "") && reads < mostReads {
				reads++
				t, err := v.Record(ctx, to, providers.Ticket{Job: string(id)})
				if err != nil {
					return ticket, err
				}
				payload = t.At("payload")
			}
			if payload != nil && string(payload.Get("")) == req.IdempotencyKey && id != "" {
				return upstream.NewTicket(id, nil)
			}
		}
		if next == "" && len(tasks) < pageSize {
			return ticket, nil
		}
		token = next
	}
	return ticket, nil
}

// list reads a page of the list; next is "" after the last.
func (v *Videos) list(ctx context.Context, to providers.Target, page int, token string) (tasks []upstream.Doc, next string, err error) {
	query := url.Values{"pager.page": {strconv.Itoa(page)}, "pager.pagesz": {strconv.Itoa(pageSize)}}
	if token != "" {
		query.Set("pager.page_token", token)
	}
	list, err := v.Jobs.Read(ctx, to, upstream.JobRequest{Path: "/tasks?" + query.Encode()})
	switch {
	case err != nil:
		return nil, "", err
	case !list.Has("tasks"):
		return nil, "", upstream.BrokenAnswer("no list of tasks", nil)
	}
	return slices.Collect(list.All("tasks")), string(list.Get("next_page_token")), nil
}
