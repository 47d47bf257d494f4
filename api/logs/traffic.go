package logs

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage/traffic"
)

// Traffic has the sums of the calls in one step of time.
type Traffic struct {
	At       time.Time     `json:"at" doc:"When the step begins"`
	Channel  *string       `json:"channel,omitempty" doc:"Channel that answered; empty: none; absent if the sums are not by channel"`
	Model    *string       `json:"model,omitempty" doc:"Public name; other: names that the configuration does not have; absent if the sums are not by model"`
	Requests int64         `json:"requests"`
	Failed   int64         `json:"failed"`
	Tokens   int64         `json:"tokens" doc:"Input and output"`
	Cost     pricing.Money `json:"cost" doc:"In the currency of the prices"`
	FirstP50 float64       `json:"first_byte_p50_ms" doc:"Median of the milliseconds until the first byte, estimated from first_byte; 0: no answer began"`
	FirstP95 float64       `json:"first_byte_p95_ms"`
	First    []int64       `json:"first_byte" nullable:"false" doc:"Number of answers whose first byte arrived within 100, 250, 500, 1,000, 2,500, 5,000, 15,000 ms, and later"`
}

// TrafficList is a series of sums.
type TrafficList struct {
	Object string    `json:"object" enum:"list"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Step   int       `json:"step_seconds"`
	Data   []Traffic `json:"data" nullable:"false"`
}

// TrafficQuery selects sums of traffic.
type TrafficQuery struct {
	From    string `query:"from" doc:"A date or RFC 3339 time; an hour before to by default. Older calls than of the last 26 hours are not counted"`
	To      string `query:"to" doc:"A date or RFC 3339 time; now by default"`
	Step    string `query:"step" doc:"Length of a step in whole minutes, such as 1m or 15m; all: one step; by default sixty steps or a few more"`
	GroupBy string `query:"group_by" doc:"channel, model, or both separated by a comma; by default sums of all calls"`
}

const (
	defaultRange = time.Hour
	usualSteps   = 60
)

func (s *service) addTraffic(g *edge.Group, root string) {
	edge.Register(g, huma.Operation{
		OperationID: "adminTraffic", Method: http.MethodGet, Path: root + "/traffic", Summary: "Calls by time",
		Description: "Counts of relayed calls, conversations and creates of tasks by the minute of their end, over the last 26 hours. " +
			"Steps without calls are absent. adminUsage returns the charged amounts.",
	}, s.ReadTraffic)
}

// ReadTraffic returns sums of the traffic of the last 26 hours.
func (o Options) ReadTraffic(ctx context.Context, in *TrafficQuery) (TrafficList, error) {
	list, by, err := in.read(time.Now().UTC())
	if err != nil {
		return list, err
	}
	rows, err := o.Traffic.Read(ctx, list.From, list.To)
	list.Data = sumTraffic(rows, list.From, time.Duration(list.Step)*time.Second, by)
	return list, awayFault("The store", err)
}

// read parses the query: the list's times, and the dimensions of its sums.
func (q *TrafficQuery) read(now time.Time) (list TrafficList, by []string, err error) {
	list.Object = "list"
	if list.To, err = edge.Moment("to", q.To); err != nil {
		return list, nil, err
	}
	if list.To.IsZero() {
		list.To = now
	}
	if list.From, err = edge.Moment("from", q.From); err != nil {
		return list, nil, err
	}
	if list.From.IsZero() {
		list.From = list.To.Add(-defaultRange)
	}
	if oldest := now.Add(-traffic.Kept); list.From.Before(oldest) {
		list.From = oldest
	}
	list.From = list.From.Truncate(time.Minute)
	if !list.From.Before(list.To) {
		return list, nil, providers.InvalidField("from", "Invalid request: 'from' must be before 'to', and 'to' at most 26 hours ago.")
	}
	step, err := stepOf(q.Step, list.To.Sub(list.From))
	if err != nil {
		return list, nil, err
	}
	list.Step = int(step / time.Second)
	known := []string{"channel", "model"}
	by, wrong := edge.Words(q.GroupBy, known)
	if wrong {
		err = providers.InvalidField("group_by", "Invalid request: 'group_by' accepts %s.", strings.Join(known, ", "))
	}
	return list, by, err
}

func stepOf(text string, span time.Duration) (time.Duration, error) {
	switch text {
	case "all":
		return (span + time.Minute - 1).Truncate(time.Minute) + time.Minute, nil
	case "":
		return max(time.Minute, (span / usualSteps).Truncate(time.Minute)), nil
	}
	step, err := time.ParseDuration(text)
	if err != nil || step < time.Minute || step%time.Minute != 0 || step > traffic.Kept {
		return 0, providers.InvalidField("step", "Invalid request: 'step' must be a number of whole minutes such as 5m, or all.")
	}
	return step, nil
}

// sumTraffic adds rows by steps from a time, and by dimensions.
func sumTraffic(rows []traffic.Row, from time.Time, step time.Duration, by []string) []Traffic {
	type place struct {
		step           time.Duration
		channel, model string
	}
	sums := make(map[place]*traffic.Sums)
	for _, row := range rows {
		at := place{step: row.Minute.Sub(from).Truncate(step)}
		if slices.Contains(by, "channel") {
			at.channel = row.Channel
		}
		if slices.Contains(by, "model") {
			at.model = row.Model
		}
		if sums[at] == nil {
			sums[at] = new(traffic.Sums)
		}
		sums[at].Add(row.Sums)
	}
	list := make([]Traffic, 0, len(sums))
	inOrder := func(a, b place) int {
		return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.channel, b.channel), cmp.Compare(a.model, b.model))
	}
	for _, at := range slices.SortedFunc(maps.Keys(sums), inOrder) {
		sum := sums[at]
		one := Traffic{
			At: from.Add(at.step), Requests: sum.Requests, Failed: sum.Failed, Tokens: sum.Tokens, Cost: pricing.Money(sum.Cost),
			FirstP50: inMS(sum.Quantile(0.5)), FirstP95: inMS(sum.Quantile(0.95)), First: sum.First[:],
		}
		if slices.Contains(by, "channel") {
			one.Channel = &at.channel
		}
		if slices.Contains(by, "model") {
			one.Model = &at.model
		}
		list = append(list, one)
	}
	return list
}
