package tasks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	chatPath  = "/v1/chat/completions"
	tasksPath = "/v1/tasks/"
	// otherKey is the key of a second token.
	otherKey = "sk-bench-other"
	// laterAfter is how long the model later works, longer than a create and a read take.
	laterAfter = 500 * time.Millisecond
	// streamEvents events come at this pace.
	streamEvents, streamPace = 50, 20 * time.Millisecond
	// heldCalls run together on one worker, and largeCalls have answers of largeAnswer bytes at the same time.
	heldCalls, largeCalls, largeAnswer = 1000, 100, 10 << 20
	// shareCalls is the number of calls that run at the same time while tokens share the worker.
	shareCalls = 10
	// lookEvery is the pause between two checks of what has arrived.
	lookEvery = 5 * time.Millisecond
	// callsOver is Temporal's query for ended calls.
	callsOver = "WorkflowType = 'Call' AND ExecutionStatus != 'Running'"
)

// vendor is an upstream that records when it receives and answers each call. Its models: quick answers at once, later after a time, held
// and large on release, stream with events that hold the time at which they are sent.
type vendor struct {
	*httptest.Server

	mu                sync.Mutex
	release           chan struct{}        // closed for the calls that are held
	arrived, answered map[string]time.Time // by prompt
}

func newVendor() *vendor {
	v := &vendor{release: make(chan struct{}), arrived: make(map[string]time.Time), answered: make(map[string]time.Time)}
	v.Server = httptest.NewServer(v)
	return v
}

// ServeHTTP answers one chat.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var chat struct {
		Model    string `json:"model"`
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&chat); err != nil || len(chat.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	prompt := chat.Messages[0].Content
	v.mu.Lock()
	v.arrived[prompt] = time.Now()
	release := v.release
	v.mu.Unlock()
	text := "answer"
	switch chat.Model {
	case "later":
		_ = stage.Pause(r.Context(), laterAfter)
	case "held":
		<-release
	case "large":
		<-release
		text = strings.Repeat("x", largeAnswer)
	case "stream":
		v.stream(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, text)
	v.note(v.answered, prompt)
}

func (v *vendor) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for n := range streamEvents {
		end := "null"
		if n == streamEvents-1 {
			end = `"stop"`
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":%s}]}`+"\n\n",
			time.Now().UnixNano(), end)
		_ = http.NewResponseController(w).Flush()
		_ = stage.Pause(r.Context(), streamPace)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// free releases the calls that are held. Later ones are held again.
func (v *vendor) free() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.release)
	v.release = make(chan struct{})
}

func (v *vendor) note(in map[string]time.Time, prompt string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	in[prompt] = time.Now()
}

func (v *vendor) at(in map[string]time.Time, prompt string) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return in[prompt]
}

// await returns when n calls whose prompts begin so have arrived.
func (v *vendor) await(ctx context.Context, prefix string, n int) error {
	for {
		v.mu.Lock()
		got := 0
		for prompt := range v.arrived {
			if strings.HasPrefix(prompt, prefix) {
				got++
			}
		}
		v.mu.Unlock()
		if got >= n {
			return nil
		}
		if err := stage.Pause(ctx, lookEvery); err != nil {
			return fmt.Errorf("%d of %d calls of %q arrived: %w", got, n, prefix, err)
		}
	}
}

// background measures background calls next to synchronous ones.
type background struct {
	*herd

	vendor *vendor
}

func (b *Bench) background(ctx context.Context, most int) (*background, error) {
	v := newVendor()
	d, err := b.deploy(ctx, setting{parts: b.sizes.Parts, apis: 1, workers: 1, vendor: v.URL, calls: most})
	if err != nil {
		v.Close()
		return nil, err
	}
	h, err := b.herd(d, "", "")
	if err != nil {
		v.Close()
		return nil, err
	}
	h.client.Timeout = 5 * time.Minute
	return &background{herd: h, vendor: v}, nil
}

func (b *background) end() {
	b.close()
	b.vendor.Close()
}

