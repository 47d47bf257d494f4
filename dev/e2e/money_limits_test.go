package e2e_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

const (
	briskLimit  = 60    // calls a minute
	narrowLimit = 4     // calls at a time
	talkerLimit = 5_000 // model tokens a minute
	// poorBudget and poorReserve are in billionths: what the token has, and more than any of its calls reserves.
	poorBudget, poorReserve = 20_000, 2_000

	// limitCallers is how many clients press against a limit, half of them at each gateway, limitCalls how often each.
	limitCallers, limitCalls = 8, 25
	// talkerMost is more than any call of the talker takes, in tokens. It asks briefly and is answered at length, so what it
	// takes is known at the end only.
	talkerMost  = 120
	talkerModel = "gpt-4o-100chunks"
)

// pressed is one call against a limit.
type pressed struct {
	start, end time.Time
	status     int // 200 when it was admitted
	code       string
	tokens     int64
}

// costOf is what chats with a model cost that were served.
func costOf(c stack.Chats, model string) int64 {
	if model == "gpt-4o-mini" {
		return miniRequest*c.Served + miniInput*c.InputTokens + miniOutput*c.OutputTokens
	}
	return callRequest*c.Served + callInput*c.InputTokens + callOutput*c.OutputTokens
}

// press makes calls of a token through both gateways at once.
func (m *money) press(token string, params openai.ChatCompletionNewParams) []pressed {
	m.t.Helper()
	var mu sync.Mutex
	var all []pressed
	var work sync.WaitGroup
	for caller := range limitCallers {
		work.Go(func() {
			g := []*stack.Gateway{m.lives, m.doomed}[caller%2]
			for range limitCalls {
				one := m.pressOnce(g, token, params)
				mu.Lock()
				all = append(all, one)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return all
}

func (m *money) pressOnce(g *stack.Gateway, token string, params openai.ChatCompletionNewParams) pressed {
	one := pressed{start: time.Now(), status: 200}
	usage, err := m.chat(g, token, params)
	one.end, one.tokens = time.Now(), usage.TotalTokens
	var refused *openai.Error
	switch {
	case err == nil:
	case errors.As(err, &refused) && refused.StatusCode == 429:
		one.status, one.code = 429, refused.Code
	default:
		m.t.Errorf("a call of %s: %v", token, err)
		one.status = 0
	}
	return one
}

// within is the most of what was admitted for certain in the same sixty seconds: calls that began and ended in them.
func within(all []pressed, weight func(pressed) int64) int64 {
	var most int64
	for _, first := range all {
		var sum int64
		for _, one := range all {
			if one.status == 200 && !one.start.Before(first.start) && one.end.Sub(first.start) <= time.Minute {
				sum += weight(one)
			}
		}
		most = max(most, sum)
	}
	return most
}

func limitedChat(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "gpt-4o", MaxCompletionTokens: openai.Int(50), Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

// checkLimits presses against each kind of limit through both gateways.
func (m *money) checkLimits() {
	m.t.Helper()
	m.checkAtOnce()

	brisk := m.press("brisk", limitedChat("quick"))
	got, admitted := within(brisk, func(pressed) int64 { return 1 }), m.s.Control.Served(upstreamKeyOf("brisk", 0), "gpt-4o").Calls
	if got > briskLimit || admitted < briskLimit {
		m.t.Errorf("calls a minute: %d within one, %d in all, of %d asked for; the limit is %d", got, admitted, len(brisk), briskLimit)
	}
	m.t.Logf("calls a minute: %d of %d admitted, the limit is %d", admitted, len(brisk), briskLimit)

	long := limitedChat("well?")
	long.Model, long.MaxCompletionTokens = talkerModel, openai.Int(1000)
	talk := m.press("talker", long)
	tokens := within(talk, func(one pressed) int64 { return one.tokens })
	const tolerance = 2 * limitCallers * talkerMost // what calls in flight, or just over, take beyond their estimates
	if tokens > talkerLimit+tolerance || tokens < talkerLimit-tolerance ||
		slices.ContainsFunc(talk, func(one pressed) bool { return one.tokens > talkerMost || one.status == 200 && one.tokens == 0 }) {
		m.t.Errorf("tokens a minute: %d within one, the limit is %d", tokens, talkerLimit)
	}
	m.t.Logf("tokens a minute: %d, the limit is %d", tokens, talkerLimit)

	m.checkBudget()
}

// checkAtOnce makes more concurrent calls than a token may: those beyond the limit are refused.
func (m *money) checkAtOnce() {
	m.t.Helper()
	rule := m.s.Control.AddRule(map[string]any{"operation": "chat", "key": upstreamKeyOf("narrow", 0), "action": "hang"})
	var work sync.WaitGroup
	var admitted, refused atomic.Int64
	for i := range 4 * narrowLimit {
		work.Go(func() {
			switch m.pressOnce([]*stack.Gateway{m.lives, m.doomed}[i%2], "narrow", limitedChat("hold on")).status {
			case 200:
				admitted.Add(1)
			case 429:
				refused.Add(1)
			}
		})
	}
	testwait.Eventually(m.t, "all calls are at the upstream or refused", stack.TaskTimeout, func() bool {
		return m.s.Control.Served(upstreamKeyOf("narrow", 0), "gpt-4o").Open+refused.Load() == 4*narrowLimit
	})
	open := m.s.Control.Served(upstreamKeyOf("narrow", 0), "gpt-4o").Open
	m.s.Control.Do("POST", "/release?rule="+rule, nil, nil)
	m.s.Control.Do("DELETE", "/rules/"+rule, nil, nil)
	work.Wait()
	if open != narrowLimit || admitted.Load() != narrowLimit {
		m.t.Errorf("calls at a time: %d at the upstream, %d answered, %d refused; the limit is %d", open, admitted.Load(), refused.Load(),
			narrowLimit)
	}
}

// checkBudget spends a budget to its end.
func (m *money) checkBudget() {
	m.t.Helper()
	poor := m.press("poor", limitedChat("a penny for it"))
	var last pressed
	// What was refused while others' reservations stood may be affordable now.
	testwait.Eventually(m.t, "the budget is spent", stack.TaskTimeout, func() bool {
		before := m.balance("poor")
		last = m.pressOnce(m.lives, "poor", limitedChat("a penny for it"))
		poor = append(poor, last)
		return last.status != 200 && before.Reserved == 0 && m.balance("poor") == before
	})
	served := m.s.Control.Served(upstreamKeyOf("poor", 0), "gpt-4o")
	balance := m.balance("poor")
	if balance.Spent != costOf(served, "gpt-4o") || balance.Spent > poorBudget || balance.Spent <= poorBudget-poorReserve ||
		last.code != "insufficient_quota" {
		m.t.Errorf("budget: %+v of %d spent for %+v, which cost %d; the last call ended with %d %s", balance, poorBudget, served,
			costOf(served, "gpt-4o"), last.status, last.code)
	}
	m.t.Logf("budget: %s of %s", fmt.Sprint(balance.Spent), fmt.Sprint(poorBudget))
}
