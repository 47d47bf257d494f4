package tokens

import (
	"reflect"
	"strings"
)

// LimitsOf is the only list of the integer limits of a token: T is int for the limits, and *int for a change, in which nil leaves a limit
// unchanged. The record, the configuration file, the API's documents and the commands' flags embed it. A new limit is added here and where
// it is enforced. doc is its text in the table of keys, the API's documents and the commands' help.
type LimitsOf[T int | *int] struct {
	RequestsPerMinute T `json:"requests_per_minute,omitempty" yaml:"requests_per_minute" placeholder:"N" doc:"calls and creates per minute; 0: no limit"`
	TokensPerMinute   T `json:"tokens_per_minute,omitempty" yaml:"tokens_per_minute" placeholder:"N" doc:"model tokens per minute, input and output; 0: no limit"`
	Concurrency       T `json:"concurrency,omitempty" yaml:"concurrency" placeholder:"N" doc:"concurrent calls, without background calls; 0: no limit"`
	MaxTasks          T `json:"max_tasks,omitempty" yaml:"max_tasks" placeholder:"N" doc:"unfinished tasks, videos and background calls; 0: no limit"`
	ReadsPerMinute    T `json:"reads_per_minute,omitempty" yaml:"reads_per_minute" placeholder:"N" doc:"reads of tasks, models, and the token's own usage and calls, per minute and gateway process; 0: 60000, -1: no limit"`
	MaxWatchers       T `json:"max_watchers,omitempty" yaml:"max_watchers" placeholder:"N" doc:"open event streams and waits of tasks, and open reads of relayed interactions and responses, per gateway process; the limit of video downloads is five times as high; 0: 100, -1: no limit"`
	MaxSockets        T `json:"max_sockets,omitempty" yaml:"max_sockets" placeholder:"N" doc:"open realtime connections; 0: 100, -1: no limit"`
}

// Limits are a token's limits as an operator set them. If 0 is not "no limit", a method of Token returns the effective limit.
type Limits = LimitsOf[int]

// LimitChange is an operator's change of a token's limits.
type LimitChange = LimitsOf[*int]

// The defaults of limits that are 0.
const (
	// DefaultReads lets a token follow a thousand tasks with vendors' SDKs, which read each once a second. For a token that reads without
	// pause, it is about what one gateway can read from Temporal without delaying its creates.
	DefaultReads = 60_000
	// DefaultWatchers is more than one service needs, and a hundredth of a process's file descriptors.
	DefaultWatchers = 100
	// downloadsPerWatcher is the number of a token's open downloads per event stream and wait: players and pages open several files
	// at a time, and stop reading them for long.
	downloadsPerWatcher = 5
	// DefaultSockets is more conversations than one service needs, and a hundredth of the memory for them.
	DefaultSockets = 100
)

// Unlimited disables a limit that has a default.
const Unlimited = -1

// NamedLimit is one of a token's limits with its name.
type NamedLimit struct {
	Key   string // in the configuration file and in the API's documents
	Value int
	// Default is the limit if Value is 0; 0: no limit. Only a limit with a default may be Unlimited.
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

// limitKey returns a NamedLimit's Key.
func limitKey(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return key
}

// SetLimit sets a limit of a change by its name, and reports whether the name exists.
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

// AllLimits returns the change that sets every limit.
func AllLimits(l Limits) LimitChange {
	var change LimitChange
	limits := reflect.ValueOf(&l).Elem()
	for field, value := range reflect.ValueOf(&change).Elem().Fields() {
		value.Set(limits.FieldByIndex(field.Index).Addr())
	}
	return change
}

// All returns the limits that a change sets, as of AllLimits; the others are 0.
func (l LimitsOf[T]) All() Limits {
	var all Limits
	if change, ok := any(l).(LimitChange); ok {
		applyLimits(change, &all)
	}
	return all
}

// applyLimits applies the change to the limits.
func applyLimits(change LimitChange, l *Limits) {
	limits := reflect.ValueOf(l).Elem()
	for field, value := range reflect.ValueOf(change).Fields() {
		if !value.IsNil() {
			limits.FieldByIndex(field.Index).Set(value.Elem())
		}
	}
}

// inForce returns the effective value of a limit that has a default; 0: no limit.
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
