package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/workflows"
)

// startsWithin is how long after its reservation a task surely runs, if it ever does.
const startsWithin = time.Minute

// unsettledRow is a reservation that nobody is going to settle.
type unsettledRow struct {
	ID     string          `json:"id"`
	Token  string          `json:"token"`
	Model  string          `json:"model"`
	Amount providers.Money `json:"amount"`
	Since  time.Time       `json:"since"`
	Why    string          `json:"why"`

	of storage.Reservation
}

// unsettled lists such reservations, or ends those that were named.
func (c *usageCmd) unsettled(ctx context.Context, m *Main, p *parts) error {
	rows, err := c.findUnsettled(ctx, p)
	if err != nil {
		return err
	}
	chosen, charge := c.Refund, false
	if c.Charge != "" {
		chosen, charge = c.Charge, true
	}
	if chosen != "" {
		return c.end(ctx, m, p, rows, chosen, charge)
	}
	if c.Format == "json" {
		return printJSON(m.Stdout, rows)
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = []string{row.ID, row.Token, row.Model, row.Amount.String(), moment(row.Since), row.Why}
	}
	return printTable(m.Stdout, []string{"ID", "TOKEN", "MODEL", "AMOUNT", "SINCE", "WHY"}, cells)
}

func (c *usageCmd) findUnsettled(ctx context.Context, p *parts) ([]unsettledRow, error) {
	list, err := p.budgets().Reservations(ctx, c.Token)
	if err != nil {
		return nil, err
	}
	operator := workflows.NewOperator(p.temporal, p.cfg.Temporal.Namespace)
	rows := []unsettledRow{}
	for _, r := range list {
		if c.Model != "" && r.Model != c.Model {
			continue
		}
		row := unsettledRow{ID: r.ID, Token: r.Token, Model: r.Model, Amount: providers.Money(r.Amount), Since: r.Since, of: r}
		switch {
		case r.Lost:
			row.Why = "its gateway is gone"
		case r.Task && time.Since(r.Since) > startsWithin:
			task, _, _ := strings.Cut(r.ID, ".")
			runs, err := operator.Runs(ctx, task)
			if err != nil {
				return nil, err
			}
			if runs {
				continue
			}
			row.Why = "the task does not run"
		default:
			continue
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// end charges or refunds one of the rows, or all.
func (c *usageCmd) end(ctx context.Context, m *Main, p *parts, rows []unsettledRow, id string, charge bool) error {
	done, word := 0, "refunded"
	if charge {
		word = "charged"
	}
	var sum providers.Money
	for _, row := range rows {
		if id != "all" && id != row.ID {
			continue
		}
		err := p.budgets().Release(ctx, row.of, charge)
		if errors.Is(err, storage.ErrNotFound) {
			continue // it was settled meanwhile
		}
		if err != nil {
			return err
		}
		done++
		sum += row.Amount
	}
	if id != "all" && done == 0 {
		return fmt.Errorf("there is no unsettled reservation %q", id)
	}
	if c.Format == "json" {
		return printJSON(m.Stdout, map[string]any{word: done, "amount": sum})
	}
	_, err := fmt.Fprintf(m.Stdout, "%s %d, %s in all\n", word, done, sum)
	return err
}
