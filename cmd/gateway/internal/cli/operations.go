package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/storage/audit"
	"modelrelay/workflows/tasks"
)

// remote is embedded by the commands that call the operators' operations.
type remote struct {
	URL string `name:"url" operator:"" placeholder:"URL" help:"Send the command to the gateway at this address, with the key in GATEWAY_ADMIN_KEY; the audit log records its operator. None: the command uses the services in the configuration file."`
}

const (
	// operatorTimeout bounds the wait of an operator. Temporal's client would retry for a long time.
	operatorTimeout = 30 * time.Second
	// mostRows is the maximum length of a page of a list.
	mostRows = 500
)

// operations returns the client of the operators' operations: those of this process, or of the gateway at the command's address.
func (p *Program) operations() (*videoClient, error) {
	if p.client != nil {
		return p.client, nil
	}
	client := &videoClient{Program: p, base: "http://inside", http: new(http.Client)}
	var err error
	if p.URL == "" {
		var s *Services
		if s, err = p.Open(); err == nil {
			client.http.Transport, err = s.InProcess()
		}
	} else {
		key, _ := p.Env("GATEWAY_ADMIN_KEY")
		if key == "" {
			return nil, &UsageError{Err: errors.New("--url: requires an operator's key in GATEWAY_ADMIN_KEY")}
		}
		client, err = (&clientFlags{URL: p.URL, Token: key}).client(p)
	}
	p.client = client
	return client, err
}

// call calls an operators' operation and decodes its answer into a value, which may be nil. body is sent as JSON, nil for none.
func (p *Program) call(ctx context.Context, method, path string, body, into any) error {
	client, err := p.operations()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout+p.longer)
	defer cancel()
	r := request{method: method, path: path}
	if body != nil {
		if r.body, err = json.Marshal(body); err != nil {
			return &UsageError{Err: err}
		}
		r.header = http.Header{"Content-Type": {"application/json"}}
	}
	response, err := client.send(ctx, r)
	if err != nil {
		return refusal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body) // to its end: the action is recorded only then
	if err == nil && into != nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	return nil
}

func refusal(err error) error {
	answer, _ := errors.AsType[*gatewayError](err)
	if answer == nil {
		return err
	}
	text := cmp.Or(strings.TrimSuffix(answer.Failure.Message, "."), answer.Error())
	return &refused{param: answer.Failure.Param, error: errors.New(strings.ToLower(text[:1]) + text[1:])}
}

// refused is the refusal of an operation. param is the invalid field, "" for none.
type refused struct {
	error

	param string
}

// ofFlag names the flag of an invalid field; other errors are unchanged.
func ofFlag(err error) error {
	refusal, _ := errors.AsType[*refused](err)
	if refusal == nil || refusal.param == "" {
		return err
	}
	text := refusal.Error()
	for _, begin := range []string{"invalid request: '" + refusal.param + "' ", "invalid value for \"" + refusal.param + "\": "} {
		text = strings.TrimPrefix(text, begin)
	}
	return &UsageError{Err: fmt.Errorf("--%s: %s", strings.ReplaceAll(refusal.param, "_", "-"), text)}
}

func (p *Program) ask(ctx context.Context, path string, query url.Values, into any) error {
	return p.call(ctx, http.MethodGet, path+"?"+query.Encode(), nil, into)
}

// askShown shows an operation's answer: with --json unchanged, else with people after it is decoded into a value.
func (p *Program) askShown(ctx context.Context, path string, query url.Values, into any, people func() error) error {
	return p.callShown(ctx, http.MethodGet, path+"?"+query.Encode(), nil, into, people)
}

