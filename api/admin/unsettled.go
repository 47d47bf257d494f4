package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers/pricing"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/ledger"
)

// Settler tells what tokens have spent, and finds and ends money that is reserved and that nobody is going to settle.
type Settler interface {
	// Balances are those of tokens, by their ids, as ledger.Budgets has them.
	Balances(ctx context.Context, tokenIDs []string) (map[string]ledger.Balance, error)
	// LastUsed tells when the ledger was last told of tokens, by their ids, as ledger.Budgets does.
	LastUsed(ctx context.Context, tokenIDs []string) (map[string]time.Time, error)
	// Unsettled lists it, the oldest first.
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

// Unsettled is a reservation that nobody is going to settle, and why.
type Unsettled struct {
	ledger.Reservation

	Why string
}

// UnsettledRow is such a reservation as operators read it.
type UnsettledRow struct {
	ID     string        `json:"id" doc:"Reservation id; a task's reservation has the task's id"`
	Token  string        `json:"token" doc:"Token id"`
	Model  string        `json:"model"`
	Amount pricing.Money `json:"amount" doc:"In units of the prices"`
	Since  time.Time     `json:"since" doc:"When it was reserved"`
	Why    string        `json:"why" doc:"Why it will not be settled by itself"`
}

// NewUnsettledRows renders reservations and adds them up.
func NewUnsettledRows(list []Unsettled) (rows []UnsettledRow, sum pricing.Money) {
	rows = make([]UnsettledRow, len(list))
	for i, u := range list {
		rows[i] = UnsettledRow{ID: u.ID, Token: u.Token, Model: u.Model, Amount: pricing.Money(u.Amount), Since: u.Since, Why: u.Why}
		sum += rows[i].Amount
	}
	return rows, sum
}

// EndUnsettled charges or refunds what the filter selects and returns what it has ended, also beside an error. What was
// settled meanwhile is none of it.
func EndUnsettled(ctx context.Context, from Settler, filter UnsettledFilter, charge bool) ([]Unsettled, error) {
	list, err := from.Unsettled(ctx, filter)
	if err != nil {
		return nil, err
	}
	var ended []Unsettled
	for _, u := range list {
		err := from.Release(ctx, u.Reservation, charge)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return ended, err
		}
		ended = append(ended, u)
	}
	return ended, nil
}

// UnsettledChanges are reservations that were ended, for the audit log.
func UnsettledChanges(ended []Unsettled) []audit.Change {
	changes := make([]audit.Change, len(ended))
	for i, u := range ended {
		changes[i] = audit.Change{Field: u.ID, Old: json.RawMessage(pricing.Money(u.Amount).String())}
	}
	return changes
}

// Paths of the reservations.
const (
	unsettledPath   = Root + "/usage/unsettled"
	reservationPath = unsettledPath + "/{id}"
)

// everyUnsettled stands in the path for all that are listed.
const everyUnsettled = "all"

type unsettledQuery struct {
	Token string `query:"token" doc:"Of this token, by id or name"`
	Model string `query:"model" doc:"Of this model"`
}

type unsettledName struct {
	ID    string `path:"id" doc:"Of a reservation; all: each that is listed"`
	Token string `query:"token" doc:"Only of this token, by id or name"`
	Model string `query:"model" doc:"Only of this model"`
}

type adminUnsettledList struct {
	Object string         `json:"object" enum:"list"`
	Data   []UnsettledRow `json:"data" nullable:"false"`
	Amount pricing.Money  `json:"amount" doc:"Of all together"`
}

func newUnsettledList(list []Unsettled) adminUnsettledList {
	rows, sum := NewUnsettledRows(list)
	return adminUnsettledList{Object: "list", Data: rows, Amount: sum}
}

// unsettledOperations are those on money that nobody is going to settle.
type unsettledOperations struct {
	money Settler
	names tokenNames
}

// add adds the operations on money that nobody is going to settle.
func (o *unsettledOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListUnsettled", Method: http.MethodGet, Path: unsettledPath, Summary: "List money that nobody will settle",
		Description: "Reservations of calls whose gateway is gone, which shows about a minute later, and of tasks that do not run. " +
			"Until they are charged or refunded they count against their tokens' budgets.",
	}, func(ctx context.Context, in *unsettledQuery) (adminUnsettledList, error) {
		token, err := o.names.id(ctx, in.Token)
		if err != nil {
			return adminUnsettledList{}, err
		}
		list, err := o.money.Unsettled(ctx, UnsettledFilter{Token: token, Model: in.Model})
		return newUnsettledList(list), storeFault("reservation", "", err)
	})
	const answer = " The answer lists what was ended. An id that is not listed, or no more: 404."
	edge.Register(g, huma.Operation{
		OperationID: "adminChargeUnsettled", Method: http.MethodPost, Path: reservationPath + "/charge", Summary: "Charge a reservation",
		Description: "Its amount counts as spent, and stands in today's ledger as of a call or task that failed." + answer,
	}, func(ctx context.Context, in *unsettledName) (adminUnsettledList, error) {
		return o.end(ctx, in, true)
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminRefundUnsettled", Method: http.MethodPost, Path: reservationPath + "/refund", Summary: "Refund a reservation",
		Description: "Its token may spend the amount again; the ledger has nothing of it." + answer,
	}, func(ctx context.Context, in *unsettledName) (adminUnsettledList, error) {
		return o.end(ctx, in, false)
	})
}

func (o *unsettledOperations) end(ctx context.Context, in *unsettledName, charge bool) (adminUnsettledList, error) {
	edge.Of(ctx).Act.Subject = in.ID
	token, err := o.names.id(ctx, in.Token)
	if err != nil {
		return adminUnsettledList{}, err
	}
	filter := UnsettledFilter{Token: token, Model: in.Model}
	if in.ID != everyUnsettled {
		filter.ID = in.ID
	}
	ended, err := EndUnsettled(ctx, o.money, filter, charge)
	edge.Of(ctx).Act.Changes = UnsettledChanges(ended)
	if err == nil && len(ended) == 0 && filter.ID != "" {
		return adminUnsettledList{}, storeFault("unsettled reservation", in.ID, storage.ErrNotFound)
	}
	return newUnsettledList(ended), storeFault("reservation", in.ID, err)
}
