package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"modelrelay/api"
	"modelrelay/storage"
	"modelrelay/workflows"
)

// startsWithin is how long after its reservation a task surely runs, if it ever does.
const startsWithin = time.Minute

// looksAtOnce is how many tasks are looked at together: thousands may be running.
const looksAtOnce = 16

// everyReservation is what --charge and --refund take for all that are listed.
const everyReservation = "all"

// settler finds what nobody is going to settle. It implements api.Settler.
type settler struct {
	*storage.Budgets

	tasks *workflows.Operator
}

func (p *parts) settler() *settler {
	return &settler{Budgets: p.budgets(), tasks: workflows.NewOperator(p.temporal, p.cfg.Temporal.Namespace)}
}

// Unsettled lists reservations of calls whose gateway is gone, and of tasks that do not run.
func (s *settler) Unsettled(ctx context.Context, filter api.UnsettledFilter) ([]api.Unsettled, error) {
	list, err := s.Reservations(ctx, filter.Token)
	if err != nil {
		return nil, err
	}
	whys, errs := make([]string, len(list)), make([]error, len(list))
	var looks sync.WaitGroup
	turns := make(chan struct{}, looksAtOnce)
	for i, r := range list {
		switch {
		case filter.Model != "" && r.Model != filter.Model, filter.ID != "" && r.ID != filter.ID:
		case r.Lost:
			whys[i] = "its gateway is gone"
		case r.Task && time.Since(r.Since) > startsWithin:
			turns <- struct{}{}
			looks.Go(func() {
				defer func() { <-turns }()
				task, _, _ := strings.Cut(r.ID, ".")
				runs, err := s.tasks.Runs(ctx, task)
				if errs[i] = err; err == nil && !runs {
					whys[i] = "the task does not run"
				}
			})
		}
	}
	looks.Wait()
	var found []api.Unsettled
	for i, r := range list {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if whys[i] != "" {
			found = append(found, api.Unsettled{Reservation: r, Why: whys[i]})
		}
	}
	return found, nil
}

// unsettled lists such reservations, or ends those that were named.
func (c *usageCmd) unsettled(ctx context.Context, m *Main, p *parts) error {
	filter := api.UnsettledFilter{Token: c.Token, Model: c.Model}
	if c.Charge != "" {
		return c.end(ctx, m, p, filter, c.Charge, true)
	}
	if c.Refund != "" {
		return c.end(ctx, m, p, filter, c.Refund, false)
	}
	list, err := p.settler().Unsettled(ctx, filter)
	if err != nil {
		return err
	}
	rows, _ := api.NewUnsettledRows(list)
	if c.Format == "json" {
		return printJSON(m.Stdout, rows)
	}
	cells := make([][]string, len(rows))
	for i, row := range rows {
		cells[i] = []string{row.ID, row.Token, row.Model, row.Amount.String(), moment(row.Since), row.Why}
	}
	return printTable(m.Stdout, []string{"ID", "TOKEN", "MODEL", "AMOUNT", "SINCE", "WHY"}, cells)
}

// end charges or refunds the one of the id, or all.
func (c *usageCmd) end(ctx context.Context, m *Main, p *parts, filter api.UnsettledFilter, id string, charge bool) error {
	word := "refunded"
	if charge {
		word = "charged"
	}
	if id != everyReservation {
		filter.ID = id
	}
	ended, err := api.EndUnsettled(ctx, p.settler(), filter, charge)
	if err != nil {
		return err
	}
	if filter.ID != "" && len(ended) == 0 {
		return fmt.Errorf("there is no unsettled reservation %q", id)
	}
	_, sum := api.NewUnsettledRows(ended)
	if c.Format == "json" {
		return printJSON(m.Stdout, map[string]any{word: len(ended), "amount": sum})
	}
	_, err = fmt.Fprintf(m.Stdout, "%s %d, %s in all\n", word, len(ended), sum)
	return err
}
