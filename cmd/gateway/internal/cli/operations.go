package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Operation calls one of the operator's operations, which a server has below /admin, in this process and as the command line.
// body is sent as JSON, nil for none; the answer is read as JSON into a value.
type Operation func(ctx context.Context, method, path string, body, into any) error

// mostRows is how long a page of an operation's list is at most.
const mostRows = 500

// operation is what calls the operations, each for operatorTimeout at most.
func (p *Program) operation() (Operation, error) {
	s, err := p.Open()
	if err != nil {
		return nil, err
	}
	operation, err := s.Operations()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, method, path string, body, into any) error {
		ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
		defer cancel()
		return operation(ctx, method, path, body, into)
	}, nil
}

// ask reads an operation's answer.
func (p *Program) ask(ctx context.Context, path string, query url.Values, into any) error {
	operation, err := p.operation()
	if err != nil {
		return err
	}
	return operation(ctx, http.MethodGet, path+"?"+query.Encode(), nil, into)
}

// askShown shows an operation's answer: as it is for machines, else as people read it once it is read into a value.
func (p *Program) askShown(ctx context.Context, path string, query url.Values, into any, people func() error) error {
	var document json.RawMessage
	if err := p.ask(ctx, path, query, &document); err != nil {
		return err
	}
	return p.show(document, func() error {
		if err := json.Unmarshal(document, into); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		return people()
	})
}

// page is a part of an operation's list.
type page struct {
	Data  []json.RawMessage `json:"data"`
	After *string           `json:"after"`
}

// askPages reads limit entries of a list, page by page; 0: all.
func (p *Program) askPages(ctx context.Context, path string, query url.Values, limit int) ([]json.RawMessage, error) {
	if limit < 0 {
		return nil, &UsageError{Err: errors.New("--limit: is negative; 0 lists all")}
	}
	operation, err := p.operation()
	if err != nil {
		return nil, err
	}
	list := []json.RawMessage{}
	for {
		wanted := mostRows
		if limit > 0 {
			wanted = min(wanted, limit-len(list))
		}
		query.Set("limit", strconv.Itoa(wanted))
		var next page
		if err := operation(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &next); err != nil {
			return nil, err
		}
		list = append(list, next.Data...)
		if next.After == nil || *next.After == "" || limit > 0 && len(list) >= limit {
			return list, nil
		}
		query.Set("after", *next.After)
	}
}

// printRows prints a list: as it is for machines, else as rows of a table.
func printRows[T any](p *Program, list []json.RawMessage, head []string, row func(T) []string) error {
	read := make([]T, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &read[i]); err != nil {
			return fmt.Errorf("read the list: %w", err)
		}
	}
	return p.show(list, func() error { return printTable(p.Stdout, head, rowsOf(read, row)) })
}

// filters are the flags that have a value, by their names in a query.
func filters(pairs ...string) url.Values {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}

// setTimes puts times that people write into a query, by their names, which are those of their flags: name, text, name, text.
func setTimes(query url.Values, pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		at, err := parseSince(pairs[i+1], time.Now())
		if err != nil {
			return &UsageError{Err: fmt.Errorf("--%s: %w", pairs[i], err)}
		}
		query.Set(pairs[i], at.UTC().Format(time.RFC3339))
	}
	return nil
}

// Audit is gateway audit.
type Audit struct {
	By      string `help:"What acted: operator, token, cli, file, nobody." enum:",operator,token,cli,file,nobody" default:"" placeholder:"WORD"`
	Who     string `help:"The operator's name, the token's id." placeholder:"NAME"`
	What    string `help:"The operation in a word, such as create_token." placeholder:"WORD"`
	Subject string `help:"The id or name that it is about." placeholder:"ID"`
	Outcome string `help:"How it went: done or refused." enum:",done,refused" default:"" placeholder:"WORD"`
	Since   string `help:"Since a date, an RFC 3339 time, or a duration ago such as 24h." placeholder:"WHEN"`
	Until   string `help:"Before such a time." placeholder:"WHEN"`
	Limit   int    `help:"List at most this many entries; 0: all." default:"50"`
}

// Run lists who changed what, the newest first.
func (c *Audit) Run(ctx context.Context, p *Program) error {
	query := filters("by", c.By, "who", c.Who, "what", c.What, "subject", c.Subject, "outcome", c.Outcome)
	if err := setTimes(query, "since", c.Since, "until", c.Until); err != nil {
		return err
	}
	list, err := p.askPages(ctx, "/admin/audit", query, c.Limit)
	if err != nil {
		return err
	}
	type entry struct {
		Time                                          time.Time
		By, Who, From, What, Subject, Outcome, Reason string
		Changes                                       []struct {
			Field    string
			Old, New json.RawMessage
		}
	}
	return printRows(p, list, []string{"TIME", "BY", "WHO", "FROM", "WHAT", "SUBJECT", "OUTCOME", "CHANGES"}, func(e entry) []string {
		changes := e.Reason
		for _, change := range e.Changes {
			if changes != "" {
				changes += "; "
			}
			changes += change.Field + ": " + orDash(string(change.Old)) + " → " + orDash(string(change.New))
		}
		return []string{moment(e.Time), e.By, e.Who, e.From, e.What, e.Subject, e.Outcome, changes}
	})
}