// send sends a chat. It returns the answer's body, whose status must be the wanted one.
func (b *background) send(ctx context.Context, key, model, prompt string, status int, headers ...string) (*http.Response, error) {
	body := fmt.Appendf(nil, `{"model":%q,"stream":%t,"messages":[{"role":"user","content":%q}]}`, model, model == "stream", prompt)
	if status == http.StatusBadRequest {
		body = []byte(`{"model":"quick"}`)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.addr(0)+chatPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return b.got(request, key, status)
}

func (b *background) got(request *http.Request, key string, status int) (*http.Response, error) {
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := b.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != status {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return nil, fmt.Errorf("%w: %s instead of %d: %s", stage.ErrBroken, response.Status, status, text)
	}
	return response, nil
}

// once sends a chat and reads the answer, and returns how long that took.
func (b *background) once(
	ctx context.Context, key, model, prompt string, status int, headers ...string,
) (location string, took time.Duration, err error) {
	began := time.Now()
	response, err := b.send(ctx, key, model, prompt, status, headers...)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	err = stage.Drain(response.Body)
	return response.Header.Get("Location"), time.Since(began), err
}

// start starts a background call.
func (b *background) start(ctx context.Context, key, model, prompt string) (path string, took time.Duration, err error) {
	path, took, err = b.once(ctx, key, model, prompt, http.StatusAccepted, "Prefer", "respond-async")
	if err == nil {
		b.mu.Lock()
		b.made++
		b.mu.Unlock()
	}
	return path, took, err
}

// starts starts n calls.
func (b *background) starts(ctx context.Context, key, model, prefix string, n int) error {
	return stage.Crew(ctx, creators, n, func(ctx context.Context, i int) error {
		_, _, err := b.start(ctx, key, model, prefix+strconv.Itoa(i))
		return err
	})
}

// read reads a path of the gateway.
func (b *background) read(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr(0)+path, nil)
	if err != nil {
		return nil, err
	}
	return b.got(request, stage.ClientKey, http.StatusOK)
}

// ended waits for the end of a task as a client does.
func (b *background) ended(ctx context.Context, path string) error {
	for {
		response, err := b.read(ctx, path+"?wait=60")
		if err != nil {
			return err
		}
		var t task
		err = json.NewDecoder(response.Body).Decode(&t)
		_ = response.Body.Close()
		switch {
		case err != nil:
			return err
		case t.Status == "completed":
			return nil
		case t.Status != "queued" && t.Status != "in_progress":
			return fmt.Errorf("%w: a call is %s", stage.ErrBroken, t.Status)
		}
	}
}

// awaitAll returns when every call has ended.
func (b *background) awaitAll(ctx context.Context) error {
	for {
		answer, err := b.temporal.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: callsOver})
		if err != nil {
			return fmt.Errorf("count calls: %w", err)
		}
		if answer.GetCount() >= b.made {
			return nil
		}
		if err := stage.Pause(ctx, 10*lookEvery); err != nil {
			return fmt.Errorf("%d of %d calls are over: %w", answer.GetCount(), b.made, err)
		}
	}
}

// calls measures background calls: one at a time, streamed, many, many running, and those of two tokens.
func calls(ctx context.Context, b *Bench, report *figures.Report) error {
	bg, err := b.background(ctx, heldCalls)
	if err != nil {
		return err
	}
	defer bg.end()
	for _, measure := range []func(context.Context, *figures.Report) error{bg.idle, bg.streams, bg.many, bg.running} {
		if err := measure(ctx, report); err != nil {
			return err
		}
	}
	return nil
}

