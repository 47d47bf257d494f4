package calls

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"
	chatModel    = "gpt-4o-mini"
	// chatText is the length of each of a request's two texts. The request, and the answer that repeats it, have about 1 KB.
	chatText = 400
	// warmUp: a tenth of a round is sent before the first one, to fill pools and open connections.
	warmUp = 10
)

// chat measures short calls. Each connection sends its next request when it has the answer to the last one.
func chat(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	want, err := b.warm(ctx, floor, gateway)
	if err == nil {
		err = limited(ctx, gateway)
	}
	if err != nil {
		return err
	}
	o := b.sizes
	var cpu, p50, p99, reuse, memory figures.Series
	err = takeTurns(b.Options.Rounds, floor, gateway, func(to target) error {
		before, err := b.accepted(ctx)
		if err != nil {
			return err
		}
		round, err := chatRound(ctx, to, want, o.Connections, o.Requests)
		if err != nil {
			return err
		}
		after, err := b.accepted(ctx)
		if err != nil {
			return err
		}
		now, _, err := kernel.Resident(to.pid)
		if err != nil {
			return err
		}
		cpu.Add(to.name, round.cpu.Seconds()*1000/float64(o.Requests))
		p50.Add(to.name, figures.Milliseconds(figures.Quantile(round.latencies, 0.50)))
		p99.Add(to.name, figures.Milliseconds(figures.Quantile(round.latencies, 0.99)))
		reuse.Add(to.name, 100*(1-float64(after-before)/float64(o.Requests)))
		memory.Add(to.name, figures.Megabytes(now))
		return nil
	})
	if err != nil {
		return err
	}
	load := fmt.Sprintf("chat, %d connections", o.Connections)
	report.Add(load, "CPU per 1,000", "s", cpu, figures.RatioAtMost(1.3))
	report.Add(load, "latency p50", "ms", p50, nil)
	report.Add(load, "latency p99", "ms", p99, nil)
	report.Add(load, "upstream connections reused", "%", reuse, figures.AtLeast(99))
	report.Add(load, "RSS", "MB", memory, nil)
	return nil
}

// warm sends the targets the calls that fill pools and open connections, and returns the part that every answer must contain.
func (b *Bench) warm(ctx context.Context, targets ...target) (want []byte, err error) {
	if want, err = expectedChat(ctx, b.direct()); err != nil {
		return nil, err
	}
	o := b.sizes
	for _, to := range targets {
		if _, err := chatRound(ctx, to, want, o.Connections, max(o.Connections, o.Requests/warmUp)); err != nil {
			return nil, err
		}
	}
	return want, nil
}

// round is the result of one round of a load.
type round struct {
	cpu       time.Duration
	latencies []time.Duration
}

// chatRound sends requests over a number of connections and checks every answer.
func chatRound(ctx context.Context, to target, want []byte, connections, requests int) (round, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clients, err := dialAll(ctx, to.addr, connections)
	if err != nil {
		return round{}, fmt.Errorf("%s: %w", to.name, err)
	}
	defer closeAll(clients)
	request := post(to, to.chatBody())
	latencies := make([][]time.Duration, connections)
	var left atomic.Int64
	left.Store(int64(requests))
	before, err := kernel.CPUTime(to.pid)
	if err != nil {
		return round{}, err
	}
	var running sync.WaitGroup
	for i, c := range clients {
		running.Go(func() {
			var buf bytes.Buffer
			for left.Add(-1) >= 0 {
				sent := time.Now()
				err := c.call(request, &buf)
				if err == nil {
					err = to.checkChat(buf.Bytes(), want)
				}
				if err != nil {
					cancel(fmt.Errorf("%s: %w: %w", to.name, stage.ErrBroken, err))
					return
				}
				latencies[i] = append(latencies[i], time.Since(sent))
			}
		})
	}
	running.Wait()
	if err := context.Cause(ctx); err != nil {
		return round{}, err
	}
	after, err := kernel.CPUTime(to.pid)
	if err != nil {
		return round{}, err
	}
	done := round{cpu: after - before}
	for _, some := range latencies {
		done.latencies = append(done.latencies, some...)
	}
	return done, nil
}

// chatPath is the path of chats in the target's format.
func (t target) chatPath() string {
	if t.messages {
		return messagesPath
	}
	return chatPath
}

