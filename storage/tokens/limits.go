package tokens

import (
	"reflect"
	"strings"
)

// LimitsOf are the whole numbers that bound what one token takes, for all who name them: T is int for the limits
// themselves and *int for a change, where nil leaves a limit as it is. The record, the file, the documents and the flags
// embed it, so that a limit is added here, and nowhere else but where it is enforced. doc is what the table of keys, the
// documents and the commands' help say of it.
type LimitsOf[T int | *int] struct {
	RequestsPerMinute T `json:"requests_per_minute,omitempty" yaml:"requests_per_minute" placeholder:"N" doc:"calls and creates per minute; 0: no limit"`
	TokensPerMinute   T `json:"tokens_per_minute,omitempty" yaml:"tokens_per_minute" placeholder:"N" doc:"model tokens per minute, input and output; 0: no limit"`
	Concurrency       T `json:"concurrency,omitempty" yaml:"concurrency" placeholder:"N" doc:"calls at a time, without background calls; 0: no limit"`
	MaxTasks          T `json:"max_tasks,omitempty" yaml:"max_tasks" placeholder:"N" doc:"unfinished tasks, videos and background calls; 0: no limit"`
	ReadsPerMinute    T `json:"reads_per_minute,omitempty" yaml:"reads_per_minute" placeholder:"N" doc:"reads of tasks, models, and the token's own usage and calls per minute and gateway process; 0: 60000, -1: no limit"`
	MaxWatchers       T `json:"max_watchers,omitempty" yaml:"max_watchers" placeholder:"N" doc:"open event streams and waits of tasks, and open reads of relayed interactions and responses, per gateway process, and five times as many downloads of videos; 0: 100, -1: no limit"`
	MaxSockets        T `json:"max_sockets,omitempty" yaml:"max_sockets" placeholder:"N" doc:"open realtime connections; 0: 100, -1: no limit"`
}

// Limits are a token's limits as an operator set them: 0 is what the limit's doc says, and a method of Token where
// that is not "no limit".
type Limits = LimitsOf[int]

// LimitChange is what an operator may set of a token's limits.
type LimitChange = LimitsOf[*int]

// What limits are that have a default, where they are 0.
const (
	// DefaultReads lets a token follow a thousand tasks as the vendors' own SDKs do, which ask for each once a second, and
	// holds one that asks without pause to about what one gateway reads at Temporal without its creates noticing.
	DefaultReads = 60_000
	// DefaultWatchers is more than one service follows at a time, and a hundredth of the descriptors that a process has.
	DefaultWatchers = 100
	// downloadsPerWatcher is how many downloads a token may have open for each of its event streams and waits: players and
	// pages read several files at a time, and leave them unread for long.
	downloadsPerWatcher = 5
	// DefaultSockets is more conversations than one service holds at a time, and a hundredth of the memory for them.
	DefaultSockets = 100
)

// Unlimited is what an operator sets to have none of a limit that has a default.
const Unlimited = -1

// NamedLimit is one of a token's limits as operators name it.
type NamedLimit struct {
	Key   string // in the file and in documents
	Value int
	// Default is what a value of 0 means; 0: no limit. Only a limit with a default may be Unlimited.
	Default int
}

// ListLimits lists all limits in their order.
func ListLimits(l Limits) []NamedLimit {
	var list []NamedLimit
	for field, value := range reflect.ValueOf(l).Fields() {
		key := limitKey(field)
		list = append(list, NamedLimit{Key: key, Value: int(value.Int()), Default: defaultOf(key)})
	}
	return list
}

// limitKey is the name of a limit in the file and in documents.
func limitKey(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return key
}

// SetLimit sets a limit of a change by its name, and reports whether there is one of the name.
func SetLimit(change *LimitChange, key string, limit int) bool {
	for field, value := range reflect.ValueOf(change).Elem().Fields() {
		if limitKey(field) == key {
			value.Set(reflect.ValueOf(&limit))
			return true
		}
	}
	return false
}

func defaultOf(key string) int {
	switch key {
	case "reads_per_minute":
		return DefaultReads
	case "max_watchers":
		return DefaultWatchers
	case "max_sockets":
		return DefaultSockets
	default:
		return 0
	}
}

// AllLimits is the change that sets every limit.
func AllLimits(l Limits) LimitChange {
	var change LimitChange
	limits := reflect.ValueOf(&l).Elem()
	for field, value := range reflect.ValueOf(&change).Elem().Fields() {
		value.Set(limits.FieldByIndex(field.Index).Addr())
	}
	return change
}

// All is the limits of a change that sets every limit, as AllLimits makes it. A limit that it leaves as it is, is 0.
func (l LimitsOf[T]) All() Limits {
	var all Limits
	if change, ok := any(l).(LimitChange); ok {
		applyLimits(change, &all)
	}
	return all
}

// applyLimits puts what the change holds into the limits.
func applyLimits(change LimitChange, l *Limits) {
	limits := reflect.ValueOf(l).Elem()
	for field, value := range reflect.ValueOf(change).Fields() {
		if !value.IsNil() {
			limits.FieldByIndex(field.Index).Set(value.Elem())
		}
	}
}

// inForce is a limit that has a default; 0: no limit.
func inForce(limit, standard int) int {
	switch {
	case limit < 0:
		return 0
	case limit == 0:
		return standard
	default:
		return limit
	}
}
