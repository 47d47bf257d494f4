package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/providers"
	"modelrelay/storage"
)

const (
	// A token of input costs 3 billionths, one of output 7, a call 1,000; a second of video a tenth, a task a hundredth.
	callRequest, callInput, callOutput = 1000, 3, 7
	videoSecond, videoRequest          = 100_000_000, 10_000_000
	moneyPrices                        = `prices:
  gpt-4o: {input: 0.000000003, output: 0.000000007, unit: 1, request: 0.000001}
  gpt-4o-mini: {input: 0.000000003, output: 0.000000007, unit: 1, request: 0.000001}
  sora-2-fast: {second: 0.1, request: 0.01}
  sora-2-fast-fail: {second: 0.1, request: 0.01}
`
	// moneyCallers is how many clients call at a time.
	moneyCallers = 12
	// forgotten is how long after a gateway's kill its reservations are surely listed: its last sign of life holds for a
	// minute.
	forgotten = 2 * time.Minute
)

// bought is what clients got of the calls of one token.
type bought struct{ calls, failed, input, output atomic.Int64 }

func (s *bought) cost() int64 {
	return callRequest*(s.calls.Load()-s.failed.Load()) + callInput*s.input.Load() + callOutput*s.output.Load()
}

// TestMoneyAddsUp: two gateways serve calls and tasks of tokens with budgets, with faults, broken streams and clients that
// leave, and one of them is killed on the way. Of those that lived the ledger says to the unit what was served; of the
// killed one's calls every one is in the ledger or reserved and listed as unsettled; tasks are exact whoever worked on them.
func TestMoneyAddsUp(t *testing.T) {
	t.Parallel()
	if !redisKeeps() {
		t.Skip("needs redis-server")
	}
	s := newStack(t)
	m := &money{s: s}
	m.lives, m.doomed = s.gateway(m.options()), s.gateway(m.options())
	redis, err := storage.OpenRedis("redis://"+s.redisAt+"/0", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = redis.Close() })
	m.reader, m.budgets = storage.NewUsageReader(redis, ""), storage.NewBudgets(redis, nil)
	s.control.rule(map[string]any{"action": "status", "status": 400, "contains": "please refuse"})
	s.control.rule(map[string]any{"action": "cut", "chunks": 3, "contains": "please break"})

	var exact, killed bought
	var work sync.WaitGroup
	left := *moneyCalls
	var mu sync.Mutex
	next := func() int { // counts down
		mu.Lock()
		defer mu.Unlock()
		left--
		return left
	}
	for range moneyCallers {
		work.Go(func() {
			for i := next(); i >= 0; i = next() {
				switch {
				case i%3 == 0:
					m.call(m.doomed, "doomed", i, &killed)
				case i%10 == 1:
					m.leave(i)
				default:
					m.call(m.lives, "exact", i, &exact)
				}
			}
		})
	}
	work.Go(func() {
		eventually(t, "a half is called", taskTimeout, func() bool { mu.Lock(); defer mu.Unlock(); return left < *moneyCalls/2 })
		m.doomed.kill()
	})
	ids := m.makeTasks(&work)
	work.Wait()
	m.checkTasks(ids)
	m.checkCalls("exact", &exact)
	m.checkBroken()
	m.checkKilled(&killed)
}

// money drives two gateways and reads what they wrote.
type money struct {
	s             *stack
	lives, doomed *gateway
	reader        *storage.UsageReader
	budgets       *storage.Budgets
}

func (m *money) options() gatewayOptions {
	return gatewayOptions{
		tokens: `  - {name: exact, key: sk-exact, budget: 1000, requests_per_minute: 1000000, tokens_per_minute: 100000000, concurrency: 1000}
  - {name: broken, key: sk-broken, budget: 1000}
  - {name: doomed, key: sk-doomed, budget: 1000}
  - {name: studio, key: sk-studio, budget: 100000}
` + moneyPrices,
		channels: fmt.Sprintf(`  - name: main
    vendor: openai
    base_url: http://%s/openai/v1
    keys: [sk-upstream-main]
    models: {gpt-4o: , gpt-4o-mini: , sora-2-fast: , sora-2-fast-fail: }
`, m.s.at),
	}
}

