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

// Settler reads what tokens have spent and reserved, and ends reservations; ledger.Budgets implements it.
type Settler interface {
	// Balances returns the balances of tokens by id.
	Balances(ctx context.Context, tokenIDs []string) (map[string]ledger.Balance, error)
	// LastUsed returns the times of the ledger's last entries of tokens by id.
	LastUsed(ctx context.Context, tokenIDs []string) (map[string]time.Time, error)
	// Reservations lists the reservations of one token or, if the id is empty, of all; the oldest first.
	Reservations(ctx context.Context, tokenID string) ([]ledger.Reservation, error)
	Release(ctx context.Context, r ledger.Reservation, charge bool) error
}

const (
	// startsWithin is the time after its reservation within which a task starts, if it starts at all.
	startsWithin = time.Minute
	// lookupsAtOnce is how many tasks are read concurrently: thousands may be running.
	lookupsAtOnce = 16
)

// UnsettledRow is a reservation that no process will settle.
type UnsettledRow struct {
	ID     string        `json:"id" doc:"Reservation id; a task's reservation has the task's id"`
	Token  string        `json:"token" doc:"Token id"`
	Model  string        `json:"model"`
	Amount pricing.Money `json:"amount" doc:"In the currency of the prices"`
	Since  time.Time     `json:"since" doc:"When it was reserved"`
	Why    string        `json:"why" doc:"Why the gateway does not settle it"`

	reservation ledger.Reservation
}

// UnsettledList has reservations and their sum.
type UnsettledList struct {
	Object string         `json:"object" enum:"list"`
	Data   []UnsettledRow `json:"data" nullable:"false"`
	Amount pricing.Money  `json:"amount" doc:"Sum of all amounts, in the currency of the prices"`
}

// UnsettledQuery selects reservations.
type UnsettledQuery struct {
	Token string `query:"token" json:"token,omitempty" doc:"Only reservations of this token, by id or name"`
	Model string `query:"model" json:"model,omitempty" doc:"Only reservations of this model"`
}

// UnsettledName selects one reservation, or all of a query.
type UnsettledName struct {
	ID string `path:"id" doc:"Id of a reservation; all: every listed reservation"`
	UnsettledQuery
}

// everyUnsettled is the path value that selects all of the query.
const everyUnsettled = "all"

func newUnsettledList(rows []UnsettledRow) UnsettledList {
	list := UnsettledList{Object: "list", Data: orNone(rows)}
	for _, row := range rows {
		list.Amount += row.Amount
	}
	return list
}

// unsettled lists the reservations of calls without a gateway process, and of tasks that do not run; id selects one of them, "" all.
func (s *Service) unsettled(ctx context.Context, id string, in *UnsettledQuery) ([]UnsettledRow, error) {
	token, err := s.TokenID(ctx, in.Token)
	if err != nil {
		return nil, err
	}
	list, err := s.Money.Reservations(ctx, token)
	if err != nil {
		return nil, StoreFault("reservation", id, err)
	}
	rows := make([]UnsettledRow, len(list))
	var lookups errgroup.Group
	lookups.SetLimit(lookupsAtOnce)
	for i, r := range list {
		rows[i] = UnsettledRow{ID: r.ID, Token: r.Token, Model: r.Model, Amount: pricing.Money(r.Amount), Since: r.Since, reservation: r}
		switch {
		case in.Model != "" && r.Model != in.Model, id != "" && r.ID != id:
		case r.Lost:
			rows[i].Why = "its gateway is gone"
		case r.Task && time.Since(r.Since) > startsWithin:
			lookups.Go(func() error {
				task, _, _ := strings.Cut(r.ID, ".")
				runs, err := s.Tasks.Runs(ctx, task)
				if err == nil && !runs {
					rows[i].Why = "the task does not run"
				}
				return err
			})
		}
	}
	err = lookups.Wait()
	return slices.DeleteFunc(rows, func(row UnsettledRow) bool { return row.Why == "" }), StoreFault("reservation", id, err)
}

// ListUnsettled returns the reservations of calls without a gateway process, and of tasks that do not run.
func (s *Service) ListUnsettled(ctx context.Context, by Actor, in *UnsettledQuery) (UnsettledList, error) {
	if err := reads(by, nil); err != nil {
		return UnsettledList{}, err
	}
	found, err := s.unsettled(ctx, "", in)
	return newUnsettledList(found), err
}

// ChargeUnsettled records a reservation as spent.
func (s *Service) ChargeUnsettled(ctx context.Context, by Actor, in *UnsettledName) (UnsettledList, error) {
	return s.endUnsettled(ctx, by, "charge_unsettled", in, true)
}

// RefundUnsettled returns a reservation to its token.
func (s *Service) RefundUnsettled(ctx context.Context, by Actor, in *UnsettledName) (UnsettledList, error) {
	return s.endUnsettled(ctx, by, "refund_unsettled", in, false)
}

// endUnsettled ends the reservations that the input selects, and returns those that it ended. Others may have been settled meanwhile.
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
		var ended []UnsettledRow
		for _, row := range list {
			if err = s.Money.Release(ctx, row.reservation, charge); errors.Is(err, storage.ErrNotFound) {
				err = nil
				continue
			}
			if err != nil {
				break
			}
			ended = append(ended, row)
			entry.Changes = append(entry.Changes, audit.Change{Field: row.ID, Old: json.RawMessage(row.Amount.String())})
		}
		if err == nil && len(ended) == 0 && id != "" {
			return UnsettledList{}, StoreFault("unsettled reservation", in.ID, storage.ErrNotFound)
		}
		return newUnsettledList(ended), StoreFault("reservation", in.ID, err)
	})
}
