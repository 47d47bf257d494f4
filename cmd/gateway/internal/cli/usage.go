package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/operator"
)

// Usage is gateway usage. It requires no running gateway.
type Usage struct {
	remote

	Token  string   `help:"Usage of this token, by its name or id." placeholder:"NAME"`
	Model  string   `help:"Usage of this model." placeholder:"NAME"`
	From   string   `type:"past" help:"First day (UTC): a date, an RFC 3339 time, or a duration ago such as 24h; none: the 30 days that end with --to." placeholder:"WHEN"`
	To     string   `type:"past" help:"Last day (UTC), written as in --from; none: today." placeholder:"WHEN"`
	By     []string `help:"Columns to sum by: day, token, model, channel." default:"day,token,model" enum:"day,token,model,channel" placeholder:"WORD"`
	Format string   `help:"Output format: table, csv or json." enum:"table,csv,json" default:"table"`

	Unsettled bool   `help:"List unsettled reservations: of calls whose gateway has ended, and of tasks that do not run." xor:"unsettled"`
	Charge    string `help:"Count an unsettled reservation as spent, by its id; \"all\": every one." placeholder:"ID" xor:"unsettled"`
	Refund    string `help:"Release an unsettled reservation, by its id; \"all\": every one." placeholder:"ID" xor:"unsettled"`
}

// Run prints the sums, or the unsettled reservations.
func (c *Usage) Run(ctx context.Context, p *Program) error {
	query := filters("token", c.Token, "model", c.Model, "group_by", strings.Join(c.By, ","), "from", c.From, "to", c.To)
	if err := p.knownToken(ctx, c.Token); err != nil {
		return err
	}
	p.JSON = p.JSON || c.Format == "json"
	switch {
	case c.Unsettled:
		return c.unsettled(ctx, p)
	case c.Charge != "":
		return c.end(ctx, p, c.Charge, "charge", "charged")
	case c.Refund != "":
		return c.end(ctx, p, c.Refund, "refund", "refunded")
	}
	_, rows, err := askPages[operator.UsageRow](ctx, p, "/admin/usage", query, 0)
	if err != nil {
		return ofFlag(err)
	}
	return c.print(p, rows)
}

// knownToken returns an error for a token that does not exist; nil for "".
func (p *Program) knownToken(ctx context.Context, token string) error {
	if token == "" {
		return nil
	}
	return p.ask(ctx, tokenPath(token), nil, nil)
}

func (c *Usage) print(p *Program, rows []operator.UsageRow) error {
	head := operator.UsageHead(c.By)
	switch {
	case p.JSON:
		return printJSON(p.Stdout, rows)
	case c.Format == "csv":
		return printCSV(p.Stdout, head, rows, func(row operator.UsageRow) []string { return row.Cells(c.By) })
	}
	var free []string
	cells := rowsOf(rows, func(row operator.UsageRow) []string {
		if row.Priced != nil && !*row.Priced && !slices.Contains(free, row.Model) {
			free = append(free, row.Model)
		}
		return row.Cells(c.By)
	})
	for i := range head {
		head[i] = strings.ToUpper(strings.ReplaceAll(head[i], "_", " "))
	}
	if err := printTable(p.Stdout, head, cells); err != nil {
		return err
	}
	if len(free) > 0 {
		fmt.Fprintf(p.Stderr, "Without a price in the configuration: %s.\n", strings.Join(free, ", "))
	}
	return nil
}

func (c *Usage) unsettled(ctx context.Context, p *Program) error {
	query := operator.UnsettledQuery{Token: c.Token, Model: c.Model}
	return printPages(ctx, p, "/admin/usage/unsettled", query, 0, []string{"ID", "TOKEN", "MODEL", "AMOUNT", "SINCE", "WHY"},
		func(row operator.UnsettledRow) []string {
			return []string{row.ID, row.Token, row.Model, row.Amount.String(), moment(row.Since), row.Why}
		})
}

// end charges or refunds the reservation with the id, or all.
func (c *Usage) end(ctx context.Context, p *Program, id, do, done string) error {
	var ended operator.UnsettledList
	path := "/admin/usage/unsettled/" + url.PathEscape(id) + "/" + do + "?" + filters("token", c.Token, "model", c.Model).Encode()
	if err := p.call(ctx, http.MethodPost, path, nil, &ended); err != nil {
		return err
	}
	return p.sentence(map[string]json.RawMessage{done: fmt.Append(nil, len(ended.Data)), "amount": []byte(ended.Amount.String())},
		"%s %d, %s in all\n", done, len(ended.Data), ended.Amount)
}
