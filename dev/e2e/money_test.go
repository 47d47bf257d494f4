package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// TestMoneyAddsUp: two gateways and a worker serve calls and tasks at random, with faults, broken streams, clients that
// leave, and kills of a gateway and of the worker.
//
//   - Limits: of what both gateways together are asked for, what is admitted is what the limit allows, with no tolerance for
//     calls, calls at a time and money, and for model tokens with that of calls in flight.
//   - Calls of the gateway that lived: the ledger says to the unit what the upstreams say that they served.
//   - Calls of the killed one: each that was served is in the ledger, or reserved and listed as unsettled, and can be ended.
//   - Tasks: the ledger says to the unit what the upstreams made, whichever worker ran them, and nothing stays reserved.
func TestMoneyAddsUp(t *testing.T) {
	t.Parallel()
	if !stack.RedisKeeps() {
		t.Skip("needs redis-server")
	}
	m := newMoney(t)
	m.checkLimits()

	var work sync.WaitGroup
	m.startCalls(&work)
	m.startTasks(&work)
	m.reached("a quarter of the tasks", &m.tasks.made, *moneyTasks/4)
	m.worker.Kill()
	m.worker.Start()
	m.reached("a half of the calls", &m.calls.made, *moneyCalls/2)
	m.killWithCalls(&work)
	m.doomed.Start()
	m.reached("three quarters of the tasks", &m.tasks.made, *moneyTasks*3/4)
	m.worker.Kill()
	m.worker.Start()
	work.Wait()

	m.checkTasks()
	m.checkExact()
	m.checkBroken()
	m.checkKilled()
}

const (
	// The price of a token, in billionths: of input, of output, and of a call. Those of the second model differ.
	callInput, callOutput, callRequest = 3, 7, 1000
	miniInput, miniOutput, miniRequest = 2, 5, 11
	// A second of video, and a task; of the second model a video as well, as its tier for 720p says.
	videoSecond, videoRequest       = 100_000_000, 10_000_000
	proSecond, proVideo, proRequest = 300_000_000, 50_000_000, 20_000_000
	moneyPrices                     = `prices:
  gpt-4o: {input: 0.000000003, output: 0.000000007, unit: 1, request: 0.000001}
  gpt-4o-held: {input: 0.000000003, output: 0.000000007, unit: 1, request: 0.000001}
  gpt-4o-mini: {input: 0.002, output: 0.005, request: 0.000000011}
  sora-2-fast: {second: 0.1, request: 0.01}
  sora-2-fast-fail: {second: 0.1, request: 0.01}
  sora-2-pro-fast: {second: 9, request: 0.02, tiers: [{resolution: 1080p, second: 8}, {resolution: 720p, second: 0.3, video: 0.05}]}
`
	// moneyRedis has everybody wait for Redis as long as a busy machine needs: while it counts as away each gateway limits for
	// itself, and reserves nothing.
	moneyRedis = "?dial_timeout=1m&read_timeout=1m&write_timeout=1m&pool_timeout=1m"
	// forgotten is how long after a gateway's kill its reservations are surely listed: its last sign of life holds for a
	// minute.
	forgotten = 3 * time.Minute
)

// money drives the gateways and reads what they wrote.
type money struct {
	t    *testing.T
	s    *stack.Stack
	seed uint64
	// lives serves calls, tasks and their work to the end. doomed does until it is killed, and again when it is back. worker
	// works on tasks and is killed as well.
	lives, doomed, worker *stack.Gateway
	reader                *ledger.Reader
	budgets               *ledger.Budgets
	calls                 callsDone
	tasks                 tasksDone
}

func newMoney(t *testing.T) *money {
	t.Helper()
	m := &money{t: t, s: stack.Shared(t), seed: *moneySeed}
	if m.seed == 0 {
		m.seed = rand.Uint64()
	}
	t.Logf("-money-seed %d repeats what is asked for", m.seed)
	options := m.options()
	m.lives, m.doomed = m.s.StartGateway(options), m.s.StartGateway(options)
	options.Args = []string{"worker"}
	m.worker = m.s.StartGateway(options)
	redis := m.s.RedisClient(moneyRedis)
	m.reader, m.budgets = ledger.NewReader(redis), ledger.NewBudgets(redis, 0)
	return m
}

