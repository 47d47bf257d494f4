package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

const (
	// moneyCallers is how many clients call at a time.
	moneyCallers = 12
	// exactChannels is how many channels the token has whose calls fall over.
	exactChannels = 3
	// heldCalls is how many calls are certainly in progress when their gateway is killed.
	heldCalls = 3
)

// callsDone is what clients saw of their calls.
type callsDone struct {
	made atomic.Int64
	// exact counts calls of the gateway that lives, failed those of them that ended with an error.
	exact, failed atomic.Int64
	broken        atomic.Int64
	// doomed counts calls sent to the gateway that is killed, answered those whose answer came whole.
	doomed, answered atomic.Int64
	// permits are the calls that may be made now: they are spread over the life of the tasks.
	permits chan int
}

// startCalls makes the calls in the background: most at the gateway that lives.
func (m *money) startCalls(work *sync.WaitGroup) {
	for _, rule := range []map[string]any{
		{"contains": "please refuse", "action": "status", "status": 400},
		{"contains": "please drop", "action": "drop", "key": upstreamKeyOf("exact", 0)},
		{"contains": "please drop", "action": "status", "status": 500, "key": upstreamKeyOf("exact", 1)},
		{"contains": "please mumble", "action": "garbage", "status": 502, "key": upstreamKeyOf("exact", 1)},
		{"contains": "please mumble", "action": "cut", "key": upstreamKeyOf("exact", 2)},
		{"contains": "please slow down", "action": "status", "status": 429, "key": upstreamKeyOf("exact", 2)},
		{"contains": "please fall", "action": "status", "status": 503, "accept": true},
		{"contains": "please break", "action": "cut", "chunks": 3},
		{"contains": "please babble", "action": "garbage"},
		{"contains": "please hold", "action": "hang", "accept": true},
	} {
		rule["operation"] = "chat"
		m.s.Control.AddRule(rule)
	}
	m.calls.permits = make(chan int, *moneyCalls)
	for i := range *moneyCalls / 4 {
		m.calls.permits <- i
	}
	for range moneyCallers {
		work.Go(func() {
			for i := range m.calls.permits {
				random := m.random(1, i)
				switch n := random.IntN(10); {
				case n < 6:
					m.exactCall(random)
				case n < 8:
					m.brokenCall(random)
				default:
					m.calls.doomed.Add(1)
					if _, err := m.chat(m.doomed, "doomed", someChat(random)); err == nil {
						m.calls.answered.Add(1)
					}
				}
				m.calls.made.Add(1)
			}
		})
	}
}

// permit lets more calls begin as a task has ended, all when it was the last.
func (m *money) permit() {
	m.tasks.mu.Lock()
	defer m.tasks.mu.Unlock()
	m.tasks.over++
	first, n := *moneyCalls/4, m.tasks.over
	share := func(n int) int { return first + (*moneyCalls-first)*n / *moneyTasks }
	for i := share(n - 1); i < share(n); i++ {
		m.calls.permits <- i
	}
	if n == *moneyTasks {
		close(m.calls.permits)
	}
}

// someChat is a call of some length.
func someChat(random *rand.Rand, more ...string) openai.ChatCompletionNewParams {
	text := fmt.Sprintf("Word %d. ", random.Uint32()) + strings.Repeat("more ", random.IntN(60)) + strings.Join(more, " ")
	params := openai.ChatCompletionNewParams{
		Model:    []openai.ChatModel{"gpt-4o", "gpt-4o-mini"}[random.IntN(2)],
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
	if random.IntN(2) == 0 {
		params.MaxCompletionTokens = openai.Int(1 + random.Int64N(80))
	}
	if random.IntN(2) == 0 { // a stream
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(random.IntN(2) == 0)}
	}
	return params
}

// chat makes a call, and reads a stream where its options are set, which asks for the tokens or does not.
func (m *money) chat(g *stack.Gateway, token string, params openai.ChatCompletionNewParams) (openai.CompletionUsage, error) {
	sdk := g.SDK(option.WithAPIKey("sk-"+token), option.WithMaxRetries(0))
	if !params.StreamOptions.IncludeUsage.Valid() {
		answer, err := sdk.Chat.Completions.New(m.t.Context(), params)
		if err != nil {
			return openai.CompletionUsage{}, err
		}
		return answer.Usage, nil
	}
	var usage openai.CompletionUsage
	stream := sdk.Chat.Completions.NewStreaming(m.t.Context(), params)
	defer stream.Close()
	for stream.Next() {
		if chunk := stream.Current(); chunk.Usage.TotalTokens > 0 {
			usage = chunk.Usage
		}
	}
	return usage, stream.Err()
}

