package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/logs"
	"modelrelay/providers"
	"modelrelay/storage/calllog"
)

// Calls is gateway calls. It works on Redis and the archive directly, so it needs no running gateway.
type Calls struct {
	ID string `arg:"" optional:"" help:"Show one call, by any of its ids: the request's, its trace's, the upstream's, or that of the task that it made."`

	Token     string        `help:"Calls of this token, by its name or id." placeholder:"NAME"`
	Model     string        `help:"Calls of this model." placeholder:"NAME"`
	Channel   string        `help:"Calls that this channel answered, or failed." placeholder:"NAME"`
	Operation string        `help:"Calls of this operation, by its id in the OpenAPI document." placeholder:"ID"`
	Status    string        `help:"Calls with this HTTP status, a class such as 5xx, or failed." placeholder:"WORD"`
	Fault     string        `help:"Calls that failed in this way, or any." placeholder:"KIND"`
	Slower    time.Duration `help:"Calls that took so long at least." placeholder:"DURATION"`
	Since     string        `help:"Calls since a date, an RFC 3339 time, or a duration ago such as 1h." placeholder:"WHEN"`
	Until     string        `help:"Calls before, as --since." placeholder:"WHEN"`
	Limit     int           `help:"Show at most this many." default:"50"`
	Follow    bool          `help:"Go on with the calls that come, until interrupted." short:"f" xor:"form"`
	CSV       bool          `help:"Print CSV." name:"csv" xor:"form"`
}

// followEvery is how often calls that came are looked for.
const followEvery = time.Second

// Run shows calls.
func (c *Calls) Run(ctx context.Context, p *Program) error {
	filter, err := c.filter(time.Now())
	if err != nil {
		return &UsageError{Err: err}
	}
	s, err := p.Open()
	if err != nil {
		return err
	}
	if s.Config.Calls.Recent == 0 {
		return errors.New("calls.recent is 0 in the configuration: no calls are kept")
	}
	if c.Token != "" {
		found, err := findToken(ctx, s.Redis, c.Token)
		if err != nil {
			return err
		}
		filter.Token = found.ID
	}
	reader := s.Calls
	switch {
	case c.ID != "":
		return c.one(ctx, p, reader, filter)
	case c.Follow:
		return c.follow(ctx, p, reader, filter)
	}
	calls, looked, err := c.list(ctx, reader, filter)
	if err != nil {
		return err
	}
	switch {
	case p.JSON:
		return printJSON(p.Stdout, calls)
	case c.CSV:
		return printCSV(p.Stdout, logs.Head(), calls, logs.Call.Cells)
	}
	slices.Reverse(calls) // the newest stands above the prompt, where --follow goes on
	for _, call := range calls {
		fmt.Fprintln(p.Stdout, lineOf(call))
	}
	fmt.Fprintln(p.Stderr, looked)
	return nil
}

// filter reads the flags.
func (c *Calls) filter(now time.Time) (calllog.Filter, error) {
	words := url.Values{"status": {c.Status}, "fault": {c.Fault}, "model": {c.Model}, "channel": {c.Channel}, "operation": {c.Operation}}
	filter, err := logs.ParseFilter(words)
	if fault := (*providers.Fault)(nil); errors.As(err, &fault) {
		return filter, errors.New("--" + fault.Param + ": " + strings.TrimPrefix(fault.Message, "Invalid request: "))
	}
	if filter.Since, err = parseSince(c.Since, now); err != nil {
		return filter, fmt.Errorf("--since: %w", err)
	}
	if filter.Until, err = parseSince(c.Until, now); err != nil {
		return filter, fmt.Errorf("--until: %w", err)
	}
	if c.Limit < 1 {
		return filter, errors.New("--limit: must be 1 or more")
	}
	filter.Slower = c.Slower
	return filter, nil
}

// list looks for calls, and says how far.
func (c *Calls) list(ctx context.Context, reader *calllog.Reader, filter calllog.Filter) (found []logs.Call, looked string, err error) {
	n, after, back := 0, "", time.Time{}
	for len(found) < c.Limit {
		page, err := reader.Scan(ctx, filter, calllog.Range{After: after, Limit: c.Limit - len(found)})
		if err != nil {
			return nil, "", err
		}
		for _, call := range page.Calls {
			found = append(found, logs.NewCall(call))
		}
		if n += page.Looked; page.Looked > 0 {
			back = page.Back
		}
		if after = page.Next; after == "" {
			break
		}
	}
	looked = fmt.Sprintf("%d calls; looked at %d", len(found), n)
	if n > 0 {
		looked += ", back to " + moment(back)
	}
	return found, looked, nil
}

// one shows one call.
func (c *Calls) one(ctx context.Context, p *Program, reader *calllog.Reader, filter calllog.Filter) error {
	call, err := logs.Find(ctx, reader.Scan, filter, c.ID)
	if fault := (*providers.Fault)(nil); errors.As(err, &fault) {
		return errors.New(fault.Message)
	} else if err != nil {
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

// follow prints the calls that come until ctx ends.
func (c *Calls) follow(ctx context.Context, p *Program, reader *calllog.Reader, filter calllog.Filter) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	above := ""
	for {
		page, err := reader.Scan(ctx, filter, calllog.Range{Above: above, Limit: c.Limit})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		for _, call := range slices.Backward(page.Calls) {
			if err := p.printCall(logs.NewCall(call)); err != nil {
				return err
			}
		}
		if page.Newest != "" {
			above = page.Newest
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// printCall prints one line of a list without an end.
func (p *Program) printCall(call logs.Call) error {
	if !p.JSON {
		_, err := fmt.Fprintln(p.Stdout, lineOf(call))
		return err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(call); err != nil {
		return err
	}
	_, err := p.Stdout.Write(escapeJSON(out.Bytes()))
	return err
}

// lineOf is a call on one line, for people.
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
	line := fmt.Sprintf("%s  %-14s %-20s %-16s %-18s first %-8s %-8s %-22s %s", c.At.UTC().Format("2006-01-02 15:04:05.000Z"), orDash(c.TokenName), orDash(c.Model),
		strings.Join(through, " > "), end, first, shortMS(c.MS), note, c.ID)
	return providers.Shown(strings.TrimRight(line, " "))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// shortMS is a number of milliseconds for people.
func shortMS(ms float64) string {
	if ms < 1000 {
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + "s"
}
