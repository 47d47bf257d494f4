package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"modelrelay/api/account"
	"modelrelay/api/console/chart"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
)

type usageData struct {
	Table, Unsettled *Table
	Days             chart.Series
	By               string
	Groups           []string
	// Away is why the unsettled money is unknown, "" if it is known.
	Away string
}

// usagePage shows the spent money, and the reservations that no process will settle.
func usagePage() page {
	settle := func(do string, end settler) act {
		return act{roles: []edge.Role{Operator}, do: func(v *View) (string, any, error) {
			return v.several(bulk{
				box: "reservation", column: "unsettled.id", ask: func(ids []string) (question, error) { return askMoney(v, do, ids) },
				end: func(id string) error {
					_, err := end(v.s.o.Operator, v.R.Context(), v.actor(), &operator.UnsettledName{ID: id})
					return err
				},
			})
		}}
	}
	return page{
		name: "usage", path: "/usage", roles: allRoles(), nav: "usage", key: "u",
		show: func(v *View) (any, error) { return showUsage(v) },
		csv:  func(data any) *Table { return data.(*usageData).Table }, //nolint:forcetypeassert // of show
		acts: map[string]act{
			"charge": settle("charge", (*operator.Service).ChargeUnsettled), "refund": settle("refund", (*operator.Service).RefundUnsettled),
		},
	}
}

type settler func(s *operator.Service, ctx context.Context, by operator.Actor, in *operator.UnsettledName) (operator.UnsettledList, error)

// readUsage reads a page of sums of the ledger, selected by the page's query.
func readUsage(v *View, by, after string) (operator.UsageList, error) {
	q := edge.NewQuery(v.R)
	query := operator.UsageQuery{
		From: q.Moment("from"), To: q.Moment("to"), Token: q.Text("token"), Model: q.Text("model"), By: []string{by},
		After: after,
	}
	if err := q.Err(); err != nil {
		return operator.UsageList{}, err
	}
	if v.IsOperatorOrViewer() {
		return v.s.o.Operator.Usage(v.R.Context(), v.actor(), &query)
	}
	if err := operator.CompleteDays(&query, time.Now()); err != nil {
		return operator.UsageList{}, err
	}
	token, err := v.holder(account.UsageReads(query))
	if err != nil {
		return operator.UsageList{}, err
	}
	query.Token = token.ID
	return v.s.o.Account.Usage(v.R.Context(), query)
}

func showUsage(v *View) (*usageData, error) {
	data := &usageData{By: ledger.ByToken, Groups: ledger.Groups()}
	if !v.IsOperatorOrViewer() {
		data.By, data.Groups = ledger.ByModel, []string{ledger.ByModel, ledger.ByDay}
	}
	if slices.Contains(data.Groups, v.Query("by")) {
		data.By = v.Query("by")
	}
	days, err := readUsage(v, ledger.ByDay, "")
	if err != nil {
		return nil, err
	}
	sums := days
	if data.By != ledger.ByDay {
		if sums, err = readUsage(v, data.By, v.Query("after")); err != nil {
			return nil, err
		}
	}
	data.Days = spentByDay(v, days)
	data.sums(v, sums.Data)
	data.Table.Next = v.next(sums.After)
	if !v.IsOperatorOrViewer() { // only operators and viewers see unsettled money
		return data, nil
	}
	unsettled, err := v.s.o.Operator.ListUnsettled(v.R.Context(), v.actor(), &operator.UnsettledQuery{})
	if err != nil {
		data.Away, err = v.away(err)
		return data, err
	}
	data.Unsettled = unsettledTable(v, unsettled.Data)
	return data, nil
}

// spentByDay draws the spent money, with a bar for each day.
func spentByDay(v *View, list operator.UsageList) chart.Series {
	var total pricing.Money
	days := usageChart("days", "usage.spent", list, func(row operator.UsageRow) chart.Point {
		total += row.Cost
		return chart.Point{Value: amount(row.Cost), Text: v.Money(row.Cost)}
	})
	days.Figure = v.Money(total)
	return days
}

// sums makes a page of the table, the highest sums first; days are in their order.
func (d *usageData) sums(v *View, rows []operator.UsageRow) {
	d.Table = &Table{
		ID: "sums", Caption: "usage.caption", Empty: "usage.empty", CSV: true,
		Columns: columns("usage."+d.By, "#usage.cost", "#usage.requests", "#usage.tasks", "#usage.failed", "#usage.input", "#usage.output"),
	}
	var total pricing.Money
	for _, row := range rows {
		total += row.Cost
	}
	if d.By != ledger.ByDay {
		slices.SortStableFunc(rows, func(a, b operator.UsageRow) int {
			return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Requests+b.Tasks, a.Requests+a.Tasks))
		})
	}
	names := tokenNames(v, rows, func(row operator.UsageRow) string { return row.Token })
	for _, row := range rows {
		name := Cell{Text: cmp.Or(row.Token, row.Model, row.Channel, row.Day)}
		switch {
		case d.By == ledger.ByToken:
			name = tokenCell(v, row.Token, names)
		case row.Priced != nil && !*row.Priced:
			name.Note = v.T("usage.unpriced")
		}
		cost := Cell{Text: v.Money(row.Cost), Bar: Share(amount(row.Cost), amount(total))}
		d.Table.add(name.Text, name, cost, row.Requests, row.Tasks, row.Failed, row.InputTokens, row.OutputTokens)
	}
}

func unsettledTable(v *View, rows []operator.UnsettledRow) *Table {
	table := &Table{
		ID: "unsettled", Caption: "unsettled.caption", Empty: "unsettled.empty", Select: v.boxes("reservation"),
		Columns: columns("unsettled.id", "#usage.cost", "usage.token", "usage.model", "unsettled.since", "unsettled.why"),
	}
	names := tokenNames(v, rows, func(row operator.UnsettledRow) string { return row.Token })
	for _, row := range rows {
		table.add(row.ID, Cell{Text: row.ID, Code: true}, v.Money(row.Amount), tokenCell(v, row.Token, names), row.Model, row.Since, row.Why)
	}
	return table
}

// askMoney asks for confirmation to charge or refund the reservations, with their sum.
func askMoney(v *View, do string, ids []string) (question, error) {
	list, err := v.s.o.Operator.ListUnsettled(v.R.Context(), v.actor(), &operator.UnsettledQuery{})
	rows := slices.DeleteFunc(list.Data, func(row operator.UnsettledRow) bool { return !slices.Contains(ids, row.ID) })
	var amount pricing.Money
	for _, row := range rows {
		amount += row.Amount
	}
	sum, table := v.Money(amount), unsettledTable(v, rows)
	table.ID, table.Select = "chosen", ""
	return question{
		Text: v.T("unsettled.ask."+do, "n", len(ids), "sum", sum), What: v.T("unsettled.what." + do), Yes: v.T("unsettled.do."+do) + " " + sum,
		Rows: table,
	}, err
}