// exactCall makes a call of the gateway that lives. Some are refused by the upstream, some fail everywhere, some at one or
// two of the channels.
func (m *money) exactCall(random *rand.Rand) {
	wish := []string{"", "", "", "", "please refuse", "please drop", "please mumble", "please slow down", "please fall"}[random.IntN(9)]
	_, err := m.chat(m.lives, "exact", someChat(random, wish))
	m.calls.exact.Add(1)
	var status *openai.Error
	switch {
	case err == nil:
	case errors.As(err, &status) && (wish == "please refuse" && status.StatusCode == 400 ||
		wish == "please slow down" && status.StatusCode == 429 || status.StatusCode/100 == 5):
		m.calls.failed.Add(1) // while one channel refuses a call, the others may rest
	default:
		m.t.Errorf("a call of %q: %v", wish, err)
	}
}

// brokenCall makes a call whose answer breaks off, holds no usage, or is left by its client.
func (m *money) brokenCall(random *rand.Rand) {
	m.calls.broken.Add(1)
	wish := []string{"please go on", "please break", "please babble"}[random.IntN(3)]
	params := someChat(random, wish, strings.Repeat("and on ", 20))
	params.MaxCompletionTokens = openai.Int(1000)
	if wish == "please babble" {
		params.StreamOptions = openai.ChatCompletionStreamOptionsParam{}
		if _, err := m.chat(m.lives, "broken", params); err == nil {
			m.t.Error("garbage was understood")
		}
		return
	}
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	sdk := m.lives.SDK(option.WithAPIKey("sk-broken"), option.WithMaxRetries(0))
	stream := sdk.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	for n := 0; stream.Next(); n++ {
		if n == 2 && wish == "please go on" {
			cancel()
		}
	}
}

// checkExact compares the ledger of the gateway that lived with what each channel's upstream served.
func (m *money) checkExact() {
	m.t.Helper()
	calls, failed := m.calls.exact.Load(), m.calls.failed.Load()
	total := m.settled("exact", calls)
	type sum struct{ calls, input, output, cost int64 }
	book, served := map[string]sum{}, map[string]sum{}
	for _, row := range m.rows("exact") {
		if row.Requests == row.Failed && row.Cost == 0 {
			continue // nothing but failures
		}
		at := row.Channel + " " + row.Model
		one := book[at]
		one.calls += row.Requests - row.Failed
		one.input, one.output, one.cost = one.input+row.InputTokens, one.output+row.OutputTokens, one.cost+row.Cost
		book[at] = one
	}
	var cost, tokens int64
	for i := range exactChannels {
		for _, model := range []string{"gpt-4o", "gpt-4o-mini"} {
			got := m.s.Control.Served(upstreamKeyOf("exact", i), model)
			one := sum{got.Served, got.InputTokens, got.OutputTokens, costOf(got, model)}
			if got.Served > 0 {
				served[fmt.Sprintf("exact-%d %s", i, model)] = one
			}
			cost += one.cost
			tokens += one.input + one.output
		}
	}
	if fmt.Sprint(book) != fmt.Sprint(served) { // maps print in the order of their keys
		m.t.Errorf("exact: calls, input, output, cost\nledger %v\nserved %v", book, served)
	}
	if total.Requests != calls || total.Failed != failed || total.Cost != cost || m.balance("exact") != (ledger.Balance{Spent: cost}) {
		m.t.Errorf("exact: ledger %+v, balance %+v; clients made %d calls, of which %d failed; served for %d", total, m.balance("exact"), calls,
			failed, cost)
	}
	if calls == failed || len(served) < 2*exactChannels {
		m.t.Errorf("exact: %d calls, %d failed, served by %d channels and models: nothing is proven", calls, failed, len(served))
	}
	m.t.Logf("exact: %d calls, %d failed, %d tokens, %s", calls, failed, tokens, pricing.Money(cost))
}

