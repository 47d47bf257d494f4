package operator

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"modelrelay/providers/pricing"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/ledger"
)

// Settler reads what tokens have spent, and finds and ends reservations of money that no process is going to settle.
type Settler interface {
	// Balances are those of tokens, by their ids, as ledger.Budgets has them.
	Balances(ctx context.Context, tokenIDs []string) (map[string]ledger.Balance, error)
	// LastUsed is when the ledger last recorded something of tokens, by their ids, as ledger.Budgets has it.
	LastUsed(ctx context.Context, tokenIDs []string) (map[string]time.Time, error)
	// Unsettled lists the reservations, the oldest first.
	Unsettled(ctx context.Context, filter UnsettledFilter) ([]Unsettled, error)
	// Release ends a reservation, as ledger.Budgets does.
	Release(ctx context.Context, r ledger.Reservation, charge bool) error
}

// UnsettledFilter selects reservations; an empty field selects all.
type UnsettledFilter struct {
	ID    string
	Token string // id
	Model string // public name
}

// Unsettled is a reservation that no process is going to settle, and why.
type Unsettled struct {
	ledger.Reservation

	Why string
}

// UnsettledRow is such a reservation as operators read it.
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

func newUnsettledList(found []Unsettled) UnsettledList {
	list := UnsettledList{Object: "list", Data: make([]UnsettledRow, len(found))}
	for i, u := range found {
		list.Data[i] = UnsettledRow{ID: u.ID, Token: u.Token, Model: u.Model, Amount: pricing.Money(u.Amount), Since: u.Since, Why: u.Why}
		list.Amount += list.Data[i].Amount
	}
	return list
}

// ListUnsettled returns the reservations of calls whose gateway is gone, and of tasks that do not run.
func (s *Service) ListUnsettled(ctx context.Context, by Actor, in *UnsettledQuery) (UnsettledList, error) {
	if err := reads(by, nil); err != nil {
		return UnsettledList{}, err
	}
	token, err := s.TokenID(ctx, in.Token)
	if err != nil {
		return UnsettledList{}, err
	}
	found, err := s.Money.Unsettled(ctx, UnsettledFilter{Token: token, Model: in.Model})
	return newUnsettledList(found), StoreFault("reservation", "", err)
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
		filter := UnsettledFilter{Model: in.Model}
		if in.ID != everyUnsettled {
			filter.ID = in.ID
		}
		var err error
		if filter.Token, err = s.TokenID(ctx, in.Token); err != nil {
			return UnsettledList{}, err
		}
		list, err := s.Money.Unsettled(ctx, filter)
		var ended []Unsettled
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
		if err == nil && len(ended) == 0 && filter.ID != "" {
			return UnsettledList{}, StoreFault("unsettled reservation", in.ID, storage.ErrNotFound)
		}
		return newUnsettledList(ended), StoreFault("reservation", in.ID, err)
	})
}