// idle measures calls one at a time.
func (b *background) idle(ctx context.Context, report *figures.Report) error {
	var refusals, creates, sent, seen []time.Duration
	for i := range min(b.sizes.Calls, idleTasks) {
		_, refusal, err := b.once(ctx, stage.ClientKey, "quick", "", http.StatusBadRequest)
		if err != nil {
			return err
		}
		prompt := fmt.Sprint("idle ", i)
		path, create, err := b.start(ctx, stage.ClientKey, "later", prompt)
		if err != nil {
			return err
		}
		made := time.Now()
		if err := b.ended(ctx, path); err != nil {
			return err
		}
		refusals, creates = append(refusals, refusal), append(creates, create)
		sent, seen = append(sent, b.vendor.at(b.vendor.arrived, prompt).Sub(made)),
			append(seen, time.Since(b.vendor.at(b.vendor.answered, prompt)))
	}
	half := func(of []time.Duration) float64 { return figures.Milliseconds(figures.Quantile(of, 0.50)) }
	add := adderOf(report, "background calls, one at a time")
	add("create p50 above a refusal", "ms", half(creates)-half(refusals), figures.AtMost(15))
	add("from the 202 to the upstream p50", "ms", half(sent), figures.AtMost(150))
	add("from the 202 to the upstream p99", "ms", figures.Milliseconds(figures.Quantile(sent, 0.99)), nil)
	add("from the upstream's last byte to the end of ?wait p50", "ms", half(seen), figures.AtMost(150))
	add("from the upstream's last byte to the end of ?wait p99", "ms", figures.Milliseconds(figures.Quantile(seen, 0.99)), nil)
	return nil
}

func adderOf(report *figures.Report, load string) adder {
	return func(figure, unit string, value float64, want *figures.Target) {
		report.AddOne(load, figure, unit, value, want)
	}
}

// streams measures how much later an event of a background stream is read than one of a synchronous stream.
func (b *background) streams(ctx context.Context, report *figures.Report) error {
	var direct, logged []time.Duration
	for i := range min(b.sizes.Calls, 5) {
		response, err := b.send(ctx, stage.ClientKey, "stream", fmt.Sprint("direct ", i), http.StatusOK)
		if err != nil {
			return err
		}
		if direct, err = lags(response, direct); err != nil {
			return err
		}
		path, _, err := b.start(ctx, stage.ClientKey, "stream", fmt.Sprint("logged ", i))
		if err != nil {
			return err
		}
		if response, err = b.read(ctx, path+"/events"); err != nil {
			return err
		}
		if logged, err = lags(response, logged); err != nil {
			return err
		}
	}
	half := func(of []time.Duration) float64 { return figures.Milliseconds(figures.Quantile(of, 0.50)) }
	add := adderOf(report, "background streams")
	add("an event after that of a synchronous stream p50", "ms", half(logged)-half(direct), figures.AtMost(100))
	add("an event after the upstream p99", "ms", figures.Milliseconds(figures.Quantile(logged, 0.99)), nil)
	return nil
}

// lags reads a stream and adds how late each event came.
func lags(response *http.Response, to []time.Duration) ([]time.Duration, error) {
	defer response.Body.Close()
	const before = `"content":"`
	n := 0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		_, rest, found := strings.Cut(lines.Text(), before)
		if !found {
			continue
		}
		text, _, _ := strings.Cut(rest, `"`)
		sent, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		to, n = append(to, time.Since(time.Unix(0, sent))), n+1
	}
	if n != streamEvents {
		return nil, fmt.Errorf("%w: %d of %d events, %w", stage.ErrBroken, n, streamEvents, lines.Err())
	}
	return to, lines.Err()
}

