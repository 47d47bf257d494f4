package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

// FailoverOptions says how long and how hard the fail-over load is.
type FailoverOptions struct {
	// Connections are those that the calls come over.
	Connections int
	// Phase is how long the load runs before one of three channels goes bad, and as long again after it.
	Phase time.Duration
	// Rate is in calls a second, over all connections.
	Rate int
}

const (
	minPhase, maxPhase = time.Second, 10 * time.Minute
	maxFailoverRate    = 5_000

	// The gateway's settings are a small deployment's, with rests short enough that the load meets several probes.
	failoverCooldown  = time.Second
	failoverFirstByte = time.Second
	// settling is what the first look at a slow channel and the first probe after it take; from then on a client should
	// notice little.
	settling = failoverFirstByte + failoverCooldown
	// slowness is how long the slow channel takes, much longer than the gateway waits.
	slowness = 10 * time.Second
)

// FailoverReport says what clients noticed while one of three channels was bad.
type FailoverReport struct {
	Machine string        `json:"machine"`
	Rate    int           `json:"rate"`
	Rows    []FailoverRow `json:"rows"`
}

// FailoverRow is one way of going bad. Latencies are in milliseconds.
type FailoverRow struct {
	// Channel is what one channel of three was: dead, slow or limited (it answers 429).
	Channel string `json:"channel"`
	// Calls are those begun after it went bad, Errors those that did not come to the right answer.
	Calls     int     `json:"calls"`
	Errors    int     `json:"errors"`
	ErrorRate float64 `json:"error_rate"` // per cent
	// Before are the latencies of the same load while all channels were well, After those of the calls, errors included.
	Before Latencies `json:"before"`
	After  Latencies `json:"after"`
	// Settled are those of the calls begun two seconds and more after it went bad.
	Settled Latencies `json:"settled"`
	// First is the first wrong answer, "" for none.
	First string `json:"first,omitempty"`
}

// Latencies are of one set of calls.
type Latencies struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func latenciesOf(all []time.Duration) Latencies {
	return Latencies{figures.Milliseconds(figures.Quantile(all, 0.5)), figures.Milliseconds(figures.Quantile(all, 0.99)), figures.Milliseconds(figures.Quantile(all, 1))}
}

// Failover measures what clients notice when one of three channels of equal weight goes bad under load. An error that a
// client saw is a figure, not an error of Failover.
func Failover(ctx context.Context, on stage.Options, o FailoverOptions) (report *FailoverReport, err error) {
	report = &FailoverReport{Machine: figures.NewReport().Machine, Rate: o.Rate}
	if o.Phase < minPhase || o.Phase > maxPhase {
		return report, fmt.Errorf("phase: %v is not between %v and %v", o.Phase, minPhase, maxPhase)
	}
	if err := stage.Check(
		stage.Bound{Name: "rate", Is: o.Rate, From: 1, UpTo: maxFailoverRate},
		stage.Bound{Name: "connections", Is: o.Connections, From: 1, UpTo: maxConnections},
	); err != nil {
		return report, err
	}
	s := stage.New(on)
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.BuildGateway(ctx); err != nil {
		return report, err
	}
	if err := s.StartRedis(ctx); err != nil {
		return report, err
	}
	for _, bad := range []struct {
		name string
		turn func(upstream *stage.Child) error
	}{
		{"dead", func(upstream *stage.Child) error { return upstream.Kill() }},
		{"slow", func(upstream *stage.Child) error {
			return s.Order(ctx, upstream, "/rules", fmt.Sprintf(`{"action":"delay","ms":%d}`, slowness.Milliseconds()))
		}},
		{"limited", func(upstream *stage.Child) error {
			return s.Order(ctx, upstream, "/rules", fmt.Sprintf(`{"action":"status","status":%d}`, http.StatusTooManyRequests))
		}},
	} {
		on.Log.Info("measuring", "load", "failover", "channel", bad.name)
		row, err := failover(ctx, s, o, bad.turn)
		if err := errors.Join(err, s.Clear()); err != nil {
			return report, fmt.Errorf("%s: %w", bad.name, err)
		}
		row.Channel = bad.name
		report.Rows = append(report.Rows, row)
	}
	return report, nil
}

// failover runs the load on a fresh gateway with three fresh upstreams and lets one of them go bad in the middle.
func failover(ctx context.Context, s *stage.Stage, o FailoverOptions, turn func(upstream *stage.Child) error) (FailoverRow, error) {
	var upstreams []*stage.Child
	for i := range 3 {
		upstream, err := s.Part(ctx, "upstream", fmt.Sprintf("upstream-%d", i))
		if err != nil {
			return FailoverRow{}, err
		}
		upstreams = append(upstreams, upstream)
	}
	addr, err := stage.FreeAddress()
	if err != nil {
		return FailoverRow{}, err
	}
	config, err := s.WriteConfig("gateway.yaml", failoverConfig(addr, s.Redis, upstreams))
	if err != nil {
		return FailoverRow{}, err
	}
	gateway, err := s.Start(ctx, &stage.Child{Name: figures.Gateway, Addr: addr}, s.Answers("/healthz"),
		s.GatewayBinary(), "serve", "--worker=false", "--config", config)
	if err != nil {
		return FailoverRow{}, err
	}
	want, err := expectedChat(ctx, directTo(upstreams[1]))
	if err != nil {
		return FailoverRow{}, err
	}
	to := target{name: figures.Gateway, addr: gateway.Addr, key: stage.ClientKey}
	if _, err := pacedChats(ctx, o, to, want, o.Phase/4); err != nil { // opens connections
		return FailoverRow{}, err
	}
	type outcome struct {
		calls []pacedCall
		err   error
	}
	done := make(chan outcome, 1)
	began := time.Now()
	go func() {
		calls, err := pacedChats(ctx, o, to, want, 2*o.Phase)
		done <- outcome{calls, err}
	}()
	timer := time.NewTimer(o.Phase)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return FailoverRow{}, errors.Join(ctx.Err(), (<-done).err)
	}
	bad := time.Since(began)
	err = turn(upstreams[0])
	load := <-done
	if err := errors.Join(err, load.err); err != nil {
		return FailoverRow{}, err
	}
	return rowOf(load.calls, bad), nil
}

