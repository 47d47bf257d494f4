package calls

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	streamChunks = 100
	streamPace   = 20 * time.Millisecond
	// streamModel makes the upstream send streamChunks words, one every streamPace.
	streamModel = "gpt-4o-100chunks-20ms"
	// streamSpread is the time over which the streams of a round begin, so that their chunks do not all arrive together.
	streamSpread = 100 * time.Millisecond
	sampleEach   = 50 * time.Millisecond
)

// streams measures event streams that are all open at the same time.
func streams(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	n := b.sizes.Streams
	all, broken, err := b.streamRounds(ctx, n, floor, gateway)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d streams, %d chunks at %v", n, streamChunks, streamPace)
	report.Add(load, "CPU per 1,000", "s", all.cpu, figures.RatioAtMost(1.1))
	report.Add(load, "streams cut", "", all.cut, figures.AtMost(0))
	report.Add(load, "chunk delay p50", "ms", all.p50, nil)
	report.Add(load, "chunk delay p99", "ms", all.p99, nil)
	report.Add(load, "most RSS while open", "MB", all.resident, figures.AtMost(80))
	return broken
}

// streamFigures are the figures of all rounds.
type streamFigures struct{ cpu, p50, p99, cut, resident figures.Series }

// streamRounds runs all rounds with n streams. broken reports streams that were cut or wrong, which does not end the run.
func (b *Bench) streamRounds(ctx context.Context, n int, floor, gateway target) (f streamFigures, broken, err error) {
	err = takeTurns(b.Options.Rounds, floor, gateway, func(to target) error {
		round, err := streamRound(ctx, to, n)
		if err != nil && !errors.Is(err, stage.ErrBroken) {
			return err
		}
		broken = errors.Join(broken, err)
		f.cpu.Add(to.name, round.cpu.Seconds()*1000/float64(n))
		f.p50.Add(to.name, figures.Milliseconds(figures.Quantile(round.delays, 0.50)))
		f.p99.Add(to.name, figures.Milliseconds(figures.Quantile(round.delays, 0.99)))
		f.cut.Add(to.name, float64(round.broken))
		f.resident.Add(to.name, figures.Megabytes(round.resident))
		return nil
	})
	if err == nil {
		f.cut, f.resident = f.cut.Reduce(func(a, b float64) float64 { return a + b }), f.resident.Reduce(math.Max)
	}
	return f, broken, err
}

// streamed is the result of one round of streams.
type streamed struct {
	cpu      time.Duration
	resident int64 // bytes: the highest value seen while the streams were open
	broken   int   // streams that were cut or wrong
	delays   []time.Duration
}

// streamRound opens n streams and reads them to their ends. The error wraps ErrBroken if only some of them were broken.
func streamRound(ctx context.Context, to target, n int) (streamed, error) {
	clients, err := dialAll(ctx, to.addr, n)
	if err != nil {
		return streamed{}, fmt.Errorf("%s: %w", to.name, err)
	}
	defer closeAll(clients)
	request := post(to, fmt.Appendf(nil, `{"model":%q,"stream":true,"messages":[{"role":"user","content":%q}]}`, streamModel, words()))
	before, err := kernel.CPUTime(to.pid)
	if err != nil {
		return streamed{}, err
	}
	over, watched := make(chan struct{}), make(chan int64, 1)
	go func() { watched <- watchMemory(to.pid, over) }()
	var broken error
	results := make([]streamResult, n)
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			wait := time.NewTimer(streamSpread * time.Duration(i) / time.Duration(n))
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-ctx.Done():
				return
			}
			results[i] = c.stream(request)
		})
	}
	running.Wait()
	after, err := kernel.CPUTime(to.pid)
	close(over)
	round := streamed{cpu: after - before, resident: <-watched}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return streamed{}, err
	}
	for _, r := range results {
		err := r.err
		if err == nil {
			err = checkStream(r.body, streamChunks)
		}
		if err != nil {
			round.broken++
			broken = fmt.Errorf("%s: %w: %w", to.name, stage.ErrBroken, err)
		}
		round.delays = append(round.delays, delays(r.arrived)...)
	}
	return round, broken
}

