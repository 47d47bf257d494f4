package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

var (
	backgroundCalls = flag.Int("background-calls", 16, "calls of TestBackgroundStorm, by default few enough for every day; the whole is 1000")
	backgroundSeed  = flag.Uint64("background-seed", 1, "what TestBackgroundStorm asks for; 0: something else each time, which is printed")
)

// followRequests collects the bodies of the upstream's requests of an operation, of which it has the last ones alone. The returned function
// ends that and returns them.
func followRequests(s *stack.Stack, operation string) (all func() [][]byte) {
	const every = 100 * time.Millisecond
	type request struct {
		Sequence int64  `json:"sequence"`
		Head     []byte `json:"head"`
	}
	heads := make(map[int64][]byte)
	look := func() {
		var answer struct {
			Requests []request `json:"requests"`
		}
		s.Control.Do(http.MethodGet, "/requests?operation="+operation, nil, &answer)
		for _, r := range answer.Requests {
			heads[r.Sequence] = r.Head
		}
	}
	ctx, end := context.WithCancel(s.T.Context())
	var following sync.WaitGroup
	following.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-tick.C:
				look()
			case <-ctx.Done():
			}
		}
	})
	return func() [][]byte {
		end()
		following.Wait()
		look()
		for n := int64(1); n <= int64(len(heads)); n++ {
			if heads[n] == nil {
				s.T.Errorf("request %d of %d was not collected", n, len(heads))
			}
		}
		return slices.Collect(maps.Values(heads))
	}
}

// storm is what TestBackgroundStorm runs on.
type storm struct {
	*stack.Split
	money *money
	// tokens are the clients: one has a budget, the other has none.
	tokens []string
	// reserved is what each call may cost, in billionths.
	reserved int64
	calls    map[string]stormCall // by task
}

// stormCall is a call as its client knows it.
type stormCall struct {
	token, prompt string
	ended         background
}

func (c stormCall) kind() string { return strings.Fields(c.prompt)[0] }

func newStorm(t *testing.T) *storm {
	t.Helper()
	on := stack.Shared(t)
	if stack.IsFull() {
		on = stack.New(t)
	}
	s := &storm{tokens: []string{"rich", "plain"}, calls: make(map[string]stormCall)}
	s.Split = splitOf(on, stack.GatewayOptions{
		AdminKey: stack.AdminKey, More: "background: {lost_answer: repeat}\n", Relay: "grace: 1s",
		Tokens: "  - {name: rich, key: sk-rich, budget: 1000}\n  - {name: plain, key: sk-plain}\n" + moneyPrices,
	})
	redis := s.RedisClient("")
	s.money = &money{t: t, s: on, lives: s.Front, reader: ledger.NewReader(redis), budgets: ledger.NewBudgets(redis, 0)}
	s.syncRedis()
	return s
}

// syncRedis has Redis store a command before it answers. Otherwise a kill may lose commands of two seconds that it has answered.
func (s *storm) syncRedis() {
	s.T.Helper()
	if s.Redis == nil || !stack.RedisKeeps() {
		return
	}
	if err := s.RedisClient("").ConfigSet(s.T.Context(), "appendfsync", "always").Err(); err != nil {
		s.T.Fatal(err)
	}
}

// request returns a call, which is streamed if its kind is flows. All calls have the same length, and their answers the same tokens, so
// each may cost the same and costs the same.
func (s *storm) request(token, prompt string) stack.Request {
	r := chatIn(prompt, "Idempotency-Key", prompt, "Prefer", prefer)
	r.Token = "sk-" + token
	stream := "false"
	if strings.HasPrefix(prompt, "flows") {
		stream = " true"
	}
	r.Body = strings.Replace(r.Body.(string), "{", `{"max_tokens":9,"stream":`+stream+`,`, 1)
	return r
}

