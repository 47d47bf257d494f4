package storage

import (
	"net/url"
	"time"
)

// DefaultPrefix stands before every key this package writes to Redis, so that one Redis can be shared.
const DefaultPrefix = "mr:"

// keys names every key this package uses in Redis. Parts that strangers choose (model and channel names) are
// escaped, so that a colon in one never makes two names meet.
//
//	token:<key hash>             string  one token as JSON
//	tokens                       hash    token id -> key hash
//	token-names                  hash    token name -> token id, names in use only
//	token-changes                list    "<nonce> <key hash>", newest first, the last 256 changes
//	limit:<token id>             hash    the request and token windows, a minute after the last call
//	leases:<token id>            zset    calls in flight -> expiry in ms, a minute after the last renewal
//	budget:<token id>            hash    spent, reserved, c<lease> and t<claim> -> "<amount> <since, ms> <model>"
//	budgets                      set     token ids that ever reserved
//	process:<process>            string  the process works on its reservations, a minute after the last sign of life
//	admitted:<process>           string  the number of its last batch of admissions, and what that was answered, ten minutes
//	claims:<task id>             set     the task's fields in its token's budget, one for each create, until it is settled
//	charged:<reservation>        string  "<amount> <day> <JSON>": what an operator charged of it, until it is settled
//	settled:<claim>              string  how the task's money was settled: completed, failed or unknown
//	usage:<day>                  set     token ids with usage on that day
//	usage:<day>:<token id>       hash    "<model> <channel> <counter>" -> sum
//	usage-seq:<process>          string  the last ledger batch of one process, so that none counts twice
//	retry:<token id>:<hash>      string  task id of an unkeyed create
//	duration:<channel>:<model>   list    the last durations in ms, newest first
//	tasks:<token id>             zset    task id -> creation in ms
//	unfinished:<token id>        zset    task id -> when it was added, in ms
//	removal:<task id>            string  the task is being removed
//	task-changes                 channel task ids, with a dash in front of those that are gone
//	slots:<channel>              zset    task ids that hold a slot -> expiry in ms
//	slots-line:<channel>         zset    waiters "<lane>:<token id>:<since>:<task id>", ordered by name within a token
//	slots-due:<channel>          zset    waiter -> when it asks next, in ms
//	slots-gone:<channel>         zset    waiter -> when it counts as gone, in ms
//	slots-turns:<channel>        hash    "<lane>:<token id>" -> its turn, "v<lane>" -> the lane's; while somebody waits
//	rests                        hash    what rests -> "<end in ms> <JSON>", an hour longer than the last rest
//	rest-news                    channel a rest that begins, grows or ends, as JSON
//	figures                      zset    process -> when it last showed its figures, in s
//	figures:<process>            string  its channels' states as JSON, fifteen seconds
//	maker:<answer id>            string  which channel and key made an answer, for a day
//	ping                         string  a sign that Redis takes writes, a minute
type keys string

func newKeys(prefix string) keys {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	return keys(prefix)
}

func (k keys) token(hash string) string { return string(k) + "token:" + hash }
func (k keys) tokens() string           { return string(k) + "tokens" }
func (k keys) tokenNames() string       { return string(k) + "token-names" }
func (k keys) tokenChanges() string     { return string(k) + "token-changes" }

func (k keys) ping() string { return string(k) + "ping" }

func (k keys) limit(tokenID string) string  { return string(k) + "limit:" + tokenID }
func (k keys) leases(tokenID string) string { return string(k) + "leases:" + tokenID }

func (k keys) budget(tokenID string) string   { return string(k) + "budget:" + tokenID }
func (k keys) budgets() string                { return string(k) + "budgets" }
func (k keys) process(process string) string  { return string(k) + "process:" + process }
func (k keys) admitted(process string) string { return string(k) + "admitted:" + process }
func (k keys) settled(claim string) string    { return string(k) + "settled:" + claim }
func (k keys) charged(field string) string    { return string(k) + "charged:" + field }
func (k keys) claims(taskID string) string    { return string(k) + "claims:" + taskID }

func (k keys) usageDay(day string) string          { return string(k) + "usage:" + day }
func (k keys) usage(day, tokenID string) string    { return string(k) + "usage:" + day + ":" + tokenID }
func (k keys) usageSequence(process string) string { return string(k) + "usage-seq:" + process }
func (k keys) retry(tokenID, requestHash string) string {
	return string(k) + "retry:" + tokenID + ":" + requestHash
}

// retries are the keys of the creates of one request, in the order that beginScript wants them.
func (k keys) retries(tokenID, requestHash string) []string {
	of := tokenID + ":" + requestHash
	return []string{k.retry(tokenID, requestHash), string(k) + "retry-open:" + of, string(k) + "retry-mark:" + of}
}

func (k keys) duration(channel, model string) string {
	return string(k) + "duration:" + url.QueryEscape(channel) + ":" + url.QueryEscape(model)
}

func (k keys) tasks(tokenID string) string      { return string(k) + "tasks:" + tokenID }
func (k keys) unfinished(tokenID string) string { return string(k) + "unfinished:" + tokenID }
func (k keys) tombstone(taskID string) string   { return string(k) + "removal:" + taskID }
func (k keys) taskChanges() string              { return string(k) + "task-changes" }

// slots are the keys of one channel's slots, in the order slotScript wants them.
func (k keys) slots(channel string) []string {
	channel = url.QueryEscape(channel)
	return []string{
		string(k) + "slots:" + channel, string(k) + "slots-line:" + channel, string(k) + "slots-due:" + channel,
		string(k) + "slots-gone:" + channel, string(k) + "slots-turns:" + channel,
	}
}

// dayOf is the ledger's day, in UTC.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func (k keys) rests() string                 { return string(k) + "rests" }
func (k keys) restNews() string              { return string(k) + "rest-news" }
func (k keys) figuresOf() string             { return string(k) + "figures" }
func (k keys) figures(process string) string { return string(k) + "figures:" + process }
func (k keys) maker(answer string) string    { return string(k) + "maker:" + answer }
