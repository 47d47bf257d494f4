package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
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
func oneCore(ctx context.Context, s *stage, report *Report) (err error) {
	floor, gateway, err := s.pair(ctx)
	if err != nil {
		return err
	}
	spread, err := shareCore(os.Getpid(), s.redis.process.Pid(), s.upstream.process.Pid(), floor.pid, gateway.pid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spread()) }()
	n := s.options.Streams
	all, broken, err := s.streamRounds(ctx, n, floor, gateway)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d streams, all on one core", n)
	report.add(load, "CPU per 1,000", "s", all.cpu, nil)
	report.add(load, "streams cut", "", all.cut, atMost(0))
	report.add(load, "chunk delay p50", "ms", all.p50, nil)
	report.add(load, "chunk delay p99", "ms", all.p99, nil)
	return broken
}

// leavers measures the time from a client's going away in the middle of its stream to the upstream's noticing.
func leavers(ctx context.Context, s *stage, report *Report) error {
	floor, gateway, err := s.pair(ctx)
	if err != nil {
		return err
	}
	left, err := s.tally(ctx, leaversModel)
	if err != nil {
		return err
	}
	canceled := left.Canceled
	waits := map[string][]time.Duration{}
	err = takeTurns(s.options.Rounds, floor, gateway, func(to target) error {
		for range s.options.Leavers {
			canceled++
			took, err := s.leave(ctx, to, canceled)
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
	share := func(q float64) series {
		return series{[]float64{milliseconds(quantile(waits[floor.name], q))}, []float64{milliseconds(quantile(waits[gateway.name], q))}}
	}
	load := fmt.Sprintf("%d clients leave their streams", s.options.Leavers)
	report.add(load, "upstream freed p50", "ms", share(0.50), atMost(100))
	report.add(load, "upstream freed p99", "ms", share(0.99), nil)
	return nil
}

// leave opens a stream, goes away after its first event, and returns how long the upstream took to see that.
func (s *stage) leave(ctx context.Context, to target, canceled int64) (time.Duration, error) {
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
		err := s.getJSON(ctx, fmt.Sprintf("http://%s/_control/wait?operation=chat&model=%s&phase=canceled&count=%d&timeout=20s", s.upstream.addr, leaversModel, canceled), "", &answer)
		if err == nil && !answer.Reached {
			err = fmt.Errorf("%w: the upstream saw %d clients leave, want %d", ErrBroken, answer.Count, canceled)
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
		return fmt.Errorf("%w: answered %s", ErrBroken, response.Status)
	}
	lines := bufio.NewReader(response.Body)
	for range 2 * events { // each is a line and a blank one
		if _, err := lines.ReadSlice('\n'); err != nil {
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
	}
	return nil
}

// slow measures what piles up, and where, for a client that reads the beginning of a long stream and then stands still.
func slow(ctx context.Context, s *stage, report *Report) error {
	floor, gateway, err := s.pair(ctx)
	if err != nil {
		return err
	}
	var ahead, memory series
	err = takeTurns(s.options.Rounds, floor, gateway, func(to target) error {
		sent, grown, err := s.standStill(ctx, to)
		ahead.add(to, megabytes(sent))
		memory.add(to, megabytes(grown))
		return err
	})
	if err != nil {
		return err
	}
	const load = "a reader that stands still, of 200 MB"
	report.add(load, "sent ahead of it", "MB", ahead, nil)
	report.add(load, "memory grown", "MB", memory, atMost(16))
	return nil
}

// standStill returns how much of a long stream was taken for a client that reads next to nothing of it, and how much more
// memory the target then had, in bytes.
func (s *stage) standStill(ctx context.Context, to target) (sent, grown int64, err error) {
	before, _, err := resident(to.pid)
	if err != nil {
		return 0, 0, err
	}
	earlier, err := s.tally(ctx, slowModel)
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
		if err := pause(ctx, sampleEach); err != nil {
			return 0, 0, fmt.Errorf("%s: %w: the upstream goes on sending: %w", to.name, ErrBroken, err)
		}
		now, err := s.tally(ctx, slowModel)
		if err != nil {
			return 0, 0, err
		}
		if now.Sent-earlier.Sent != sent {
			sent, since = now.Sent-earlier.Sent, time.Now()
		}
		has, _, err := resident(to.pid)
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

func (s *stage) tally(ctx context.Context, model string) (tally, error) {
	var stats struct {
		Total tally `json:"total"`
	}
	if err := s.getJSON(ctx, fmt.Sprintf("http://%s/_control/stats?jobs=false&model=%s", s.upstream.addr, model), "", &stats); err != nil {
		return tally{}, fmt.Errorf("ask the upstream: %w", err)
	}
	return stats.Total, nil
}
