package admin

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage/ledger"
)

// UsageGroups are the dimensions of sums of the ledger.
type UsageGroups struct {
	// All are the permitted dimensions, Standard the default.
	All, Standard []string
	// DayReads is how many of the caller's reads a day of the query counts as; 0: none.
	DayReads int
}

// AllUsage returns the dimensions for operators.
func AllUsage() UsageGroups {
	return UsageGroups{All: ledger.Groups(), Standard: []string{ledger.ByDay, ledger.ByToken, ledger.ByModel}}
}

// ownDayReads is how many reads a day of a token's own usage counts as: Redis returns up to two thousand counters for each.
const ownDayReads = 10

// OwnUsage returns the dimensions for a token: without the deployment's channels.
func OwnUsage() UsageGroups {
	both := []string{ledger.ByDay, ledger.ByModel}
	return UsageGroups{All: both, Standard: both, DayReads: ownDayReads}
}

// UsageResponses declares the sums in JSON and CSV.
func UsageResponses(registry huma.Registry) map[string]*huma.Response {
	return body.DeclareTable[operator.UsageList](registry, "The sums")
}

// UsageParameters declares the parameters of an operation that ServeUsage answers.
func UsageParameters(groups UsageGroups) []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	words := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	for _, word := range groups.All {
		words.Items.Enum = append(words.Items.Enum, word)
	}
	last := len(groups.Standard) - 1
	list := []*huma.Param{
		{Name: "from", Schema: text, Description: "First day (UTC), a date or a time; by default 30 days up to the last day"},
		{Name: "to", Schema: text, Description: "Last day; today by default"},
		{Name: "token", Schema: text, Description: "Id or name"},
		{Name: "model", Schema: text, Description: "Public name"},
		{
			Name: "group_by", Schema: words, Explode: new(false),
			Description: "Fields of the sums, separated by commas; " + strings.Join(groups.Standard[:last], ", ") + " and " +
				groups.Standard[last] +
				" by default. Empty: one sum of all",
		},
		{Name: "after", Schema: text, Description: "The cursor of the previous page"},
		{
			Name: "limit",
			Schema: &huma.Schema{
				Type: huma.TypeInteger, Minimum: new(1.0), Maximum: new(float64(operator.MostUsage)), Default: operator.DefaultUsage,
			},
			Description: "Length of the page; a table has all rows",
		},
	}
	if !slices.Contains(groups.All, ledger.ByToken) {
		list = slices.DeleteFunc(list, func(p *huma.Param) bool { return p.Name == "token" })
	}
	return edge.TableParameters(list...)
}

func addUsage(g *edge.Group, s *operator.Service) {
	g.Handle(huma.Operation{
		OperationID: "adminUsage", Method: http.MethodGet, Path: Root + "/usage", Summary: "Sum the usage",
		Description: "Sums of the ledger by day, token, model and channel, in pages. A call appears about a second after its end.",
		Parameters:  UsageParameters(AllUsage()),
		Responses:   UsageResponses(g.OpenAPI().Components.Schemas),
	}, func(x *edge.Request, r *http.Request) error {
		return ServeUsage(x, r, AllUsage(), func(ctx context.Context, q operator.UsageQuery) (operator.UsageList, error) {
			return s.Usage(ctx, actorOf(ctx, x), &q)
		})
	})
}

// ServeUsage answers with sums of the ledger.
func ServeUsage(
	x *edge.Request, r *http.Request, groups UsageGroups, read func(context.Context, operator.UsageQuery) (operator.UsageList, error),
) error {
	q := edge.NewQuery(r)
	query := operator.UsageQuery{
		Token: q.Text("token"), Model: q.Text("model"), To: q.Moment("to"), From: q.Moment("from"),
		By: q.Words("group_by", groups.All, groups.Standard),
	}
	query.After, query.Limit = q.Text("after"), q.Number("limit", operator.DefaultUsage, 1, operator.MostUsage)
	table, err := q.CSV(), q.Err()
	if table {
		query.Limit = operator.MostUsage
	}
	if err == nil {
		err = operator.CompleteDays(&query, time.Now())
	}
	if err == nil && groups.DayReads > 0 {
		err = x.TakeReads(groups.DayReads*ledger.Days(query.From, query.To) - 1) // one read was counted before
	}
	if err != nil {
		return err
	}
	list, err := read(r.Context(), query)
	if err != nil {
		return err
	}
	if !table {
		return x.JSON(list)
	}
	out := edge.AnswerTable(x, "", operator.UsageHead(query.By))
	for {
		for _, row := range list.Data {
			out.Write(row.Cells(query.By))
		}
		if err := out.End(); err != nil || list.After == nil {
			return err
		}
		query.After = *list.After
		if list, err = read(r.Context(), query); err != nil {
			return err
		}
	}
}