// watchMemory samples the memory of the process until over is closed, and returns the highest value.
func watchMemory(pid int, over <-chan struct{}) int64 {
	tick := time.NewTicker(sampleEach)
	defer tick.Stop()
	var most int64
	for {
		select {
		case <-over:
			return most
		case <-tick.C:
			if now, _, err := kernel.Resident(pid); err == nil {
				most = max(most, now)
			}
		}
	}
}

// streamResult is one stream as its client received it.
type streamResult struct {
	body    []byte
	arrived []time.Time // of each event
	err     error
}

// stream reads one stream to its end and records when its events arrived. The caller checks the body after the round, when
// that does not disturb other streams.
func (c *connection) stream(request []byte) (r streamResult) {
	response, err := c.send(request)
	if err != nil {
		return streamResult{err: err}
	}
	defer response.Body.Close()
	r.body = make([]byte, 0, 32<<10)
	r.arrived = make([]time.Time, 0, streamChunks+4)
	if response.StatusCode != 200 {
		_, err := io.Copy((*sink)(&r.body), io.LimitReader(response.Body, 1<<10))
		r.err = errors.Join(fmt.Errorf("answered %s: %s", response.Status, r.body), err)
		return r
	}
	for {
		if err := c.patience(); err != nil {
			r.err = err
			return r
		}
		r.body = append(r.body, make([]byte, 4<<10)...)[:len(r.body)]
		n, err := response.Body.Read(r.body[len(r.body):cap(r.body)])
		now := time.Now()
		from := max(0, len(r.body)-1) // the end of an event may be split
		r.body = r.body[:len(r.body)+n]
		for range bytes.Count(r.body[from:], []byte("\n\n")) {
			r.arrived = append(r.arrived, now)
		}
		switch {
		case errors.Is(err, io.EOF):
			return r
		case err != nil:
			r.err = fmt.Errorf("cut after %d events: %w", len(r.arrived), err)
			return r
		}
	}
}

type sink []byte

func (s *sink) Write(p []byte) (int, error) {
	*s = append(*s, p...)
	return len(p), nil
}

// checkStream checks that a body has every word in its order, the finish reason, and the last line.
func checkStream(body []byte, chunks int) error {
	var text, finish []byte
	rest, ended := bytes.CutSuffix(body, []byte("data: [DONE]\n\n"))
	if !ended {
		return fmt.Errorf("a stream ended without its last line: …%s", body[max(0, len(body)-200):])
	}
	for event := range bytes.SplitSeq(bytes.TrimSuffix(rest, []byte("\n\n")), []byte("\n\n")) {
		if bytes.HasPrefix(event, []byte(":")) {
			continue // a comment
		}
		data, ok := bytes.CutPrefix(event, []byte("data: "))
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
				Finish string `json:"finish_reason"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &chunk); !ok || err != nil || len(chunk.Choices) != 1 {
			return fmt.Errorf("a stream had an event that the upstream did not send (%w): %.200s", err, event)
		}
		text = append(text, chunk.Choices[0].Delta.Content...)
		finish = append(finish, chunk.Choices[0].Finish...)
	}
	if want := streamText(chunks); string(text) != want || string(finish) != "stop" {
		return fmt.Errorf("a stream had the text %.100q… and ended with %q, want %.100q… and \"stop\"", text, finish, want)
	}
	return nil
}

// streamText is the text of all the upstream's words.
func streamText(chunks int) string {
	var b []byte
	for i := range chunks {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(append(b, "tok"...), int64(i), 10)
	}
	return string(b)
}

// delays are the delays of a stream's events, compared with the upstream's pace from its first event on. The event with
// the smallest delay counts as on time. The last line arrives with the event before it and is left out.
func delays(arrived []time.Time) []time.Duration {
	if len(arrived) < 2 {
		return nil
	}
	late := make([]time.Duration, 0, len(arrived))
	for i, at := range arrived[:len(arrived)-1] {
		late = append(late, at.Sub(arrived[0])-time.Duration(i)*streamPace)
	}
	least := late[0]
	for _, d := range late {
		least = min(least, d)
	}
	for i := range late {
		late[i] -= least
	}
	return late
}
