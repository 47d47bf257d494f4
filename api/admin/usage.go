package admin

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
)

// UsageReader reads the ledger, as ledger.Reader does.
type UsageReader interface {
	// Read returns the rows of the days from and to, both included, of one token id or, when it is empty, of all.
	Read(ctx context.Context, from, to time.Time, token string) ([]ledger.Row, error)
}

// usageDays is how many days usage is shown of where nobody says otherwise, today among them.
const usageDays = 30

// day is one of the ledger's.
const day = 24 * time.Hour

// UsageRow is a sum of the ledger as operators read it, in JSON and CSV alike.
type UsageRow struct {
	Day     string `json:"day,omitempty" doc:"Day in UTC; absent where the sums are not by day, as token, model and channel are where the sums are not by them"`
	Token   string `json:"token,omitempty" doc:"Token id"`
	Model   string `json:"model,omitempty" doc:"Public model name"`
	Channel string `json:"channel,omitempty" doc:"Channel that answered"`

	Requests     int64         `json:"requests" doc:"Calls relayed, failed ones too"`
	Tasks        int64         `json:"tasks" doc:"Video tasks that ended"`
	Failed       int64         `json:"failed" doc:"Requests and tasks that failed"`
	InputTokens  int64         `json:"input_tokens" doc:"Input tokens, cached ones included"`
	CachedTokens int64         `json:"cached_tokens" doc:"Input tokens that the vendor served from its cache"`
	OutputTokens int64         `json:"output_tokens"`
	Images       int64         `json:"images"`
	AudioSeconds float64       `json:"audio_seconds"`
	VideoSeconds float64       `json:"video_seconds"`
	Cost         pricing.Money `json:"cost" doc:"In units of the prices"`
	Priced       *bool         `json:"priced,omitempty" doc:"False: the model has no price now; absent where models are summed"`
}

// NewUsageRow renders a row of the ledger; prices tells which models have one.
func NewUsageRow(r ledger.Row, prices *pricing.List) UsageRow {
	var known *bool
	if r.Model != "" {
		_, priced := prices.Of(r.Model)
		known = &priced
	}
	return UsageRow{
		Priced: known,

		Day: r.Day, Token: r.Token, Model: r.Model, Channel: r.Channel, Requests: r.Requests, Tasks: r.Tasks, Failed: r.Failed,
		InputTokens: r.InputTokens, CachedTokens: r.CachedTokens, OutputTokens: r.OutputTokens, Images: r.Images,
		AudioSeconds: r.Audio.Seconds(), VideoSeconds: r.Video.Seconds(), Cost: pricing.Money(r.Cost),
	}
}

// UsageHead names the columns of UsageRow.Cells: the words that the sums are by, and the counters.
func UsageHead(by []string) []string {
	return slices.Concat(by, []string{
		"requests", "tasks", "failed", "input_tokens", "cached_tokens", "output_tokens", "images", "audio_seconds", "video_seconds", "cost",
	})
}

// Cells is the row as text, in the order of UsageHead.
func (u UsageRow) Cells(by []string) []string {
	names := map[string]string{
		ledger.ByDay: u.Day, ledger.ByToken: u.Token, ledger.ByModel: u.Model, ledger.ByChannel: u.Channel,
	}
	cells := make([]string, 0, len(by)+10)
	for _, word := range by {
		cells = append(cells, names[word])
	}
	for _, n := range []int64{u.Requests, u.Tasks, u.Failed, u.InputTokens, u.CachedTokens, u.OutputTokens, u.Images} {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	for _, seconds := range []float64{u.AudioSeconds, u.VideoSeconds} {
		cells = append(cells, strconv.FormatFloat(seconds, 'f', -1, 64))
	}
	return append(cells, u.Cost.String())
}

// Record is Cells for a CSV file.
func (u UsageRow) Record(by []string) []string {
	cells := u.Cells(by)
	for i, name := range cells[:len(by)] {
		cells[i] = edge.PlainCell(name)
	}
	return cells
}

// usageList is the answer in JSON.
type usageList struct {
	Object string     `json:"object" enum:"list"`
	From   string     `json:"from" doc:"First day"`
	To     string     `json:"to" doc:"Last day"`
	Data   []UsageRow `json:"data" nullable:"false"`
}

// usageQuery is what the query of GET /admin/usage asks for.
type usageQuery struct {
	from, to     time.Time
	token, model string
	by           []string
	csv          bool
}

// UsageGroups are the words that sums of the ledger may be by.
type UsageGroups struct {
	// All may be asked for, Standard are those where nobody asks.
	All, Standard []string
	// Tokens: the query may name one.
	Tokens bool
	// DayReads is what each day takes of the caller's reads; 0: nothing.
	DayReads int
}

// AllUsage are the sums that operators read.
func AllUsage() UsageGroups {
	return UsageGroups{All: ledger.Groups(), Standard: []string{ledger.ByDay, ledger.ByToken, ledger.ByModel}, Tokens: true}
}

// ownDayReads is what a day of a token's own usage takes of its reads: Redis hands out up to two thousand counters of each.
const ownDayReads = 10

// OwnUsage are the sums that a token reads of its own: it learns nothing of the deployment's channels.
func OwnUsage() UsageGroups {
	both := []string{ledger.ByDay, ledger.ByModel}
	return UsageGroups{All: both, Standard: both, DayReads: ownDayReads}
}

// UsageResponses declares the sums in JSON and CSV.
func UsageResponses(registry huma.Registry) map[string]*huma.Response {
	responses := body.DeclareAnswer[usageList](registry, "The sums")
	responses["200"].Content["text/csv"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	return responses
}

// UsageParameters are those of an operation that answers as ServeUsage does.
func UsageParameters(groups UsageGroups) []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	words := &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}}
	for _, word := range groups.All {
		words.Items.Enum = append(words.Items.Enum, word)
	}
	last := len(groups.Standard) - 1
	list := []*huma.Param{
		{Name: "from", In: "query", Schema: text, Description: "First day (UTC), a date or a time; 30 days up to the last where it is absent"},
		{Name: "to", In: "query", Schema: text, Description: "Last day; today where it is absent"},
		{Name: "token", In: "query", Schema: text, Description: "Id or name"},
		{Name: "model", In: "query", Schema: text, Description: "Public name"},
		{
			Name: "group_by", In: "query", Schema: words, Explode: new(false),
			Description: "What the sums are by, with commas between; " + strings.Join(groups.Standard[:last], ", ") + " and " + groups.Standard[last] +
				" where it is absent, one sum of all where it is empty",
		},
		{
			Name: "format", In: "query", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"json", "csv"}},
			Description: "csv also by the header Accept: text/csv",
		},
	}
	if !groups.Tokens {
		list = slices.DeleteFunc(list, func(p *huma.Param) bool { return p.Name == "token" })
	}
	return list
}