// version is the header that the target's format requires, with the end of the line before it.
func (t target) version() string {
	if t.messages {
		return "\r\nAnthropic-Version: 2023-06-01"
	}
	return ""
}

// chatBody is the request in the target's format.
func (t target) chatBody() []byte {
	if t.messages {
		return fmt.Appendf(nil, `{"model":%q,"system":%q,"messages":[{"role":"user","content":%q}],"temperature":0.7,"max_tokens":500}`,
			t.model, words(), words())
	}
	return chatBody(cmp.Or(t.model, chatModel))
}

// chatBody is a request with instructions and a question of the same length.
func chatBody(model string) []byte {
	return fmt.Appendf(nil, `{"model":%q,"messages":[{"role":"system","content":%q},{"role":"user","content":%q}],"temperature":0.7,"max_tokens":500}`,
		model, words(), words())
}

// words is a text of chatText bytes.
func words() string {
	const some = "a word or two of the question "
	return strings.Repeat(some, chatText/len(some)+1)[:chatText]
}

// expectedChat calls an upstream directly and returns the part of its answer that every answer must contain.
func expectedChat(ctx context.Context, to target) ([]byte, error) {
	c, err := dial(ctx, to.addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	var buf bytes.Buffer
	if err := c.call(post(to, chatBody(chatModel)), &buf); err != nil {
		return nil, err
	}
	if !json.Valid(buf.Bytes()) {
		return nil, fmt.Errorf("%w: the upstream's own is no JSON: %.300s", stage.ErrBroken, buf.Bytes())
	}
	at := bytes.Index(buf.Bytes(), []byte(`"model"`)) // the id and the time before it differ in each answer
	if at < 0 || !bytes.Contains(buf.Bytes(), []byte(words())) {
		return nil, fmt.Errorf("%w: the upstream's own: %.300s", stage.ErrBroken, buf.Bytes())
	}
	return bytes.Clone(buf.Bytes()[at:]), nil
}

// limited checks that the gateway enforces limits while it is measured: the answer names the limit.
func limited(ctx context.Context, gateway target) error {
	c, err := dial(ctx, gateway.addr)
	if err != nil {
		return err
	}
	defer c.close()
	response, err := c.send(post(gateway, chatBody(chatModel)))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.Header.Get("X-Ratelimit-Remaining-Requests") == "" {
		return fmt.Errorf("%w: the gateway answered %s without a limit", stage.ErrBroken, response.Status)
	}
	return stage.Drain(response.Body)
}

// checkChat checks an answer: it is the upstream's own or, if the load names a model, that model's with the same text.
func (t target) checkChat(got, want []byte) error {
	if t.model == "" {
		return checkChat(got, want)
	}
	model := t.model
	if t.messages {
		model = claudeModel // the untranslated answer has the upstream's name
	}
	if !json.Valid(got) || !bytes.Contains(got, []byte(words())) || !bytes.Contains(got, []byte(model)) {
		return fmt.Errorf("got %.300s, want an answer of %s that repeats the question", got, model)
	}
	return nil
}

func checkChat(got, want []byte) error {
	if !bytes.HasSuffix(got, want) || got[0] != '{' {
		return fmt.Errorf("got %.300s, want the upstream's answer", got)
	}
	return nil
}

// takeTurns runs every round with the floor and with the gateway, in the order A B, B A, A B, ….
func takeTurns(rounds int, floor, gateway target, do func(to target) error) error {
	for i := range rounds {
		order := [2]target{floor, gateway}
		if i%2 == 1 {
			order[0], order[1] = order[1], order[0]
		}
		for _, to := range order {
			if err := do(to); err != nil {
				return err
			}
		}
	}
	return nil
}

// accepted asks the upstream how many connections it has accepted. The connection of this request is kept and counts once.
func (b *Bench) accepted(ctx context.Context) (int64, error) {
	var stats struct {
		Connections struct {
			Accepted int64 `json:"accepted"`
		} `json:"connections"`
	}
	if err := b.GetJSON(ctx, "http://"+b.Upstream.Addr+"/_control/stats?jobs=false", &stats); err != nil {
		return 0, fmt.Errorf("ask the upstream: %w", err)
	}
	return stats.Connections.Accepted, nil
}
