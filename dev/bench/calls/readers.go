package calls

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	// leaversModel is a stream that would last for more than an hour.
	leaversModel = "gpt-4o-100000chunks-50ms"
	// slowModel is a stream of more than 200 MB, sent as fast as it is taken.
	slowModel = "gpt-4o-800000chunks-1ns"
	// slowRead is how many events its client reads before it stands still.
	slowRead = 100
	// slowBuffer is what the kernel may hold for that client, in bytes.
	slowBuffer = 64 << 10
	// standstill is how long an upstream has got rid of nothing when it counts as stopped.
	standstill = time.Second
	// standstillLimit bounds the wait for that.
	standstillLimit = time.Minute
)

// oneCore measures the streams again with the gateway, the upstream, Redis and the clients on one core of the machine.
func oneCore(ctx context.Context, b *Bench, report *figures.Report) (err error) {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	spread, err := kernel.ShareCore(os.Getpid(), b.Redis.PID(), b.Upstream.PID(), floor.pid, gateway.pid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spread()) }()
	n := b.sizes.Streams
	all, broken, err := b.streamRounds(ctx, min(growthRounds, b.Options.Rounds), n, floor, gateway)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d streams, all on one core", n)
	report.Add(load, "CPU per 1,000", "s", all.cpu, nil)
	report.Add(load, "streams cut", "", all.cut, figures.AtMost(0))
	report.Add(load, "chunk delay p50", "ms", all.p50, nil)
	report.Add(load, "chunk delay p99", "ms", all.p99, nil)
	return broken
}

// leavers measures the time from a client's going away in the middle of its stream to the upstream's noticing.
func leavers(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	left, err := b.tally(ctx, leaversModel)
	if err != nil {
		return err
	}
	canceled := left.Canceled
	waits := map[string][]time.Duration{}
	err = takeTurns(b.Options.Rounds, floor, gateway, func(to target) error {
		for range b.sizes.Leavers {
			canceled++
			took, err := b.leave(ctx, to, canceled)
			if err != nil {
				return fmt.Errorf("%s: %w", to.name, err)
			}
			waits[to.name] = append(waits[to.name], took)
		}
		return nil
	})
	if err != nil {
		return err
	}
	share := func(q float64) figures.Series {
		return figures.Series{Floor: []float64{figures.Milliseconds(figures.Quantile(waits[floor.name], q))}, Gateway: []float64{figures.Milliseconds(figures.Quantile(waits[gateway.name], q))}}
	}
	load := fmt.Sprintf("%d clients leave their streams", b.sizes.Leavers)
	report.Add(load, "upstream freed p50", "ms", share(0.50), figures.AtMost(100))
	report.Add(load, "upstream freed p99", "ms", share(0.99), nil)
	return nil
}

// leave opens a stream, goes away after its first event, and returns how long the upstream took to see that.
func (b *Bench) leave(ctx context.Context, to target, canceled int64) (time.Duration, error) {
	c, err := dial(ctx, to.addr)
	if err != nil {
		return 0, err
	}
	defer c.close()
	if err := c.openStream(to, leaversModel, 1); err != nil {
		return 0, err
	}
	seen := make(chan error, 1)
	go func() {
		var answer struct {
			Reached bool  `json:"reached"`
			Count   int64 `json:"count"`
		}
		err := b.GetJSON(ctx, fmt.Sprintf("http://%s/_control/wait?operation=chat&model=%s&phase=canceled&count=%d&timeout=20s", b.Upstream.Addr, leaversModel, canceled), "", &answer)
		if err == nil && !answer.Reached {
			err = fmt.Errorf("%w: the upstream saw %d clients leave, want %d", stage.ErrBroken, answer.Count, canceled)
		}
		seen <- err
	}()
	began := time.Now()
	c.close()
	err = <-seen
	return time.Since(began), err
}

// openStream asks for a stream and reads so many of its events. The rest is never read.
func (c *connection) openStream(to target, model string, events int) error {
	request := post(to, fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[{"role":"user","content":"go"}]}`, model))
	response, err := c.send(request) //nolint:bodyclose // it ends with the connection
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: answered %s", stage.ErrBroken, response.Status)
	}
	lines := bufio.NewReader(response.Body)
	for range 2 * events { // each is a line and a blank one
		if _, err := lines.ReadSlice('\n'); err != nil {
			return fmt.Errorf("%w: %w", stage.ErrBroken, err)
		}
	}
	return nil
}

// slow measures what piles up, and where, for a client that reads the beginning of a long stream and then stands still.
func slow(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	var ahead, memory figures.Series
	err = takeTurns(b.Options.Rounds, floor, gateway, func(to target) error {
		sent, grown, err := b.standStill(ctx, to)
		ahead.Add(to.name, figures.Megabytes(sent))
		memory.Add(to.name, figures.Megabytes(grown))
		return err
	})
	if err != nil {
		return err
	}
	const load = "a reader that stands still, of 200 MB"
	report.Add(load, "sent ahead of it", "MB", ahead, nil)
	report.Add(load, "memory grown", "MB", memory, figures.AtMost(16))
	return nil
}

// standStill returns how much of a long stream was taken for a client that reads next to nothing of it, and how much more
// memory the target then had, in bytes.
func (b *Bench) standStill(ctx context.Context, to target) (sent, grown int64, err error) {
	before, _, err := kernel.Resident(to.pid)
	if err != nil {
		return 0, 0, err
	}
	earlier, err := b.tally(ctx, slowModel)
	if err != nil {
		return 0, 0, err
	}
	c, err := dial(ctx, to.addr)
	if err != nil {
		return 0, 0, err
	}
	defer c.close()
	if conn, ok := c.conn.(*net.TCPConn); ok {
		if err := conn.SetReadBuffer(slowBuffer); err != nil {
			return 0, 0, err
		}
	}
	if err := c.openStream(to, slowModel, slowRead); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", to.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, standstillLimit)
	defer cancel()
	for since := time.Now(); time.Since(since) < standstill; {
		if err := stage.Pause(ctx, sampleEach); err != nil {
			return 0, 0, fmt.Errorf("%s: %w: the upstream goes on sending: %w", to.name, stage.ErrBroken, err)
		}
		now, err := b.tally(ctx, slowModel)
		if err != nil {
			return 0, 0, err
		}
		if now.Sent-earlier.Sent != sent {
			sent, since = now.Sent-earlier.Sent, time.Now()
		}
		has, _, err := kernel.Resident(to.pid)
		if err != nil {
			return 0, 0, err
		}
		grown = max(grown, has-before)
	}
	return sent, grown, nil
}

// tally is what the upstream counts of a model's calls.
type tally struct {
	Canceled int64 `json:"canceled"`
	Sent     int64 `json:"sent"`
}

func (b *Bench) tally(ctx context.Context, model string) (tally, error) {
	var stats struct {
		Total tally `json:"total"`
	}
	if err := b.GetJSON(ctx, fmt.Sprintf("http://%s/_control/stats?jobs=false&model=%s", b.Upstream.Addr, model), "", &stats); err != nil {
		return tally{}, fmt.Errorf("ask the upstream: %w", err)
	}
	return stats.Total, nil
}
