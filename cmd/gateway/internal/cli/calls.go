package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/logs"
	"modelrelay/providers"
)

// Calls is gateway calls. It requires no running gateway.
type Calls struct {
	remote

	ID string `arg:"" optional:"" help:"Show one call. The id is that of the request, of its trace, of the upstream's answer, or of the call's task."`

	Token     string        `help:"Calls of this token, by its name or id." placeholder:"NAME"`
	Model     string        `help:"Calls of this model." placeholder:"NAME"`
	Channel   string        `help:"Calls that this channel answered or failed." placeholder:"NAME"`
	Operation string        `help:"Calls of this operation, by its id in the OpenAPI document." placeholder:"ID"`
	Status    string        `help:"Calls with this HTTP status, a class such as 5xx, or failed." placeholder:"WORD"`
	Fault     string        `help:"Calls with this kind of failure; any: all failed calls." placeholder:"KIND"`
	Slower    time.Duration `help:"Calls that took at least this long." placeholder:"DURATION"`
	Since     string        `type:"past" help:"Calls since a date, an RFC 3339 time, or a duration ago such as 1h." placeholder:"WHEN"`
	Until     string        `type:"past" help:"Calls before this time, written as in --since." placeholder:"WHEN"`
	Limit     int           `help:"Show at most this many." default:"50"`
	Follow    bool          `help:"Show new calls until interrupted." short:"f" xor:"form"`
	CSV       bool          `help:"Print CSV." name:"csv" xor:"form"`
}

const (
	// followEvery is the interval of reads for new calls.
	followEvery = time.Second
	// mostCalls is the maximum length of a page of the log.
	mostCalls = 1000
)

// Run shows calls.
func (c *Calls) Run(ctx context.Context, p *Program) error {
	if c.ID != "" {
		return c.one(ctx, p)
	}
	query := filters("token", c.Token, "model", c.Model, "channel", c.Channel, "operation", c.Operation, "status", c.Status, "fault", c.Fault,
		"since", c.Since, "until", c.Until)
	if c.Limit < 1 {
		return &UsageError{Err: errors.New("--limit: must be 1 or more")}
	}
	if c.Slower > 0 {
		query.Set("min_ms", strconv.FormatInt(c.Slower.Milliseconds(), 10))
	}
	if err := p.knownToken(ctx, c.Token); err != nil {
		return err
	}
	if c.Follow {
		return c.follow(ctx, p, query)
	}
	calls, summary, err := c.list(ctx, p, query)
	if err != nil {
		return ofFlag(err)
	}
	switch {
	case p.JSON:
		return printJSON(p.Stdout, calls)
	case c.CSV:
		return printCSV(p.Stdout, logs.Head(), calls, logs.Call.Cells)
	}
	slices.Reverse(calls) // the newest is last, and --follow continues there
	for _, call := range calls {
		fmt.Fprintln(p.Stdout, lineOf(call))
	}
	fmt.Fprintln(p.Stderr, summary)
	return nil
}

// list reads calls. It also returns the time up to which it has read.
func (c *Calls) list(ctx context.Context, p *Program, query url.Values) (found []logs.Call, summary string, err error) {
	n, back := 0, time.Time{}
	for found = []logs.Call{}; len(found) < c.Limit; {
		query.Set("limit", strconv.Itoa(min(mostCalls, c.Limit-len(found))))
		var page logs.List
		if err := p.ask(ctx, "/admin/calls", query, &page); err != nil {
			return nil, "", err
		}
		found = append(found, page.Data...)
		if n += page.Looked; page.Back != nil {
			back = *page.Back
		}
		if page.After == nil {
			break
		}
		query.Set("after", *page.After)
	}
	summary = fmt.Sprintf("%d calls; read %d", len(found), n)
	if n > 0 {
		summary += ", back to " + moment(back)
	}
	return found, summary, nil
}

func (c *Calls) one(ctx context.Context, p *Program) error {
	var call logs.Call
	if err := p.ask(ctx, "/admin/calls/"+url.PathEscape(c.ID), nil, &call); err != nil {
		return err
	}
	switch {
	case p.JSON:
		return printJSON(p.Stdout, call)
	case c.CSV:
		return printCSV(p.Stdout, logs.Head(), []logs.Call{call}, logs.Call.Cells)
	}
	var list fields
	for i, name := range logs.Head() {
		if name != "attempts" {
			list = append(list, [2]string{strings.ReplaceAll(name, "_", " "), call.Cells()[i]})
		}
	}
	for i, a := range call.Attempts {
		text := fmt.Sprintf("%s, key %s: %s after %s", a.Channel, a.Key, a.Outcome, shortMS(a.MS))
		if a.VendorID != "" {
			text += ", " + a.VendorID
		}
		list = append(list, [2]string{"attempt " + strconv.Itoa(i+1), text})
	}
	for _, other := range call.Others {
		list = append(list, [2]string{"same client id", other})
	}
	return printFields(p.Stdout, list)
}

func (c *Calls) follow(ctx context.Context, p *Program, query url.Values) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	query.Set("limit", strconv.Itoa(min(mostCalls, c.Limit)))
	for {
		var page logs.List
		err := p.ask(ctx, "/admin/calls", query, &page)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return ofFlag(err)
		}
		for _, call := range slices.Backward(page.Data) {
			if err := p.printCall(call); err != nil {
				return err
			}
		}
		if page.Newest != nil {
			query.Set("newer", *page.Newest)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (p *Program) printCall(call logs.Call) error {
	if !p.JSON {
		_, err := fmt.Fprintln(p.Stdout, lineOf(call))
		return err
	}
	return writeJSON(p.Stdout, call, "")
}

func lineOf(c logs.Call) string {
	first, end := "-", strconv.Itoa(c.Status)
	if c.FirstByte != nil {
		first = shortMS(*c.FirstByte)
	}
	if c.Fault != "" {
		end += " " + c.Fault
	}
	through := make([]string, 0, len(c.Attempts))
	for _, attempt := range c.Attempts {
		through = append(through, attempt.Channel)
	}
	if len(through) == 0 {
		through = []string{"-"}
	}
	note := c.TaskID
	if c.InputTokens+c.OutputTokens > 0 {
		note = strings.TrimSpace(fmt.Sprintf("%d/%d %s", c.InputTokens, c.OutputTokens, c.Cost))
	}
	if c.Skipped > 0 {
		note = fmt.Sprintf("and %d like it", c.Skipped)
	}
	line := fmt.Sprintf("%s  %-14s %-20s %-16s %-18s first %-8s %-8s %-22s %s", c.At.UTC().Format("2006-01-02 15:04:05.000Z"),
		cmp.Or(c.TokenName, "-"), cmp.Or(c.Model, "-"),
		strings.Join(through, " > "), end, first, shortMS(c.MS), note, c.ID)
	return providers.Shown(strings.TrimRight(line, " "))
}

func shortMS(ms float64) string {
	if ms < 1000 {
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + "s"
}