// call makes one call and notes what its answer says; one in ten is refused by the upstream, half of the others stream.
func (m *money) call(g *gateway, name string, i int, into *bought) {
	sdk := g.sdk(option.WithAPIKey("sk-"+name), option.WithMaxRetries(0))
	params := openai.ChatCompletionNewParams{Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{
		openai.UserMessage(fmt.Sprintf("Word %d. ", i) + strings.Repeat("more ", i%40)),
	}}
	refused := i%10 == 5
	if refused {
		params.Messages = append(params.Messages, openai.UserMessage("please refuse"))
	}
	var usage openai.CompletionUsage
	var err error
	if i%2 == 0 {
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		stream := sdk.Chat.Completions.NewStreaming(m.s.t.Context(), params)
		for stream.Next() {
			if chunk := stream.Current(); chunk.Usage.TotalTokens > 0 {
				usage = chunk.Usage
			}
		}
		err = stream.Err()
	} else {
		var answer *openai.ChatCompletion
		if answer, err = sdk.Chat.Completions.New(m.s.t.Context(), params); err == nil {
			usage = answer.Usage
		}
	}
	var status *openai.Error
	switch {
	case err == nil:
		into.calls.Add(1)
		into.input.Add(usage.PromptTokens)
		into.output.Add(usage.CompletionTokens)
	case errors.As(err, &status) && refused && status.StatusCode == 400:
		into.calls.Add(1)
		into.failed.Add(1)
	case g == m.lives:
		m.s.t.Errorf("call %d: %v", i, err)
	}
}

// leave makes a stream whose upstream breaks off, or that the client leaves.
func (m *money) leave(i int) {
	ctx, cancel := context.WithCancel(m.s.t.Context())
	defer cancel()
	sdk := m.lives.sdk(option.WithAPIKey("sk-broken"), option.WithMaxRetries(0))
	text := "please go on"
	if i%20 == 1 {
		text = "please break"
	}
	stream := sdk.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model: "gpt-4o-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	})
	for n := 0; stream.Next(); n++ {
		if n == 2 && text == "please go on" {
			cancel()
		}
	}
}

