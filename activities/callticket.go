package activities

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

const (
	// ticketsFolder has the tickets of calls by their day of expiry: what remains at vendors when a task expires is deleted there.
	ticketsFolder = "tickets/"
	// forgetLimit is how long the deletion of a vendor's copy is tried, and forgetMost the longest wait between two tries.
	forgetLimit, forgetMost = 24 * time.Hour, 15 * time.Minute
	// forgetTimeout bounds one try.
	forgetTimeout = 30 * time.Second
)

// CallTicket is the vendor's handle of the answer of a call, which the vendor stores: its id, and the channel and key that have it.
type CallTicket struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Key is the fingerprint of the upstream key.
	Key string `json:"key"`
	// Object is the ticket's object in the archive.
	Object string `json:"object"`
}

// TicketOf returns the ticket of an answer with the vendor's id; nil for no id, and for an answer of no single channel.
func TicketOf(by providers.KeyRef, id string) *CallTicket {
	if by.Channel == "" || id == "" {
		return nil
	}
	return &CallTicket{ID: id, Channel: by.Channel, Key: by.Fingerprint}
}

// ticket returns the archive key of the ticket of a call.
func (in RelayInput) ticket() string {
	return ticketsFolder + in.Expires.UTC().Format(expiryDay) + "/" + in.TaskID + "/" + in.Incarnation
}

// keepTicket archives the ticket of a call.
func (c *calling) keepTicket(ctx context.Context, ticket *CallTicket) error {
	if ticket == nil {
		return nil
	}
	ticket.Object = c.in.ticket()
	if err := c.Objects.PutJSON(ctx, ticket.Object, ticket); err != nil {
		return fmt.Errorf("archive the ticket: %w", err)
	}
	return nil
}

// ask requests something of an answer at the channel and key that have it. The caller closes the body.
func (u *Upstreams) ask(ctx context.Context, of CallTicket, request providers.StoredRequest) (*http.Response, error) {
	pick, err := u.Channels.Resolve(of.Channel, of.Key, "")
	if err != nil {
		return nil, fmt.Errorf("resolve channel %q: %w", of.Channel, err)
	}
	vendor := u.Catalog[pick.Channel.Vendor]
	reader, stores := vendor.Relay.(providers.StoredReader)
	if !stores {
		return nil, fmt.Errorf("vendor %q of channel %q stores no answers: %w", pick.Channel.Vendor, of.Channel, router.ErrChannelGone)
	}
	request.ID = of.ID
	traced, span := u.turn(ctx, pick.Target, upstream.Step{Does: string(request.Do)})
	resp, err := reader.Stored(traced, pick.Target, request)
	span.End(providers.AsFault(err))
	return resp, err
}

// forget deletes what a vendor stores of an answer. It succeeds if the vendor does not have it. again: another try may succeed.
func (u *Upstreams) forget(ctx context.Context, of CallTicket) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	resp, err := u.ask(ctx, of, providers.StoredRequest{Do: providers.StoredDelete})
	if err == nil {
		return false, resp.Body.Close()
	}
	fault := providers.AsFault(err)
	switch {
	case errors.Is(err, router.ErrChannelGone):
		return false, err
	case fault.Upstream == nil, fault.Retryable():
		return true, err
	case fault.Upstream.Status == http.StatusNotFound, fault.Upstream.Status == http.StatusGone:
		return false, nil
	}
	return false, err
}

// forgetCopy deletes what the vendor stores of a task's answer, with its ticket. It tries for a day.
func (a *Remover) forgetCopy(ctx context.Context, taskID string, of CallTicket) error {
	info := activity.GetInfo(ctx)
	retry, err := a.forget(ctx, of)
	switch {
	case err != nil && retry && time.Since(info.ScheduledTime) < forgetLimit:
		wait := removalFirst
		for try := int32(1); try < info.Attempt && wait < forgetMost; try++ {
			wait *= 2
		}
		return again(record(err), min(wait, forgetMost))
	case err != nil:
		a.Log.WarnContext(ctx, "copy of an answer at its vendor not deleted", "task", taskID, "channel", of.Channel, "error", err)
	}
	if of.Object == "" {
		return nil
	}
	if err := a.Objects.Delete(ctx, of.Object); err != nil {
		return again(record(err), 0)
	}
	return nil
}

// sweepTickets deletes at their vendors the answers whose tasks have expired. Later sweeps try again what fails, for a day.
func (a *Sweeper) sweepTickets(ctx context.Context) error {
	for folder, err := range a.Objects.Folders(ctx, ticketsFolder) {
		if err != nil {
			return err
		}
		day, err := time.Parse(expiryDay, path.Base(folder))
		if err != nil || time.Since(day) < dayLength {
			continue // not a folder of ours, or not expired
		}
		last := time.Since(day) >= dayLength+forgetLimit
		for object, err := range a.Objects.List(ctx, folder) {
			if err != nil {
				return err
			}
			if err := a.sweepTicket(ctx, object.Key, last); err != nil {
				return err
			}
			activity.RecordHeartbeat(ctx)
		}
	}
	return nil
}

// sweepTicket deletes an answer at its vendor, and its ticket unless another sweep is to try again.
func (a *Sweeper) sweepTicket(ctx context.Context, key string, last bool) error {
	var ticket CallTicket
	if err := a.Objects.GetJSON(ctx, key, &ticket); err != nil {
		return err
	}
	again, err := a.forget(ctx, ticket)
	if err != nil {
		a.Log.WarnContext(ctx, "copy of an answer at its vendor not deleted", "task", path.Base(path.Dir(key)), "channel", ticket.Channel, "error", err, "again", again && !last)
	}
	if again && !last {
		return nil
	}
	return a.Objects.Delete(ctx, key)
}
