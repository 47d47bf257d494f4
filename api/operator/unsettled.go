package operator

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/providers/pricing"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/ledger"
)

// Settler reads what tokens have spent and reserved, and ends reservations, as ledger.Budgets does.
type Settler interface {
	// Balances are those of tokens, by their ids.
	Balances(ctx context.Context, tokenIDs []string) (map[string]ledger.Balance, error)
	// LastUsed is when the ledger last recorded something of tokens, by their ids.
	LastUsed(ctx context.Context, tokenIDs []string) (map[string]time.Time, error)
	// Reservations lists what is reserved by one token or, if the id is empty, by all; the oldest first.
	Reservations(ctx context.Context, tokenID string) ([]ledger.Reservation, error)
	Release(ctx context.Context, r ledger.Reservation, charge bool) error
}

const (
	// startsWithin is how long after its reservation a task surely runs, if it ever does.
	startsWithin = time.Minute
	// looksAtOnce is how many tasks are read at a time: thousands may be running.
	looksAtOnce = 16
)

// unsettled is a reservation that no process is going to settle, and why.
type unsettled struct {
	ledger.Reservation

	why string
}

// UnsettledRow is a reservation that no process is going to settle.
type UnsettledRow struct {
	ID     string        `json:"id" doc:"Reservation id; a task's reservation has the task's id"`
	Token  string        `json:"token" doc:"Token id"`
	Model  string        `json:"model"`
	Amount pricing.Money `json:"amount" doc:"In the currency of the prices"`
	Since  time.Time     `json:"since" doc:"When it was reserved"`
	Why    string        `json:"why" doc:"Why it will not be settled by itself"`
}

// UnsettledList is reservations, and what they add up to.
type UnsettledList struct {
	Object string         `json:"object" enum:"list"`
	Data   []UnsettledRow `json:"data" nullable:"false"`
	Amount pricing.Money  `json:"amount" doc:"Of all together, in the currency of the prices"`
}

// UnsettledQuery selects reservations.
type UnsettledQuery struct {
	Token string `query:"token" json:"token,omitempty" doc:"Only of this token, by id or name"`
	Model string `query:"model" json:"model,omitempty" doc:"Only of this model"`
}

// UnsettledName names one reservation, or all that a query selects.
type UnsettledName struct {
	ID string `path:"id" doc:"Of a reservation; all: each that is listed"`
	UnsettledQuery
}

// everyUnsettled is in the path for all that are listed.
const everyUnsettled = "all"

func newUnsettledList(found []unsettled) UnsettledList {
	list := UnsettledList{Object: "list", Data: make([]UnsettledRow, len(found))}
	for i, u := range found {
		list.Data[i] = UnsettledRow{ID: u.ID, Token: u.Token, Model: u.Model, Amount: pricing.Money(u.Amount), Since: u.Since, Why: u.why}
		list.Amount += list.Data[i].Amount
	}
	return list
}

// unsettled lists the reservations of calls whose gateway is gone, and of tasks that do not run; id selects one of them, "" all.
func (s *Service) unsettled(ctx context.Context, id string, in *UnsettledQuery) ([]unsettled, error) {
	token, err := s.TokenID(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	list, err := s.Money.Reservations(ctx, token)
	if err != nil {
		return nil, StoreFault("reservation", id, err)
	}
	found := make([]unsettled, len(list))
	var looks errgroup.Group
	looks.SetLimit(looksAtOnce)
	for i, r := range list {
		found[i].Reservation = r
		switch {
		case in.Model != "" && r.Model != in.Model, id != "" && r.ID != id:
		case r.Lost:
			found[i].why = "its gateway is gone"
		case r.Task && time.Since(r.Since) > startsWithin:
			looks.Go(func() error {
				task, _, _ := strings.Cut(r.ID, ".")
				runs, err := s.Tasks.Runs(ctx, task)
				if err == nil && !runs {
					found[i].why = "the task does not run"
				}
				return err
			})
		}
	}
	err = looks.Wait()
	return slices.DeleteFunc(found, func(u unsettled) bool { return u.why == "" }), StoreFault("reservation", id, err)
}

// ListUnsettled returns the reservations of calls whose gateway is gone, and of tasks that do not run.
func (s *Service) ListUnsettled(ctx context.Context, by Actor, in *UnsettledQuery) (UnsettledList, error) {
	if err := reads(by, nil); err != nil {
		return UnsettledList{}, err
	}
	found, err := s.unsettled(ctx, "", in)
	return newUnsettledList(found), err
}

// ChargeUnsettled counts a reservation as spent.
func (s *Service) ChargeUnsettled(ctx context.Context, by Actor, in *UnsettledName) (UnsettledList, error) {
	return s.endUnsettled(ctx, by, "charge_unsettled", in, true)
}

// RefundUnsettled gives a reservation back to its token.
func (s *Service) RefundUnsettled(ctx context.Context, by Actor, in *UnsettledName) (UnsettledList, error) {
	return s.endUnsettled(ctx, by, "refund_unsettled", in, false)
}

// endUnsettled ends what the input selects and returns what it has ended. What was settled meanwhile is none of it.
func (s *Service) endUnsettled(ctx context.Context, by Actor, what string, in *UnsettledName, charge bool) (UnsettledList, error) {
	return change(ctx, s, by, what, in.ID, nil, func(entry *audit.Entry) (UnsettledList, error) {
		id := in.ID
		if id == everyUnsettled {
			id = ""
		}
		list, err := s.unsettled(ctx, id, &in.UnsettledQuery)
		if err != nil {
			return UnsettledList{}, err
		}
		var ended []unsettled
		for _, u := range list {
			if err = s.Money.Release(ctx, u.Reservation, charge); errors.Is(err, storage.ErrNotFound) {
				err = nil
				continue
			}
			if err != nil {
				break
			}
			ended = append(ended, u)
			entry.Changes = append(entry.Changes, audit.Change{Field: u.ID, Old: json.RawMessage(pricing.Money(u.Amount).String())})
		}
		if err == nil && len(ended) == 0 && id != "" {
			return UnsettledList{}, StoreFault("unsettled reservation", in.ID, storage.ErrNotFound)
		}
		return newUnsettledList(ended), StoreFault("reservation", in.ID, err)
	})
}