// create makes a call, again until it is taken.
func (s *storm) create(token, prompt string) (id string) {
	s.T.Helper()
	testwait.Eventually(s.T, "the call is taken", stack.CrashTimeout, func() bool {
		answer, err := s.Front.Send(s.T.Context(), s.request(token, prompt))
		if err != nil || answer.Status != http.StatusAccepted {
			return false
		}
		id = strings.TrimPrefix(answer.Header.Get("Location"), "/v1/tasks/")
		return true
	})
	s.calls[id] = stormCall{token: token, prompt: prompt}
	return id
}

// kill kills a process, or cuts a link, and restores it. A worker dies with each.
func (s *storm) kill(random *rand.Rand) {
	s.T.Helper()
	parts := []func(){
		func() {},
		func() { s.Front.Kill(); s.Front.Start() },
		func() { s.ToTemporal.Cut(); s.ToTemporal.Restore() },
	}
	if s.Temporal != nil { // the stack is the test's own
		parts = append(parts,
			func() { s.Temporal.Kill(); s.StartTemporal(); s.Temporal.AwaitReady(s.T) },
			func() { s.S3.Kill(); s.StartS3(); s.S3.AwaitReady(s.T) })
		if stack.RedisKeeps() {
			parts = append(parts, func() { s.Redis.Kill(); s.StartRedis(); s.Redis.AwaitReady(s.T); s.syncRedis() })
		}
	}
	parts[random.IntN(len(parts))]()
	s.Worker.Kill()
	s.RestartWorker()
}

// TestBackgroundStorm: calls under kills of the worker, the gateway and the link to Temporal; with a stack of its own also of Temporal, the
// store and Redis. None is lost, none is stuck, and each is repeated at most once. The ledger has to the billionth what the upstream's
// answers cost, and for each lost answer what was reserved for it.
func TestBackgroundStorm(t *testing.T) {
	t.Parallel()
	seed := *backgroundSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-background-seed %d -background-calls %d", seed, *backgroundCalls)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newStorm(t)
	s.Control.AddRule(map[string]any{"operation": "chat", "action": "hang", "accept": true})
	first := s.create("rich", "quick 0000")
	s.Control.Await("chat", "gpt-4o", "accepted", 1)
	s.reserved = s.money.balance("rich").Reserved
	s.Control.Clear()
	awaitBackground(t, s.Front, "sk-rich", first)
	for _, rule := range []map[string]any{
		{"contains": "tardy", "action": "delay", "ms": 3000},
		{"contains": "flows", "action": "slow", "bytes_per_second": 700}, // about three seconds too
		{"contains": "wrong", "action": "status", "status": 400},
		{"contains": "lossy", "action": "drop", "accept": true, "times": *backgroundCalls / 8},
	} {
		rule["operation"] = "chat"
		s.Control.AddRule(rule)
	}
	requests := followRequests(s.Stack, "chat")
	kills := 1 + *backgroundCalls/50
	for i := range *backgroundCalls {
		kind := []string{"quick", "tardy", "flows", "lossy", "wrong"}[random.IntN(5)]
		s.create(s.tokens[random.IntN(len(s.tokens))], fmt.Sprintf("%s %04d", kind, i+1))
		if (i+1)%max(1, *backgroundCalls/kills) == 0 {
			s.kill(random)
		}
	}
	if len(s.calls) != *backgroundCalls+1 {
		t.Errorf("%d tasks of %d calls", len(s.calls), *backgroundCalls+1)
	}
	began := time.Now()
	for id, call := range s.calls {
		call.ended = awaitBackground(t, s.Front, "sk-"+call.token, id)
		s.calls[id] = call
	}
	took := time.Since(began)
	repeats := s.checkEnds(requests())
	s.checkMoney()
	t.Logf("%d calls, %d kills, %d repeats; the last ended %v after the last kill", len(s.calls), kills, repeats, took)
}