// checkBroken compares the ledger of broken and left streams with what the access log says of each.
func (m *money) checkBroken() {
	m.t.Helper()
	calls := m.calls.broken.Load()
	got := m.settled("broken", calls)
	var logged, estimated, cost int64
	line := regexp.MustCompile(`msg=request .* token=broken .*\bcost=(\S+)( estimated=true)?`)
	for _, match := range line.FindAllStringSubmatch(m.lives.Out.Text(), -1) {
		amount, err := pricing.ParseMoney(match[1])
		if err != nil {
			m.t.Fatal(err)
		}
		logged++
		cost += int64(amount)
		if match[2] != "" {
			estimated++
		}
	}
	if got.Requests != calls || logged != calls || got.Cost != cost || m.balance("broken") != (ledger.Balance{Spent: cost}) ||
		estimated < calls/3 || cost == 0 {
		m.t.Errorf("broken: ledger %+v, balance %+v; %d calls; access log %d for %d, %d of them estimated", got, m.balance("broken"), calls,
			logged, cost, estimated)
	}
	m.t.Logf("broken: %d answers, %d estimated, %s", calls, estimated, pricing.Money(cost))
}

// killWithCalls kills a gateway with calls in progress.
func (m *money) killWithCalls(work *sync.WaitGroup) {
	m.t.Helper()
	random := m.random(2, 0)
	for range heldCalls {
		params := someChat(random, "please hold")
		params.Model = "gpt-4o-held"
		work.Go(func() {
			if _, err := m.chat(m.doomed, "doomed", params); err == nil {
				m.t.Error("a held call was answered")
			}
		})
	}
	m.s.Control.Await("chat", "gpt-4o-held", "accepted", heldCalls)
	m.doomed.Kill()
}

// unsettledRow is a reservation as the command lists it.
type unsettledRow struct {
	ID     string        `json:"id"`
	Model  string        `json:"model"`
	Amount pricing.Money `json:"amount"`
}

// checkKilled looks for every call that the killed gateway's upstream served: in the ledger, or among what is unsettled. Then
// it charges one of those and gives the others back.
func (m *money) checkKilled() {
	m.t.Helper()
	var list []unsettledRow
	var reserved int64
	held := 0
	testwait.Eventually(m.t, "the killed gateway's reservations are listed", forgotten, func() bool {
		list, reserved, held = nil, 0, 0
		m.usage(&list, "--unsettled", "--token", "doomed")
		for _, row := range list {
			reserved += int64(row.Amount)
			if row.Model == "gpt-4o-held" {
				held++
			}
		}
		return reserved > 0 && m.balance("doomed").Reserved == reserved
	})
	served := m.s.Control.Served(upstreamKeyOf("doomed", 0), "gpt-4o")
	mini := m.s.Control.Served(upstreamKeyOf("doomed", 0), "gpt-4o-mini")
	cost := costOf(served, "gpt-4o") + costOf(mini, "gpt-4o-mini")
	served.Add(mini)
	got, sent, answered := m.sums("doomed"), m.calls.doomed.Load()+heldCalls, m.calls.answered.Load()
	good, unsettled := got.Requests-got.Failed, int64(len(list))
	if held != heldCalls || got.Cost+reserved < cost || good+unsettled < served.Served || served.Served < answered ||
		got.Requests+unsettled > sent || got.InputTokens > served.InputTokens || got.OutputTokens > served.OutputTokens ||
		m.balance("doomed") != (ledger.Balance{Spent: got.Cost, Reserved: reserved}) {
		m.t.Errorf("killed: clients sent %d calls and saw %d answers; served %+v for %d; ledger %+v; unsettled %d for %d, of which %d were held; balance %+v",
			sent, answered, served, cost, got, unsettled, reserved, held, m.balance("doomed"))
	}
	m.t.Logf("killed: %d calls sent, %d served, %d in the ledger, %d unsettled of %s", sent, served.Served, got.Requests, unsettled,
		pricing.Money(reserved))

	var charged struct {
		Charged int           `json:"charged"`
		Amount  pricing.Money `json:"amount"`
	}
	m.usage(&charged, "--charge", list[0].ID)
	if status, text := m.doomed.Admin(http.MethodPost, "/admin/usage/unsettled/all/refund?token=doomed", "", nil); status != http.StatusOK {
		m.t.Fatalf("refund: %d %s", status, text)
	}
	want := ledger.Balance{Spent: got.Cost + int64(list[0].Amount)}
	if charged.Charged != 1 || charged.Amount != list[0].Amount || m.balance("doomed") != want || m.sums("doomed").Cost != want.Spent {
		m.t.Errorf("killed: after %+v and a refund of the rest: balance %+v, want %+v; ledger %+v", charged, m.balance("doomed"), want,
			m.sums("doomed"))
	}
}

// usage runs the operator's command and reads what it prints.
func (m *money) usage(into any, args ...string) {
	m.t.Helper()
	out := m.lives.Run(append([]string{"usage", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		m.t.Fatalf("usage %v: %v in %s", args, err, out)
	}
}