// Traffic is gateway traffic.
type Traffic struct {
	From string `help:"Since a date, an RFC 3339 time, or a duration ago such as 24h; an hour ago. What is more than 26 hours ago is not known." placeholder:"WHEN"`
	To   string `help:"Before such a time; now." placeholder:"WHEN"`
	Step string `help:"Length of a step, such as 15m; all: one step of all." default:"all" placeholder:"DURATION"`
	By   string `help:"Sum by channel, by model, or by both with a comma between." default:"channel" placeholder:"WORD"`
}

// Run prints the sums of calls of the last hours.
func (c *Traffic) Run(ctx context.Context, p *Program) error {
	query := filters("step", c.Step, "group_by", c.By)
	if err := setTimes(query, "from", c.From, "to", c.To); err != nil {
		return err
	}
	type sum struct {
		At                       time.Time
		Channel, Model           string
		Requests, Failed, Tokens int64
		Cost                     json.Number
		P50                      float64 `json:"first_byte_p50_ms"`
		P95                      float64 `json:"first_byte_p95_ms"`
	}
	head := []string{"FROM", "CHANNEL", "MODEL", "CALLS", "FAILED", "TOKENS", "COST", "FIRST BYTE P50", "P95"}
	var list struct{ Data []sum }
	return p.askShown(ctx, "/admin/traffic", query, &list, func() error {
		return printTable(p.Stdout, head, rowsOf(list.Data, func(s sum) []string {
			return []string{
				moment(s.At), s.Channel, s.Model, number(s.Requests), number(s.Failed), number(s.Tokens), s.Cost.String(), milliseconds(s.P50), milliseconds(s.P95),
			}
		}))
	})
}

// milliseconds prints a time for people; "" for 0.
func milliseconds(ms float64) string {
	if ms == 0 {
		return ""
	}
	return time.Duration(ms * float64(time.Millisecond)).String()
}

type videoCountsCmd struct{}

// Run counts the tasks of all tokens.
func (c *videoCountsCmd) Run(ctx context.Context, p *Program) error {
	var counts map[string]json.RawMessage
	return p.askShown(ctx, "/admin/tasks/counts", nil, &counts, func() error {
		var list fields
		for _, name := range []string{"queued", "submitting", "polling", "archiving", "stuck", "failed", "undelivered", "workers"} {
			label := name
			if name == "failed" || name == "undelivered" {
				label += " in 24h"
			}
			list = append(list, [2]string{label, string(counts[name])})
		}
		return printFields(p.Stdout, list)
	})
}

type videoDeliveriesCmd struct {
	Token string `help:"Of tasks of this token, by name or id." placeholder:"NAME"`
	Model string `help:"Of tasks of this model." placeholder:"NAME"`
	State string `help:"Where they stand: delivering, delivered, undelivered (given up), any." enum:"delivering,delivered,undelivered,any" default:"undelivered"`
	Since string `help:"Begun since a date, an RFC 3339 time, or a duration ago such as 24h." placeholder:"WHEN"`
	Until string `help:"Begun before such a time." placeholder:"WHEN"`
	Limit int    `help:"List at most this many deliveries; 0: all." default:"50"`
}

// Run lists deliveries of webhooks.
func (c *videoDeliveriesCmd) Run(ctx context.Context, p *Program) error {
	query := filters("token", c.Token, "model", c.Model, "state", c.State)
	if err := setTimes(query, "since", c.Since, "until", c.Until); err != nil {
		return err
	}
	list, err := p.askPages(ctx, "/admin/deliveries", query, c.Limit)
	if err != nil {
		return err
	}
	type delivery struct {
		Task, Event, Token, Model, State string
		Created, Closed                  time.Time
	}
	return printRows(p, list, []string{"TASK", "EVENT", "STATE", "TOKEN", "MODEL", "BEGUN", "ENDED"}, func(d delivery) []string {
		return []string{d.Task, d.Event, d.State, d.Token, d.Model, moment(d.Created), moment(d.Closed)}
	})
}

// readAll reads a file of at most so many bytes.
func readAll(from io.Reader, most int64) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("has more than %d bytes", most)
	}
	return content, err
}
