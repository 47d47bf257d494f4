package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"modelrelay/api/admin"
	"modelrelay/storage/ledger"
)

// Usage is gateway usage. It works on Redis directly, so it needs no running gateway.
type Usage struct {
	Token  string   `help:"Usage of this token, by its name or id." placeholder:"NAME"`
	Model  string   `help:"Usage of this model." placeholder:"NAME"`
	From   string   `help:"First day (UTC): a date, an RFC 3339 time, or a duration ago such as 24h; none: 30 days up to the last." placeholder:"WHEN"`
	To     string   `help:"Last day (UTC), as --from; none: today." placeholder:"WHEN"`
	By     []string `help:"Columns to sum by: day, token, model, channel." default:"day,token,model" enum:"day,token,model,channel" placeholder:"WORD"`
	Format string   `help:"Output format: table, csv or json." enum:"table,csv,json" default:"table"`

	Unsettled bool   `help:"List reservations that are left behind: of calls whose gateway has ended, and of tasks that do not run." xor:"unsettled"`
	Charge    string `help:"Count an unsettled reservation as spent, by its id; \"all\": each of them." placeholder:"ID" xor:"unsettled"`
	Refund    string `help:"Give an unsettled reservation back, by its id; \"all\": each of them." placeholder:"ID" xor:"unsettled"`
}

// usageDays is how many days are shown where nobody says otherwise, today among them.
const usageDays = 30

// Run prints the sums, or what is unsettled.
func (c *Usage) Run(ctx context.Context, p *Program) error {
	now := time.Now()
	from, err := parseSince(c.From, now)
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--from: %w", err)}
	}
	to, err := parseSince(c.To, now)
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--to: %w", err)}
	}
	if to.IsZero() {
		to = now
	}
	if from.IsZero() {
		from = to.AddDate(0, 0, 1-usageDays)
	}
	if from.UTC().Truncate(24 * time.Hour).After(to) { // days count, not their hours
		return &UsageError{Err: errors.New("--from lies after --to")}
	}
	s, err := p.Open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	if c.Token != "" {
		found, err := findToken(ctx, s.Redis, c.Token)
		if err != nil {
			return err
		}
		c.Token = found.ID
	}
	if p.JSON || c.Format == "json" {
		p.JSON, c.Format = true, "json"
	}
	if c.Unsettled || c.Charge != "" || c.Refund != "" {
		return c.unsettled(ctx, p, s)
	}
	rows, err := ledger.NewReader(s.Redis).Read(ctx, from, to, c.Token)
	if err != nil {
		return err
	}
	if c.Model != "" {
		rows = slices.DeleteFunc(rows, func(row ledger.Row) bool { return row.Model != c.Model })
	}
	return c.print(p, s, ledger.Sum(rows, c.By))
}

func (c *Usage) print(p *Program, s *Services, sums []ledger.Row) error {
	rows := make([]admin.UsageRow, len(sums))
	cells := make([][]string, len(sums))
	var free []string
	for i, sum := range sums {
		rows[i] = admin.NewUsageRow(sum, s.Prices)
		cells[i] = rows[i].Cells(c.By)
		if rows[i].Priced != nil && !*rows[i].Priced && !slices.Contains(free, sum.Model) {
			free = append(free, sum.Model)
		}
	}
	head := admin.UsageHead(c.By)
	switch c.Format {
	case "json":
		return printJSON(p.Stdout, rows)
	case "csv":
		return printCSV(p.Stdout, head, rows, func(row admin.UsageRow) []string { return row.Record(c.By) })
	}
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