func (p *Program) callShown(ctx context.Context, method, path string, body, into any, people func() error) error {
	var document json.RawMessage
	if err := p.call(ctx, method, path, body, &document); err != nil {
		return err
	}
	if err := json.Unmarshal(document, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return p.show(document, people)
}

type page struct {
	Data  []json.RawMessage `json:"data"`
	After *string           `json:"after"`
}

// askPages reads limit entries of a list, page by page; 0: all. It also returns them unchanged, for --json.
func askPages[T any](
	ctx context.Context, p *Program, path string, query url.Values, limit int,
) (list []json.RawMessage, entries []T, err error) {
	if limit < 0 {
		return nil, nil, &UsageError{Err: errors.New("--limit: is negative; 0 lists all")}
	}
	list, entries = []json.RawMessage{}, []T{}
	for {
		size := mostRows
		if limit > 0 {
			size = min(size, limit-len(list))
		}
		query.Set("limit", strconv.Itoa(size))
		var next page
		if err := p.ask(ctx, path, query, &next); err != nil {
			return nil, nil, err
		}
		for _, raw := range next.Data {
			var entry T
			if err := json.Unmarshal(raw, &entry); err != nil {
				return nil, nil, fmt.Errorf("read the list: %w", err)
			}
			list, entries = append(list, raw), append(entries, entry)
		}
		if next.After == nil || *next.After == "" || limit > 0 && len(list) >= limit {
			return list, entries, nil
		}
		query.Set("after", *next.After)
	}
}

// printPages prints limit entries of a list, which the operation's query selects: with --json unchanged, else as rows of a table.
func printPages[T any](ctx context.Context, p *Program, path string, query any, limit int, head []string, row func(T) []string) error {
	list, entries, err := askPages[T](ctx, p, path, queryOf(query), limit)
	if err != nil {
		return err
	}
	return p.show(list, func() error { return printTable(p.Stdout, head, rowsOf(entries, row)) })
}

// filters returns the flags with a value, by their names in a query.
func filters(pairs ...string) url.Values {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

// queryOf returns the members of an operation's query that have a value.
func queryOf(operation any) url.Values {
	document, _ := json.Marshal(operation) // texts, numbers and booleans
	var members map[string]any
	_ = json.Unmarshal(document, &members)
	query := make(url.Values, len(members))
	for name, value := range members {
		query.Set(name, fmt.Sprint(value))
	}
	return query
}

// Audit is gateway audit.
type Audit struct {
	remote
	operator.AuditQuery

	Limit int `help:"List at most this many entries; 0: all." default:"50"`
}

// Run lists the entries of the audit log, the newest first.
func (c *Audit) Run(ctx context.Context, p *Program) error {
	head := []string{"TIME", "BY", "WHO", "FROM", "WHAT", "SUBJECT", "OUTCOME", "CHANGES"}
	return printPages(ctx, p, "/admin/audit", c.AuditQuery, c.Limit, head, func(e audit.Entry) []string {
		changes := e.Reason
		for _, change := range e.Changes {
			if changes != "" {
				changes += "; "
			}
			changes += change.String()
		}
		return []string{moment(e.Time), string(e.By), e.Who, e.From, e.What, e.Subject, e.Outcome, changes}
	})
}

// Traffic is gateway traffic.
type Traffic struct {
	remote

	From string `type:"past" help:"Since a date, an RFC 3339 time, or a duration ago such as 24h; none: an hour ago. The sums exist for the last 26 hours." placeholder:"WHEN"`
	To   string `type:"past" help:"Before this time, written as in --from; none: now." placeholder:"WHEN"`
	Step string `help:"Length of a step, such as 15m; all: one step." default:"all" placeholder:"DURATION"`
	By   string `help:"Sum by channel, by model, or by channel,model." default:"channel" placeholder:"WORD"`
}

// Run prints the sums of calls of the last hours.
func (c *Traffic) Run(ctx context.Context, p *Program) error {
	query := filters("step", c.Step, "group_by", c.By, "from", c.From, "to", c.To)
	head := []string{"FROM", "CHANNEL", "MODEL", "CALLS", "FAILED", "TOKENS", "COST", "FIRST BYTE P50", "P95"}
	var list logs.TrafficList
	return p.askShown(ctx, "/admin/traffic", query, &list, func() error {
		return printTable(p.Stdout, head, rowsOf(list.Data, func(s logs.Traffic) []string {
			return []string{
				moment(s.At), of(s.Channel), of(s.Model), count(s.Requests), count(s.Failed), count(s.Tokens), s.Cost.String(),
				milliseconds(s.FirstP50), milliseconds(s.FirstP95),
			}
		}))
	})
}

// of returns the value of a pointer, the zero value for nil.
func of[T any](value *T) (is T) {
	if value != nil {
		is = *value
	}
	return is
}

// milliseconds formats a time; "" for 0.
func milliseconds(ms float64) string {
	if ms == 0 {
		return ""
	}
	return time.Duration(ms * float64(time.Millisecond)).String()
}

type taskCountsCmd struct{ remote }

// Run counts the tasks of all tokens.
func (c *taskCountsCmd) Run(ctx context.Context, p *Program) error {
	var n operator.TaskCounts
	return p.askShown(ctx, "/admin/tasks/counts", nil, &n, func() error {
		whole := func(n int64) string { return strconv.FormatInt(n, 10) }
		return printFields(p.Stdout, fields{
			{"queued", whole(n.Queued)},
			{"submitting", whole(n.Submitting)},
			{"polling", whole(n.Polling)},
			{"archiving", whole(n.Archiving)},
			{"calling", whole(n.Calling)},
			{"stuck", whole(n.Stuck)},
			{"failed in 24h", whole(n.Failed)},
			{"undelivered in 24h", whole(n.Undelivered)},
			{"workers", whole(n.Workers)},
		})
	})
}

type taskDeliveriesCmd struct {
	remote
	operator.DeliveryQuery

	Limit int `help:"List at most this many deliveries; 0: all." default:"50"`
}

// Run lists deliveries of webhooks.
func (c *taskDeliveriesCmd) Run(ctx context.Context, p *Program) error {
	head := []string{"TASK", "EVENT", "STATE", "TOKEN", "MODEL", "BEGUN", "ENDED"}
	return printPages(ctx, p, "/admin/deliveries", c.DeliveryQuery, c.Limit, head, func(d tasks.ListedDelivery) []string {
		return []string{d.Task, d.Event, string(d.State), d.Token, d.Model, moment(d.Created), moment(d.Closed)}
	})
}

func readAll(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("has more than %d bytes", most)
	}
	return content, err
}
