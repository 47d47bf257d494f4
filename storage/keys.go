package storage

import (
	"net/url"
	"time"
)

// Prefix stands before every key of this program in Redis, so that one Redis can be shared.
const Prefix = "mr:"

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

func tokenKey(hash string) string { return Prefix + "token:" + hash }

const tokensKey = Prefix + "tokens"
const tokenNamesKey = Prefix + "token-names"
const tokenChangesKey = Prefix + "token-changes"

const pingKey = Prefix + "ping"

func windowKey(tokenID string) string { return Prefix + "limit:" + tokenID }
func leasesKey(tokenID string) string { return Prefix + "leases:" + tokenID }

func budgetKey(tokenID string) string { return Prefix + "budget:" + tokenID }

const budgetsKey = Prefix + "budgets"

func processKey(process string) string  { return Prefix + "process:" + process }
func admittedKey(process string) string { return Prefix + "admitted:" + process }
func settledKey(claim string) string    { return Prefix + "settled:" + claim }
func chargedKey(field string) string    { return Prefix + "charged:" + field }
func claimsKey(taskID string) string    { return Prefix + "claims:" + taskID }

func dayKey(day string) string              { return Prefix + "usage:" + day }
func usageKeyOf(day, tokenID string) string { return Prefix + "usage:" + day + ":" + tokenID }
func sequenceKey(process string) string     { return Prefix + "usage-seq:" + process }
func retryKey(tokenID, requestHash string) string {
	return Prefix + "retry:" + tokenID + ":" + requestHash
}

// retries are the keys of the creates of one request, in the order that beginScript wants them.
func retryKeys(tokenID, requestHash string) []string {
	of := tokenID + ":" + requestHash
	return []string{retryKey(tokenID, requestHash), Prefix + "retry-open:" + of, Prefix + "retry-mark:" + of}
}

func durationKey(channel, model string) string {
	return Prefix + "duration:" + url.QueryEscape(channel) + ":" + url.QueryEscape(model)
}

func tasksKey(tokenID string) string      { return Prefix + "tasks:" + tokenID }
func unfinishedKey(tokenID string) string { return Prefix + "unfinished:" + tokenID }
func tombstoneKey(taskID string) string   { return Prefix + "removal:" + taskID }

const taskChangesKey = Prefix + "task-changes"

// slots are the keys of one channel's slots, in the order slotScript wants them.
func channelKeys(channel string) []string {
	channel = url.QueryEscape(channel)
	return []string{
		Prefix + "slots:" + channel, Prefix + "slots-line:" + channel, Prefix + "slots-due:" + channel,
		Prefix + "slots-gone:" + channel, Prefix + "slots-turns:" + channel,
	}
}

// dayOf is the ledger's day, in UTC.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

const restsKey = Prefix + "rests"
const restNewsKey = Prefix + "rest-news"
const processesKey = Prefix + "figures"

func figuresKey(process string) string { return Prefix + "figures:" + process }
func makerKey(answer string) string    { return Prefix + "maker:" + answer }