// options give each token its own group, and each group channels with their own keys, so that the upstreams can count the calls of each
// token.
func (m *money) options() stack.GatewayOptions {
	o := stack.GatewayOptions{AdminKey: stack.AdminKey, Relay: "cooldown: 5ms, max_attempts: 4", RedisQuery: moneyRedis}
	var tokens, channels strings.Builder
	for _, one := range []struct {
		token, limits string
		channels      int
	}{
		{"exact", "budget: 1000, requests_per_minute: 1000000, tokens_per_minute: 100000000, concurrency: 1000", exactChannels},
		{"broken", "budget: 1000", 1},
		{"doomed", "budget: 1000", 1},
		{"studio", "budget: 100000", 2},
		{"brisk", fmt.Sprintf("requests_per_minute: %d, concurrency: 100", briskLimit), 1},
		{"narrow", fmt.Sprintf("concurrency: %d", narrowLimit), 1},
		{"talker", fmt.Sprintf("tokens_per_minute: %d", talkerLimit), 1},
		{"poor", fmt.Sprintf("budget: %.9f", float64(poorBudget)/1e9), 1},
	} {
		fmt.Fprintf(&tokens, "  - {name: %[1]s, key: sk-%[1]s, group: %[1]s, %[2]s}\n", one.token, one.limits)
		for i := range one.channels {
			fmt.Fprintf(&channels, `  - name: %[1]s-%[2]d
    vendor: openai
    base_url: http://%[3]s/openai/v1
    keys: [%[4]s]
    models: {gpt-4o: , gpt-4o-mini: , gpt-4o-held: , gpt-4o-100chunks: , sora-2-fast: , sora-2-fast-fail: , sora-2-pro-fast: }
    groups: [%[1]s]
`, one.token, i, m.s.UpstreamAt, upstreamKeyOf(one.token, i))
		}
	}
	o.Tokens, o.Channels = tokens.String()+moneyPrices, channels.String()
	return o
}

func upstreamKeyOf(token string, channel int) string {
	return fmt.Sprintf("sk-upstream-%s-%d", token, channel)
}

// random is the chance of one step, the same for one seed at any time.
func (m *money) random(what, step int) *rand.Rand {
	return rand.New(rand.NewPCG(m.seed, uint64(what)<<32|uint64(step)))
}

// reached waits until a counter is at its mark.
func (m *money) reached(what string, counter *atomic.Int64, mark int) {
	m.t.Helper()
	testwait.Eventually(m.t, what, moneyTimeout, func() bool { return counter.Load() >= int64(mark) })
}

// moneyTimeout is for the whole of what is asked for.
const moneyTimeout = 20 * time.Minute

// rows reads a token's ledger.
func (m *money) rows(token string) []ledger.Row {
	m.t.Helper()
	rows, err := m.reader.Read(m.t.Context(), time.Now().AddDate(0, 0, -1), time.Now(), token)
	if err != nil {
		m.t.Fatal(err)
	}
	return rows
}

// sums adds a token's ledger up.
func (m *money) sums(token string) ledger.Row {
	m.t.Helper()
	sums, _, err := m.reader.Sums(m.t.Context(), ledger.Query{From: time.Now().AddDate(0, 0, -1), To: time.Now(), Token: token})
	if err != nil {
		m.t.Fatal(err)
	}
	return sums[0]
}

func (m *money) balance(token string) ledger.Balance {
	m.t.Helper()
	balance, err := m.budgets.Balance(m.t.Context(), token)
	if err != nil {
		m.t.Fatal(err)
	}
	return balance
}

// settled waits until a token's ledger holds so many calls and nothing is reserved.
func (m *money) settled(token string, calls int64) ledger.Row {
	m.t.Helper()
	testwait.Eventually(m.t, "the calls of "+token+" are settled", stack.TaskTimeout, func() bool {
		return m.sums(token).Requests >= calls && m.balance(token).Reserved == 0
	})
	return m.sums(token)
}