// usageOperations read the ledger.
type usageOperations struct {
	usage  UsageReader
	prices *pricing.List
	names  tokenNames
}

// add adds the ledger.
func (o *usageOperations) add(g *edge.Group) {
	g.Handle(huma.Operation{
		OperationID: "adminUsage", Method: http.MethodGet, Path: Root + "/usage", Summary: "What was used",
		Description: "Sums of the ledger by day, token, model and channel. A call is in it about a second after its end.",
		Parameters:  UsageParameters(AllUsage()),
		Responses:   UsageResponses(g.OpenAPI().Components.Schemas),
	}, o.read)
}

// read answers with sums of the ledger.
func (o *usageOperations) read(x *edge.Request, r *http.Request) error {
	return ServeUsage(x, r, AllUsage(), o.names.id, o.usage, o.prices)
}

// ServeUsage answers with sums of the ledger, of the token whose id tokenID returns for what the query names.
func ServeUsage(
	x *edge.Request, r *http.Request, groups UsageGroups, tokenID func(ctx context.Context, named string) (string, error), from UsageReader, prices *pricing.List,
) error {
	query, err := parseUsage(r, groups, time.Now())
	if err != nil {
		return err
	}
	if query.token, err = tokenID(r.Context(), query.token); err != nil {
		return err
	}
	if groups.DayReads > 0 {
		// One read was taken already.
		if err := x.TakeReads(groups.DayReads*ledger.Days(query.from, query.to) - 1); err != nil {
			return err
		}
	}
	rows, err := from.Read(r.Context(), query.from, query.to, query.token)
	if err != nil {
		return storeFault("token", query.token, err)
	}
	if query.model != "" {
		rows = slices.DeleteFunc(rows, func(row ledger.Row) bool { return row.Model != query.model })
	}
	sums := ledger.Sum(rows, query.by)
	if query.csv {
		return writeUsageCSV(x, sums, query.by)
	}
	list := usageList{
		Object: "list", From: query.from.Format(time.DateOnly), To: query.to.Format(time.DateOnly), Data: make([]UsageRow, len(sums)),
	}
	for i, sum := range sums {
		list.Data[i] = NewUsageRow(sum, prices)
	}
	return x.JSON(list)
}

func parseUsage(r *http.Request, groups UsageGroups, now time.Time) (usageQuery, error) {
	q := edge.NewQuery(r)
	query := usageQuery{
		token: q.Text("token"), model: q.Text("model"), to: q.Moment("to"), from: q.Moment("from"), by: q.Words("group_by", groups.All, groups.Standard), csv: q.CSV(),
	}
	if query.to.IsZero() {
		query.to = now.UTC()
	}
	if query.from.IsZero() {
		query.from = query.to.AddDate(0, 0, 1-usageDays)
	}
	if query.from.Truncate(day).After(query.to) { // days count, not their hours
		q.Refuse("from", "lies after 'to'.")
	}
	return query, q.Err()
}

// writeUsageCSV answers with a table.
func writeUsageCSV(x *edge.Request, sums []ledger.Row, by []string) error {
	table := edge.AnswerTable(x, "", UsageHead(by))
	for _, sum := range sums {
		table.Write(NewUsageRow(sum, nil).Record(by))
	}
	return table.End()
}
