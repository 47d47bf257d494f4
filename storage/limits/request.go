package limits

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
)

// batch is the request of one round trip, grouped by token. It is reused.
type batch struct {
	script      *redis.Script
	alive, last string // keys: the process's sign of life, and its last batch
	number      int64
	lease, keep int64 // lifetime of a lease and of an answer, in ms

	at     map[storage.Allowance]int
	groups []admitGroup
	json   []byte
	keys   []string
}

func newBatch(process string, lease time.Duration) batch {
	return batch{
		script: redis.NewScript(admitScript), alive: ledger.ProcessKey(process), last: admittedKey(process),
		lease: lease.Milliseconds(), keep: answerKept.Milliseconds(), at: make(map[storage.Allowance]int),
	}
}

// run sends the batch under a new number and returns the script's answer.
func (b *batch) run(ctx context.Context, client redis.UniversalClient) (string, error) {
	b.encode()
	b.number++
	answer, err := b.script.Run(ctx, client, b.keys, b.json, b.lease, b.number, b.keep).Text()
	return answer, storage.RedisError("admit", err)
}

// admitGroup is the part of one token. Its lists are JSON without brackets.
type admitGroup struct {
	token                              storage.Allowance
	release, renew, corrections, calls []byte
	costs, amounts                     []byte
	admissions                         []*admission
}

func (b *batch) group(token storage.Allowance) *admitGroup {
	i, ok := b.at[token]
	if !ok {
		i = len(b.groups)
		if i < cap(b.groups) {
			b.groups = b.groups[:i+1]
		} else {
			b.groups = append(b.groups, admitGroup{})
		}
		b.at[token] = i
		g := &b.groups[i]
		g.token = token
		g.release, g.renew, g.corrections, g.calls = g.release[:0], g.renew[:0], g.corrections[:0], g.calls[:0]
		g.costs, g.amounts = g.costs[:0], g.amounts[:0]
		g.admissions = g.admissions[:0]
	}
	return &b.groups[i]
}

func (b *batch) reset() {
	for i := range b.groups {
		clear(b.groups[i].admissions)
	}
	clear(b.at)
	clear(b.keys)
	b.groups, b.json, b.keys = b.groups[:0], b.json[:0], b.keys[:0]
}

func (b *batch) settle(s settlement) {
	g := b.group(s.token)
	switch {
	case s.renew:
		g.renew = appendLease(g.renew, s.lease)
		return
	case s.lease != "" && s.token.Concurrency > 0:
		g.release = appendLease(g.release, s.lease)
	}
	if s.money {
		g.costs = appendLease(g.costs, s.lease)
		g.costs = appendNumber(g.costs, s.cost)
	}
	if s.delta != 0 {
		g.corrections = appendNumber(g.corrections, s.second)
		g.corrections = appendNumber(g.corrections, int64(s.delta))
	}
}

func (b *batch) admit(a *admission) {
	g := b.group(a.token)
	g.calls = appendNumber(g.calls, int64(a.cost.Requests))
	g.calls = appendNumber(g.calls, int64(a.cost.Tokens))
	g.calls = appendLease(g.calls, a.lease)
	if a.token.Budget > 0 {
		g.amounts = appendNumber(g.amounts, a.cost.Money)
		g.amounts = appendLease(g.amounts, url.QueryEscape(a.cost.Model))
	}
	g.admissions = append(g.admissions, a)
}

func (b *batch) encode() {
	b.json = append(b.json, '[')
	b.keys = append(b.keys, b.alive, b.last, ledger.BudgetsKey)
	for i := range b.groups {
		g := &b.groups[i]
		b.keys = append(b.keys, windowKey(g.token.Token), leasesKey(g.token.Token))
		if g.token.Budget > 0 {
			b.keys = append(b.keys, ledger.BudgetKey(g.token.Token))
		}
		if i > 0 {
			b.json = append(b.json, ',')
		}
		b.json = append(b.json, '[')
		b.json = strconv.AppendInt(b.json, int64(g.token.RequestsPerMinute), 10)
		b.json = append(b.json, ',')
		b.json = strconv.AppendInt(b.json, int64(g.token.TokensPerMinute), 10)
		b.json = append(b.json, ',')
		b.json = strconv.AppendInt(b.json, int64(g.token.Concurrency), 10)
		b.json = append(b.json, ',')
		b.json = strconv.AppendInt(b.json, g.token.Budget, 10)
		for _, list := range [...][]byte{g.release, g.renew, g.corrections, g.calls, g.costs, g.amounts} {
			b.json = append(b.json, ',', '[')
			b.json = append(b.json, list...)
			b.json = append(b.json, ']')
		}
		b.json = append(b.json, ']')
	}
	b.json = append(b.json, ']')
}

// appendLease appends a text that JSON need not escape: letters and digits, or an escaped query.
func appendLease(list []byte, lease string) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	list = append(list, '"')
	list = append(list, lease...)
	return append(list, '"')
}

func appendNumber(list []byte, n int64) []byte {
	if len(list) > 0 {
		list = append(list, ',')
	}
	return strconv.AppendInt(list, n, 10)
}