// checkEnds checks how each call has ended, and how often the upstream received it. It returns the number of repeats.
func (s *storm) checkEnds(heads [][]byte) (repeats int) {
	s.T.Helper()
	for id, call := range s.calls {
		ended, sent := call.ended, 0
		for _, head := range heads {
			if bytes.Contains(head, []byte(`"`+call.prompt+`"`)) {
				sent++
			}
		}
		repeats += max(0, sent-1)
		want := map[string]string{"quick": "completed", "tardy": "completed", "flows": "completed", "wrong": "failed"}[call.kind()]
		switch {
		case sent < 1 || sent > 2 || sent > ended.Attempts:
			s.T.Errorf("%q was sent %d times: %s is %+v with %+v", call.prompt, sent, id, ended, ended.Error)
		case want == "completed" && ended.lost() == 2: // both answers were lost
		case call.kind() == "flows" && ended.Status == "failed" && ended.lost() == 1: // its answer was lost, of which readers had seen events
		case want != "" && ended.Status != want:
			s.T.Errorf("%q ended as %+v with %+v, want %s", call.prompt, ended, ended.Error, want)
		}
	}
	return repeats
}

// lost returns how many answers of an ended call were lost. Its upstream is asked once under each claim.
func (b background) lost() int {
	if b.Error != nil && b.Error.Code == workflows.CodeUpstreamUnknown {
		return b.Attempts
	}
	return b.Attempts - 1
}

// checkMoney compares the ledger with the answers of the upstream and the lost ones.
func (s *storm) checkMoney() {
	t, m := s.T, s.money
	t.Helper()
	served := s.Control.Served("sk-upstream-main", "gpt-4o")
	if served.Served == 0 || served.InputTokens%served.Served != 0 || served.OutputTokens%served.Served != 0 {
		t.Fatalf("the upstream's answers are not alike: %+v", served)
	}
	one := stack.Chats{Served: 1, InputTokens: served.InputTokens / served.Served, OutputTokens: served.OutputTokens / served.Served}
	answer := costOf(one, "gpt-4o")
	var completed, lost int64
	wants := make(map[string]ledger.Row)
	for _, call := range s.calls {
		want, cost := wants[call.token], int64(call.ended.lost())*s.reserved
		lost += int64(call.ended.lost())
		want.Requests++
		if call.ended.Status == "completed" {
			completed++
			cost += answer
			want.InputTokens += one.InputTokens
			want.OutputTokens += one.OutputTokens
		} else {
			want.Failed++
		}
		want.Cost += cost
		wants[call.token] = want
		if shown := int64(math.Round(*cmp.Or(call.ended.Cost, new(float64)) * 1e9)); shown != cost {
			t.Errorf("%q costs %d, want %d: %+v with %+v", call.prompt, shown, cost, call.ended, call.ended.Error)
		}
	}
	for _, token := range s.tokens {
		want := wants[token]
		if got := m.settled(token, want.Requests); got != want {
			t.Errorf("%s: the ledger has %+v, want %+v", token, got, want)
		}
		if got := m.balance(token); got != (ledger.Balance{Spent: want.Cost}) {
			t.Errorf("%s: the balance is %+v, want %d spent", token, got, want.Cost)
		}
	}
	var unsettled []unsettledRow
	if m.usage(&unsettled, "--unsettled"); len(unsettled) != 0 {
		t.Errorf("unsettled: %+v", unsettled)
	}
	if left, err := m.budgets.Reservations(t.Context(), ""); err != nil || len(left) != 0 {
		t.Errorf("reserved: %+v, %v", left, err)
	}
	// An answer that the upstream has written may be lost with the worker that received it.
	if s.reserved <= answer || served.Served < completed || served.Served > completed+lost {
		t.Errorf("the upstream has written %d answers of %d, for which %d was reserved; %d calls have one, %d answers were lost", served.Served,
			answer, s.reserved, completed, lost)
	}
	t.Logf("%d answers of %s each, %d lost of %s each", completed, pricing.Money(answer), lost, pricing.Money(s.reserved))
}
