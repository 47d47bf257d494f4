package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
)

// UsageReader reads the ledger; ledger.Reader implements it.
type UsageReader interface {
	// Sums returns a page of sums, and the next cursor.
	Sums(ctx context.Context, q ledger.Query) (rows []ledger.Row, next string, err error)
}

// usageDays is the default number of days of usage, including today.
const usageDays = 30

const day = 24 * time.Hour

// UsageRow is a sum of the ledger in JSON and CSV for operators.
type UsageRow struct {
	ledger.Row
	AudioSeconds float64       `json:"audio_seconds"`
	VideoSeconds float64       `json:"video_seconds"`
	Cost         pricing.Money `json:"cost" doc:"In the currency of the prices"`
	Priced       *bool         `json:"priced,omitempty" doc:"False: the model has no price now; absent if the sums are not by model"`
}

func newUsageRow(r ledger.Row, prices *pricing.List) UsageRow {
	var known *bool
	if r.Model != "" {
		_, priced := prices.Of(r.Model)
		known = &priced
	}
	return UsageRow{
		Row: r, AudioSeconds: r.Audio.Seconds(), VideoSeconds: r.Video.Seconds(), Cost: pricing.Money(r.Cost), Priced: known,
	}
}

// UsageHead returns the names of the columns of UsageRow.Cells: the dimensions and the counters.
func UsageHead(by []string) []string {
	return slices.Concat(by, []string{
		"requests", "tasks", "failed", "input_tokens", "cached_tokens", "output_tokens", "images", "audio_seconds", "video_seconds", "cost",
	})
}

// Cells returns the row as texts, in the order of UsageHead.
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

// UsageList is sums of the ledger.
type UsageList struct {
	Object string     `json:"object" enum:"list"`
	From   string     `json:"from" doc:"First day"`
	To     string     `json:"to" doc:"Last day"`
	Data   []UsageRow `json:"data" nullable:"false"`
	After  *string    `json:"after" doc:"Value of after for the next page; null at the end"`
}

// The default and the maximum length of a page of sums.
const (
	DefaultUsage = 1000
	MostUsage    = 5000
)

// UsageQuery selects sums of the ledger. Zero days mean 30 days up to the last, and today. Usage also accepts a token's name.
type UsageQuery = ledger.Query

// Usage returns a page of sums of the ledger, by day, token, model and channel.
func (s *Service) Usage(ctx context.Context, by Actor, in *UsageQuery) (list UsageList, err error) {
	if err := reads(by, nil); err != nil {
		return list, err
	}
	query := *in
	if query.Token, err = s.TokenID(ctx, in.Token); err != nil {
		return list, err
	}
	return s.UsageOf(ctx, query)
}

// CompleteDays completes the days of a query. The error is a fault if they are in the wrong order.
func CompleteDays(q *UsageQuery, now time.Time) error {
	if q.To.IsZero() {
		q.To = now.UTC()
	}
	if q.From.IsZero() {
		q.From = q.To.AddDate(0, 0, 1-usageDays)
	}
	if q.From.Truncate(day).After(q.To) { // only the day matters, not the time
		return providers.InvalidField("from", "Invalid request: 'from' must not be after 'to'.")
	}
	return nil
}

// UsageOf returns a page of sums of the ledger for the token whose id is in the query, or for all.
func (s *Service) UsageOf(ctx context.Context, q UsageQuery) (list UsageList, err error) {
	if err := CompleteDays(&q, time.Now()); err != nil {
		return list, err
	}
	cursor, ok := readCursor(q.After)
	if !ok {
		return list, noCursor()
	}
	q.After, q.Limit = string(cursor), cmp.Or(q.Limit, DefaultUsage)
	sums, next, err := s.Ledger.Sums(ctx, q)
	switch {
	case errors.Is(err, ledger.ErrCursor):
		return list, noCursor()
	case err != nil:
		return list, StoreFault("token", q.Token, err)
	}
	list = UsageList{
		Object: "list", From: q.From.Format(time.DateOnly), To: q.To.Format(time.DateOnly),
		Data: make([]UsageRow, len(sums)), After: after([]byte(next)),
	}
	for i, sum := range sums {
		list.Data[i] = newUsageRow(sum, s.Prices)
	}
	return list, nil
}