// failoverConfig is that of a gateway with three channels of equal weight.
func failoverConfig(listen string, redis *stage.Child, upstreams []*stage.Child) []byte {
	text := bytes.NewBuffer(fmt.Appendf(nil, `listen: %s
metrics: {listen: 127.0.0.1:0}
log: {level: info, format: json}
redis: {url: redis://%s/0}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: videos, access_key: none, secret_key: none-at-all}
relay: {cooldown: %s, first_byte_timeout: %s, max_attempts: 3}
tokens:
  - {name: bench, key: %s, requests_per_minute: 1000000000}
channels:
`, listen, redis.Addr, stage.Nowhere, stage.Nowhere, failoverCooldown, failoverFirstByte, stage.ClientKey))
	for i, upstream := range upstreams {
		fmt.Fprintf(text, "  - {name: channel-%d, vendor: openai, base_url: http://%s/openai/v1, keys: [%s-%d], models: {\"*\": }}\n", i, upstream.Addr, stage.UpstreamKey, i)
	}
	return text.Bytes()
}

// pacedCall is one call of the load.
type pacedCall struct {
	sent, took time.Duration // sent: since the load began
	wrong      error
}

// pacedChats sends calls at an even rate for a while, whatever becomes of them, each connection its share. A connection
// that is busy with a call when the next is due sends it as soon as it can.
func pacedChats(ctx context.Context, o FailoverOptions, to target, want []byte, last time.Duration) ([]pacedCall, error) {
	request := post(to, chatBody(chatModel))
	every := time.Duration(o.Connections) * time.Second / time.Duration(o.Rate)
	began := time.Now()
	all := make([][]pacedCall, o.Connections)
	errs := make([]error, o.Connections)
	var running sync.WaitGroup
	for i := range o.Connections {
		running.Go(func() {
			client, err := dial(ctx, to.addr)
			if err != nil {
				errs[i] = err
				return
			}
			defer func() {
				if client != nil {
					client.close()
				}
			}()
			var buf bytes.Buffer
			timer := time.NewTimer(every * time.Duration(i) / time.Duration(o.Connections))
			defer timer.Stop()
			for {
				select {
				case <-timer.C:
				case <-ctx.Done():
					errs[i] = ctx.Err()
					return
				}
				sent := time.Since(began)
				if sent >= last {
					return
				}
				wrong := client.call(request, &buf)
				if wrong == nil {
					wrong = checkChat(buf.Bytes(), want)
				}
				all[i] = append(all[i], pacedCall{sent: sent, took: time.Since(began) - sent, wrong: wrong})
				if wrong != nil { // what is left on the connection belongs to nobody
					client.close()
					if client, errs[i] = dial(ctx, to.addr); errs[i] != nil {
						return
					}
				}
				timer.Reset(max(0, every-(time.Since(began)-sent)))
			}
		})
	}
	running.Wait()
	return slices.Concat(all...), errors.Join(errs...)
}

// rowOf sorts the calls by whether they began before or after a channel went bad.
func rowOf(calls []pacedCall, bad time.Duration) FailoverRow {
	var row FailoverRow
	var before, after, settled []time.Duration
	for _, call := range calls {
		switch {
		case call.sent < bad && call.sent+call.took < bad:
			before = append(before, call.took)
			continue
		case call.sent >= bad+settling:
			settled = append(settled, call.took)
		}
		after = append(after, call.took)
		if call.wrong != nil {
			row.Errors++
			if row.First == "" {
				row.First = call.wrong.Error()
			}
		}
	}
	row.Calls = len(after)
	if row.Calls > 0 {
		row.ErrorRate = 100 * float64(row.Errors) / float64(row.Calls)
	}
	row.Before, row.After, row.Settled = latenciesOf(before), latenciesOf(after), latenciesOf(settled)
	return row
}

// Print writes the report as a table.
func (r *FailoverReport) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s; %d calls a second, one of three channels goes bad; cooldown %v, first_byte_timeout %v\n\n",
		r.Machine, r.Rate, failoverCooldown, failoverFirstByte)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "channel\tcalls\terrors\terror rate\tp50 / p99 before, ms\tadded p50 / p99, ms\tlongest, ms\tadded p99 after 2 s, ms\t")
	for _, row := range r.Rows {
		fmt.Fprintf(table, "%s\t%d\t%d\t%.2f %%\t%.1f / %.1f\t%.1f / %.1f\t%.0f\t%.1f\t\n",
			row.Channel, row.Calls, row.Errors, row.ErrorRate, row.Before.P50, row.Before.P99,
			row.After.P50-row.Before.P50, row.After.P99-row.Before.P99, row.After.Max, row.Settled.P99-row.Before.P99)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.First != "" {
			if _, err := fmt.Fprintf(w, "%s: the first error: %s\n", row.Channel, strings.TrimSpace(row.First)); err != nil {
				return err
			}
		}
	}
	return nil
}
