package storage

import (
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

// dayOf is the ledger's day, in UTC.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }
