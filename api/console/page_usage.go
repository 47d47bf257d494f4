package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"modelrelay/api/console/inprocess"
)

// usageRow is a sum of the ledger.
type usageRow struct {
	Day      string  `json:"day"`
	Token    string  `json:"token"`
	Model    string  `json:"model"`
	Channel  string  `json:"channel"`
	Requests int64   `json:"requests"`
	Tasks    int64   `json:"tasks"`
	Failed   int64   `json:"failed"`
	Input    int64   `json:"input_tokens"`
	Output   int64   `json:"output_tokens"`
	Cost     float64 `json:"cost"`
	Priced   *bool   `json:"priced"`
}

// unsettledRow is money that nobody will settle.
type unsettledRow struct {
	ID     string      `json:"id"`
	Token  string      `json:"token"`
	Model  string      `json:"model"`
	Amount json.Number `json:"amount"`
	Since  time.Time   `json:"since"`
	Why    string      `json:"why"`
}

func (u unsettledRow) money() float64 {
	amount, _ := u.Amount.Float64() // a number of the API
	return amount
}

// usageBar is one day of the chart, in its units: 100 high and 10 wide.
type usageBar struct {
	X, Y, Height string
	Day, Cost    string
}

type usageData struct {
	Table, Days *Table
	Bars        []usageBar
	Width       int
	Total       string
	By          string
	Groups      []string
	Unsettled   *Table
	// Away: what is unsettled cannot be told now. Ask is what is to be done with it.
	Away string
	Ask  *moneyQuestion
	// Results tell what came of it.
	Results *Table
}

// moneyQuestion asks before money is charged or refunded.
type moneyQuestion struct {
	Do, Sum string
	IDs     []string
	Rows    *Table
}

// Count is how many reservations it is about.
func (q moneyQuestion) Count() string { return strconv.Itoa(len(q.IDs)) }

// usagePage is about money: what was spent, and what nobody will settle.
func usagePage() page {
	settle := func(do string) act {
		return act{roles: []Role{Operator}, do: func(v *View) (string, any, error) { return settleMoney(v, do) }}
	}
	return page{
		name: "usage", path: "/usage", roles: everybody(), nav: "usage", key: "u",
		show: func(v *View) (any, error) { return showUsage(v) },
		csv:  func(_ *View, data any) (*Table, error) { return data.(*usageData).Table, nil }, //nolint:forcetypeassert // of show
		acts: map[string]act{"charge": settle("charge"), "refund": settle("refund")},
	}
}

// usageQuery are the filters that the ledger knows.
func usageQuery(v *View, by string) url.Values {
	q := url.Values{"group_by": {by}}
	for _, name := range []string{"from", "to", "token", "model"} {
		if value := v.Query(name); value != "" && (v.Staff() || name != "token") {
			q.Set(name, value)
		}
	}
	return q
}

func showUsage(v *View) (*usageData, error) {
	data, root := &usageData{By: "token", Groups: []string{"token", "model", "channel", "day"}}, "/admin/usage"
	if !v.Staff() {
		data.By, data.Groups, root = "model", []string{"model", "day"}, "/v1/token/usage"
	}
	if slices.Contains(data.Groups, v.Query("by")) {
		data.By = v.Query("by")
	}
	var days, sums struct {
		Data []usageRow `json:"data"`
		From string     `json:"from"`
		To   string     `json:"to"`
	}
	if err := v.Get(root, usageQuery(v, "day"), &days); err != nil {
		return nil, err
	}
	sums = days
	if data.By != "day" {
		sums.Data = nil // whose rows would be read into those of the days
		if err := v.Get(root, usageQuery(v, data.By), &sums); err != nil {
			return nil, err
		}
	}
	data.chart(v, days.Data, days.From, days.To)
	data.sums(v, sums.Data)
	if !v.Staff() { // what is unsettled is the operators'
		return data, nil
	}
	var unsettled struct {
		Data []unsettledRow `json:"data"`
	}
	if err := v.Get("/admin/usage/unsettled", nil, &unsettled); err != nil {
		data.Away = err.Error()
		return data, nil //nolint:nilerr // the rest of the page stands
	}
	data.Unsettled = unsettledTable(v, unsettled.Data)
	return data, nil
}

// mostBars is how many days the chart has at most: what the ledger keeps.
const mostBars = 400

// chart draws what was spent by day, days without any among them.
func (d *usageData) chart(v *View, rows []usageRow, from, to string) {
	spent := make(map[string]float64)
	var total, most float64
	for _, row := range rows {
		spent[row.Day] += row.Cost
		total += row.Cost
		most = max(most, spent[row.Day])
	}
	d.Total = v.Money(total)
	d.Days = &Table{ID: "days", Caption: "usage.days", Empty: "usage.empty", Columns: []Column{{Word: "usage.day"}, {Word: "usage.cost", Number: true}}}
	at, err := time.Parse(time.DateOnly, from)
	last, bad := time.Parse(time.DateOnly, to)
	if err != nil || bad != nil {
		return
	}
	for ; !at.After(last) && len(d.Bars) < mostBars; at = at.AddDate(0, 0, 1) {
		day := at.Format(time.DateOnly)
		height := 0.0
		if most > 0 {
			height = 100 * spent[day] / most
		}
		d.Bars = append(d.Bars, usageBar{
			X: strconv.Itoa(10 * len(d.Bars)), Y: strconv.FormatFloat(100-height, 'f', 1, 64), Height: strconv.FormatFloat(height, 'f', 1, 64),
			Day: day, Cost: v.Money(spent[day]),
		})
		if spent[day] > 0 {
			d.Days.Rows = append(d.Days.Rows, Row{ID: day, Cells: []Cell{{Text: day}, {Text: v.Money(spent[day])}}})
		}
	}
	d.Width = 10 * len(d.Bars)
}

// sums makes the table by what was asked for, the dearest first; days in their order.
func (d *usageData) sums(v *View, rows []usageRow) {
	d.Table = &Table{
		ID: "sums", Caption: "usage.caption", Empty: "usage.empty", CSV: true,
		Columns: []Column{
			{Word: "usage." + d.By},
			{Word: "usage.cost", Number: true},
			{Word: "usage.requests", Number: true},
			{Word: "usage.tasks", Number: true},
			{Word: "usage.failed", Number: true},
			{Word: "usage.input", Number: true},
			{Word: "usage.output", Number: true},
		},
	}
	var total float64
	for _, row := range rows {
		total += row.Cost
	}
	if d.By != "day" {
		slices.SortStableFunc(rows, func(a, b usageRow) int {
			return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Requests+b.Tasks, a.Requests+a.Tasks))
		})
	}
	var names map[string]string
	if d.By == "token" {
		ids := make([]string, min(len(rows), mostNames)) // of the dearest
		for i := range ids {
			ids[i] = rows[i].Token
		}
		names = tokenNames(v, ids)
	}
	for _, row := range rows {
		name := Cell{Text: cmp.Or(row.Token, row.Model, row.Channel, row.Day)}
		switch d.By {
		case "token":
			name = tokenCell(v, row.Token, names)
		case "model":
			if row.Priced != nil && !*row.Priced {
				name.Note = v.T("usage.unpriced")
			}
		}
		cost := Cell{Text: v.Money(row.Cost), Bar: Share(row.Cost, total)}
		d.Table.Rows = append(d.Table.Rows, Row{ID: name.Text, Cells: []Cell{
			name, cost, {Text: number(row.Requests)}, {Text: number(row.Tasks)}, {Text: number(row.Failed)}, {Text: number(row.Input)}, {Text: number(row.Output)},
		}})
	}
}

func unsettledTable(v *View, rows []unsettledRow) *Table {
	table := &Table{
		ID: "unsettled", Caption: "unsettled.caption", Empty: "unsettled.empty",
		Columns: []Column{{Word: "unsettled.id"}, {Word: "usage.cost", Number: true}, {Word: "usage.token"}, {Word: "usage.model"}, {Word: "unsettled.since"}, {Word: "unsettled.why"}},
	}
	if v.May() {
		table.Select = "reservation"
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.Token
	}
	names := tokenNames(v, ids)
	for _, row := range rows {
		table.Rows = append(table.Rows, Row{ID: row.ID, Cells: []Cell{
			{Text: row.ID, Code: true}, {Text: v.Money(row.money())}, tokenCell(v, row.Token, names), {Text: row.Model}, When(row.Since), {Text: row.Why},
		}})
	}
	return table
}

// settleMoney charges or refunds the chosen reservations, once their sum is confirmed, and tells of each what came of it.
func settleMoney(v *View, do string) (string, any, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(v.Form.values["reservation"])))
	switch {
	case len(ids) == 0:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("unsettled.none")}
	case len(ids) > mostChosen:
		return "", nil, &inprocess.Problem{Status: http.StatusBadRequest, Message: v.T("tasks.many", "n", strconv.Itoa(mostChosen))}
	}
	if v.Form.Value("sure") == "" {
		var list struct {
			Data []unsettledRow `json:"data"`
		}
		if err := v.Get("/admin/usage/unsettled", nil, &list); err != nil {
			return "", nil, err
		}
		chosen := slices.DeleteFunc(list.Data, func(row unsettledRow) bool { return !slices.Contains(ids, row.ID) })
		var sum float64
		for _, row := range chosen {
			sum += row.money()
		}
		data, err := showUsage(v)
		if err != nil {
			return "", nil, err
		}
		rows := unsettledTable(v, chosen)
		rows.ID, rows.Select = "chosen", ""
		data.Ask = &moneyQuestion{Do: do, Sum: v.Money(sum), IDs: ids, Rows: rows}
		if data.Unsettled != nil {
			data.Unsettled.Chosen = ids
		}
		return "", data, nil
	}
	results := &Table{ID: "results", Caption: "tasks.results", Columns: []Column{{Word: "unsettled.id"}, {Word: "tasks.result"}}}
	for _, id := range ids {
		result := Cell{Word: "unsettled.done." + do, Mark: "done"}
		if err := v.Do(http.MethodPost, "/admin/usage/unsettled/"+inprocess.Segment(id)+"/"+do, nil, nil); err != nil {
			result = Cell{Text: err.Error(), Mark: "failed"}
		}
		results.Rows = append(results.Rows, Row{ID: id, Cells: []Cell{{Text: id, Code: true}, result}})
	}
	data, err := showUsage(v)
	if err != nil {
		return "", nil, err
	}
	data.Results = results
	return "", data, nil
}
