package cli

import (
	"context"
	"fmt"

	"modelrelay/api/admin"
)

// everyReservation is what --charge and --refund take for all that are listed.
const everyReservation = "all"

// unsettled lists such reservations, or ends those that were named.
func (c *Usage) unsettled(ctx context.Context, p *Program, s *Services) error {
	filter := admin.UnsettledFilter{Token: c.Token, Model: c.Model}
	if c.Charge != "" {
		return c.end(ctx, p, s, filter, c.Charge, true)
	}
	if c.Refund != "" {
		return c.end(ctx, p, s, filter, c.Refund, false)
	}
	list, err := s.Unsettled.Unsettled(ctx, filter)
	if err != nil {
		return err
	}
	rows, _ := admin.NewUnsettledRows(list)
	return printList(p, rows, []string{"ID", "TOKEN", "MODEL", "AMOUNT", "SINCE", "WHY"}, func(row admin.UnsettledRow) []string {
		return []string{row.ID, row.Token, row.Model, row.Amount.String(), moment(row.Since), row.Why}
	})
}

// end charges or refunds the one of the id, or all.
func (c *Usage) end(ctx context.Context, p *Program, s *Services, filter admin.UnsettledFilter, id string, charge bool) error {
	word, what := "refunded", "refund_unsettled"
	if charge {
		word, what = "charged", "charge_unsettled"
	}
	if id != everyReservation {
		filter.ID = id
	}
	ended, err := admin.EndUnsettled(ctx, s.Unsettled, filter, charge)
	if err == nil && filter.ID != "" && len(ended) == 0 {
		err = fmt.Errorf("there is no unsettled reservation %q", id)
	}
	if err := note(ctx, s.Redis, what, id, admin.UnsettledChanges(ended), err); err != nil {
		return err
	}
	_, sum := admin.NewUnsettledRows(ended)
	return p.say(map[string]any{word: len(ended), "amount": sum}, "%s %d, %s in all\n", word, len(ended), sum)
}