// many measures what a call costs next to a synchronous one, and how many end in a second.
func (b *background) many(ctx context.Context, report *figures.Report) error {
	n := b.sizes.Calls
	first, err := b.costs(b.deployment)
	if err != nil {
		return err
	}
	if err := stage.Crew(ctx, creators, n, func(ctx context.Context, i int) error {
		_, _, err := b.once(ctx, stage.ClientKey, "quick", fmt.Sprint("direct ", i), http.StatusOK)
		return err
	}); err != nil {
		return err
	}
	direct, err := b.costs(b.deployment)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := b.starts(ctx, stage.ClientKey, "quick", "many ", n); err != nil {
		return err
	}
	if err := b.awaitAll(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	last, err := b.costs(b.deployment)
	if err != nil {
		return err
	}
	add := adderOf(report, fmt.Sprintf("%d background calls", n))
	add("CPU of a synchronous call, api", "ms", figures.Milliseconds(since(direct, first)["api"])/float64(n), nil)
	for _, group := range groups() {
		if cost, ok := since(last, direct)[group]; ok && group != "upstream" {
			add("CPU of a call, "+group, "ms", figures.Milliseconds(cost)/float64(n), nil)
		}
	}
	add("created and ended a second", "1/s", float64(n)/took.Seconds(), nil)
	_, events, err := b.closed(ctx, callsOver)
	if err != nil {
		return err
	}
	add("history events of a call p50", "", float64(figures.Quantile(slices.Collect(maps.Values(events)), 0.50)), nil)
	return nil
}

// running measures the memory of a worker with many running calls, and with large answers.
func (b *background) running(ctx context.Context, report *figures.Report) error {
	if b.sizes.Calls < heldCalls/2 { // a small run
		return nil
	}
	if err := b.starts(ctx, stage.ClientKey, "held", "held ", heldCalls/2); err != nil {
		return err
	}
	if err := b.starts(ctx, otherKey, "held", "held by the other ", heldCalls/2); err != nil {
		return err
	}
	if err := b.vendor.await(ctx, "held ", heldCalls); err != nil {
		return err
	}
	worker := b.workers[0].PID()
	now, _, err := kernel.Resident(worker)
	if err != nil {
		return err
	}
	adderOf(report, fmt.Sprintf("%d running calls", heldCalls))("worker, RSS", "MB", figures.Megabytes(now), figures.AtMost(memoryGoal))
	b.vendor.free()
	if err := b.awaitAll(ctx); err != nil {
		return err
	}
	if err := kernel.ResetPeak(worker); err != nil {
		return err
	}
	if err := b.starts(ctx, stage.ClientKey, "large", "large ", largeCalls); err != nil {
		return err
	}
	if err := b.vendor.await(ctx, "large ", largeCalls); err != nil {
		return err
	}
	b.vendor.free()
	if err := b.awaitAll(ctx); err != nil {
		return err
	}
	_, peak, err := kernel.Resident(worker)
	adderOf(report, fmt.Sprintf("%d answers of %d MiB at once", largeCalls, largeAnswer>>20))("worker, peak RSS", "MB",
		figures.Megabytes(peak), nil)
	return err
}

// sharing measures what the queue of one token costs another token.
func sharing(ctx context.Context, b *Bench, report *figures.Report) error {
	bg, err := b.background(ctx, shareCalls)
	if err != nil {
		return err
	}
	defer bg.end()
	add := adderOf(report, fmt.Sprintf("two tokens, %d calls at a time", shareCalls))
	sizes := []int{10, b.sizes.Queued}
	slices.Sort(sizes)
	for _, n := range sizes {
		prefix := fmt.Sprintf("queue %d ", n)
		if err := bg.starts(ctx, stage.ClientKey, "later", prefix, shareCalls+n); err != nil {
			return err
		}
		var took []time.Duration
		for i := range 5 {
			prompt := fmt.Sprintf("other %d %d", n, i)
			began := time.Now()
			if _, _, err := bg.start(ctx, otherKey, "later", prompt); err != nil {
				return err
			}
			if err := bg.vendor.await(ctx, prompt, 1); err != nil {
				return err
			}
			took = append(took, bg.vendor.at(bg.vendor.arrived, prompt).Sub(began))
		}
		add(fmt.Sprintf("delay of a call with %d queued calls of another token, p50", n), "ms",
			figures.Milliseconds(figures.Quantile(took, 0.50)), nil)
		add(fmt.Sprintf("delay of a call with %d queued calls of another token, most", n), "ms", figures.Milliseconds(figures.Quantile(took, 1)),
			nil)
	}
	return nil
}