// makeTasks creates videos through either gateway, and through the one that lives where the other does not answer.
func (m *money) makeTasks(work *sync.WaitGroup) func() []string {
	ids := make([]string, *moneyTasks)
	for i := range ids {
		work.Go(func() {
			model := "sora-2-fast"
			if i%6 == 0 {
				model += "-fail"
			}
			params := openai.VideoNewParams{Prompt: fmt.Sprint("paid ", i), Model: openai.VideoModel(model), Seconds: openai.VideoSeconds([]string{"4", "8", "12"}[i%3])}
			for _, g := range []*gateway{[]*gateway{m.lives, m.doomed}[i%2], m.lives} {
				sdk := g.sdk(option.WithAPIKey("sk-studio"), option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", fmt.Sprint("paid-", i)))
				video, err := sdk.Videos.New(m.s.t.Context(), params)
				if err == nil {
					ids[i] = video.ID
					return
				}
				if g == m.lives {
					m.s.t.Errorf("create %d: %v", i, err)
				}
			}
		})
	}
	return func() []string { return ids }
}

// sums reads a token's ledger.
func (m *money) sums(name string) storage.Row {
	m.s.t.Helper()
	rows, err := m.reader.Read(m.s.t.Context(), time.Now().AddDate(0, 0, -1), time.Now(), name)
	if err != nil {
		m.s.t.Fatal(err)
	}
	var sum storage.Row
	for _, row := range rows {
		sum.Add(row)
	}
	return sum
}

func (m *money) balance(name string) storage.Balance {
	m.s.t.Helper()
	balance, err := m.budgets.Balance(m.s.t.Context(), name)
	if err != nil {
		m.s.t.Fatal(err)
	}
	return balance
}

// settled waits until a token's ledger holds so many calls and nothing is reserved.
func (m *money) settled(name string, calls int64) storage.Row {
	m.s.t.Helper()
	eventually(m.s.t, "the calls of "+name+" are settled", taskTimeout, func() bool {
		return m.sums(name).Requests >= calls && m.balance(name).Reserved == 0
	})
	return m.sums(name)
}

func (m *money) checkCalls(name string, bought *bought) {
	m.s.t.Helper()
	want := storage.Row{
		Requests: bought.calls.Load(), Failed: bought.failed.Load(), InputTokens: bought.input.Load(), OutputTokens: bought.output.Load(), Cost: bought.cost(),
	}
	if got := m.settled(name, want.Requests); got != want {
		m.s.t.Errorf("%s: ledger %+v\nserved %+v", name, got, want)
	}
	if got := m.balance(name); got.Spent != want.Cost {
		m.s.t.Errorf("%s: spent %d, want %d", name, got.Spent, want.Cost)
	}
	m.s.t.Logf("%s: %d calls, %d failed, %s", name, want.Requests, want.Failed, providers.Money(want.Cost))
}

// checkBroken compares the ledger of broken and left streams with what the access log says of each.
func (m *money) checkBroken() {
	m.s.t.Helper()
	var requests, estimated, cost int64
	line := regexp.MustCompile(`msg=request .* token=broken .*\bcost=(\S+)( estimated=true)?`)
	for _, match := range line.FindAllStringSubmatch(m.lives.out.text(), -1) {
		amount, err := providers.ParseMoney(match[1])
		if err != nil {
			m.s.t.Fatal(err)
		}
		requests++
		cost += int64(amount)
		if match[2] != "" {
			estimated++
		}
	}
	got := m.settled("broken", requests)
	if got.Requests != requests || got.Cost != cost || m.balance("broken").Spent != cost || estimated == 0 || cost == 0 {
		m.s.t.Errorf("broken streams: ledger %+v, access log %d calls for %d, %d estimated", got, requests, cost, estimated)
	}
	m.s.t.Logf("broken: %d streams, %d estimated, %s", requests, estimated, providers.Money(cost))
}

// checkKilled looks for every call that the killed gateway answered: in the ledger, or among what is unsettled.
func (m *money) checkKilled(bought *bought) {
	m.s.t.Helper()
	reserved := m.balance("doomed").Reserved
	var list []struct {
		ID     string          `json:"id"`
		Amount providers.Money `json:"amount"`
	}
	eventually(m.s.t, "the killed gateway's reservations are listed", forgotten, func() bool {
		out, err := exec.Command(bin.gateway, "usage", "--unsettled", "--token", "doomed", "--json", "--config", m.lives.config).Output()
		if err != nil {
			m.s.t.Fatalf("usage --unsettled: %v", err)
		}
		list = nil
		if err := json.Unmarshal(out, &list); err != nil {
			m.s.t.Fatal(err)
		}
		var sum int64
		for _, row := range list {
			sum += int64(row.Amount)
		}
		return sum == reserved
	})
	got := m.sums("doomed")
	answered := bought.calls.Load() - bought.failed.Load()
	if got.Requests-got.Failed+int64(len(list)) < answered || got.Cost+reserved < bought.cost() || m.balance("doomed") != (storage.Balance{Spent: got.Cost, Reserved: reserved}) {
		m.s.t.Errorf("killed: ledger %+v and %d reservations of %d; clients saw %d calls for %d; balance %+v",
			got, len(list), reserved, answered, bought.cost(), m.balance("doomed"))
	}
	m.s.t.Logf("killed: %d answers seen, %d calls in the ledger, %d unsettled of %s", answered, got.Requests, len(list), providers.Money(reserved))
}

// checkTasks waits for all tasks and compares the ledger with the upstream's jobs.
func (m *money) checkTasks(ids func() []string) {
	m.s.t.Helper()
	var want storage.Row
	for _, id := range ids() {
		sdk := m.lives.sdk(option.WithAPIKey("sk-studio"))
		var video *openai.Video
		eventually(m.s.t, "task "+id+" ends", crashTimeout, func() bool {
			var err error
			video, err = sdk.Videos.Get(m.s.t.Context(), id)
			return err == nil && (video.Status == openai.VideoStatusCompleted || video.Status == openai.VideoStatusFailed)
		})
		want.Tasks++
		switch {
		case video.Status == openai.VideoStatusCompleted:
			length, err := time.ParseDuration(string(video.Seconds) + "s")
			if err != nil {
				m.s.t.Fatal(err)
			}
			want.Video += length
			want.Cost += videoRequest + videoSecond*int64(length/time.Second)
		case video.Error.Code == "upstream_unknown": // charged, since the upstream may have made it
			length, _ := time.ParseDuration(string(video.Seconds) + "s")
			want.Cost += videoRequest + videoSecond*int64(length/time.Second)
			want.Failed++
		default:
			want.Failed++
		}
	}
	eventually(m.s.t, "the tasks are settled", crashTimeout, func() bool { return m.sums("studio").Tasks >= want.Tasks })
	if got := m.sums("studio"); got != want {
		m.s.t.Errorf("tasks: ledger %+v\nmade %+v", got, want)
	}
	jobs := m.s.control.jobs()
	for _, j := range jobs {
		if j.Submissions != 1 {
			m.s.t.Errorf("the job %q was submitted %d times", j.Prompt, j.Submissions)
		}
	}
	if int64(len(jobs)) != want.Tasks {
		m.s.t.Errorf("%d jobs at the upstream, %d tasks", len(jobs), want.Tasks)
	}
	// A create that died between its reservation and its start leaves one behind, which is listed a minute later.
	balance := m.balance("studio")
	left, err := m.budgets.Reservations(m.s.t.Context(), "studio")
	var reserved int64
	for _, r := range left {
		reserved += r.Amount
	}
	if err != nil || balance != (storage.Balance{Spent: want.Cost, Reserved: reserved}) || len(left) > *moneyTasks/2 {
		m.s.t.Errorf("tasks: balance %+v with %d reservations, %v; want %d spent", balance, len(left), err, want.Cost)
	}
	m.s.t.Logf("tasks: %d, %d failed, %v of video, %s; %d creates left a reservation behind", want.Tasks, want.Failed, want.Video, providers.Money(want.Cost), len(left))
}
