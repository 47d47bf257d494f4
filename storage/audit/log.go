// Package audit stores what operators, commands and the configuration file change: actor, time, address, action, old and new values. The
// newest entries are in Redis; the sweep moves finished days to the archive. Entries are never edited. The package does not know the
// operations.
package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// Recent is the number of the newest entries that can be read.
	Recent = 10_000
	// dayMost bounds a day's file, in entries: far more than people cause, as a protection against programs.
	dayMost = 100_000
	// dayKept is how long a day waits in Redis for the archive.
	dayKept = 8 * 24 * time.Hour
	// waitingMost bounds the entries that a process stores while Redis is unavailable; the oldest are dropped. The log has all of them.
	waitingMost = 1_000
	// writeWithin bounds the wait of a request for its entry.
	writeWithin = time.Second
	// readTogether is the number of entries in one read.
	readTogether = 500
)

// The keys:
//
//	audit             stream  the newest entries, each as JSON under "entry"
//	audit:<day>       list    a day's entries as JSON, the oldest first
//	audit-days        set     days whose file lacks entries
const (
	entriesKey = storage.Prefix + "audit"
	daysKey    = storage.Prefix + "audit-days"
	entryField = "entry"
)

func dayKey(day string) string { return storage.Prefix + "audit:" + day }

// Log stores entries. It is safe for concurrent use.
type Log struct {
	client redis.UniversalClient
	log    *slog.Logger
	limit  entryLimit

	mu sync.Mutex
	// waiting are entries that are not in Redis yet, the oldest first.
	waiting []Entry
}

// New returns a Log over the client, which the caller closes. Each entry is also one line of log, which may be nil.
func New(client redis.UniversalClient, log *slog.Logger) *Log {
	return &Log{client: client, log: cmp.Or(log, slog.New(slog.DiscardHandler))}
}

// Record stores an entry. It waits for Redis for a second at most; while Redis is unavailable, the entry waits in this process for the next
// one, or for Flush. Of token holders and unauthenticated clients only a few an hour are stored. ctx may have ended.
func (l *Log) Record(ctx context.Context, entry Entry) {
	entry = entry.bounded(time.Now())
	l.log.LogAttrs(ctx, slog.LevelInfo, "audit", entry.attrs()...)
	if l.limit.exceeded(entry) {
		return
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, entry)
	l.mu.Unlock()
	if err := l.Flush(context.WithoutCancel(ctx)); err != nil {
		l.log.LogAttrs(ctx, slog.LevelWarn, "audit entries wait for redis", slog.Any("error", err))
	}
}

// Flush writes the waiting entries. The process calls it regularly, and before it ends.
func (l *Log) Flush(ctx context.Context) error {
	l.mu.Lock()
	entries := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	_, err := l.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		days := map[string]bool{}
		for _, entry := range entries {
			raw, err := json.Marshal(entry)
			if err != nil {
				return fmt.Errorf("encode an audit entry: %w", err)
			}
			day := entry.Time.Format(time.DateOnly)
			days[day] = true
			pipe.XAdd(ctx, &redis.XAddArgs{Stream: entriesKey, MaxLen: Recent, Approx: true, Values: []string{entryField, string(raw)}})
			pipe.RPush(ctx, dayKey(day), raw)
		}
		for day := range days {
			pipe.LTrim(ctx, dayKey(day), -dayMost, -1)
			pipe.Expire(ctx, dayKey(day), dayKept)
			pipe.SAdd(ctx, daysKey, day)
		}
		return nil
	})
	if err != nil {
		l.mu.Lock()
		l.waiting = append(entries, l.waiting...)
		l.waiting = l.waiting[max(0, len(l.waiting)-waitingMost):]
		l.mu.Unlock()
	}
	return storage.RedisError("write the audit log", err)
}

// Filter selects entries; an empty field selects all.
type Filter struct {
	By, Who, What, Subject, Outcome string
	// Since is the earliest time, and Until the first later one that is not selected.
	Since, Until time.Time
}

func (f Filter) selects(e Entry) bool {
	for _, pair := range [][2]string{{f.By, string(e.By)}, {f.Who, e.Who}, {f.What, e.What}, {f.Subject, e.Subject}, {f.Outcome, e.Outcome}} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return !e.Time.Before(f.Since) && (f.Until.IsZero() || e.Time.Before(f.Until))
}

// IsCursor reports whether a text has the form of a cursor of Page; "" is one.
func IsCursor(text string) bool {
	return text == "" || len(text) <= 41 && strings.Trim(text, "0123456789-") == "" && strings.Count(text, "-") == 1 && text[0] != '-'
}

// Page returns at most limit of the newest Recent entries that match, newest first, after an earlier page's next; "" begins and ends.
func (l *Log) Page(ctx context.Context, filter Filter, cursor string, limit int) (found []Entry, next string, err error) {
	from := "+"
	if cursor != "" {
		from = "(" + cursor
	}
	for {
		part, err := l.client.XRevRangeN(ctx, entriesKey, from, "-", readTogether).Result()
		if err != nil {
			return nil, "", storage.RedisError("read the audit log", err)
		}
		for _, message := range part {
			from = "(" + message.ID
			var entry Entry
			raw, _ := message.Values[entryField].(string)
			if json.Unmarshal([]byte(raw), &entry) != nil || !filter.selects(entry) {
				continue
			}
			if len(found) == limit {
				return found, next, nil
			}
			found, next = append(found, entry), message.ID
		}
		if len(part) < readTogether {
			return found, "", nil
		}
	}
}

// Unfiled returns the finished days with entries that are not in the archive.
func (l *Log) Unfiled(ctx context.Context, now time.Time) ([]string, error) {
	days, err := l.client.SMembers(ctx, daysKey).Result()
	if err != nil {
		return nil, storage.RedisError("read the days of the audit log", err)
	}
	today := now.UTC().Format(time.DateOnly)
	days = slices.DeleteFunc(days, func(day string) bool { return day >= today })
	slices.Sort(days)
	return days, nil
}

// Day returns the entries of a day as lines of a file, and their number.
func (l *Log) Day(ctx context.Context, day string) (lines []byte, entries int, err error) {
	list, err := l.client.LRange(ctx, dayKey(day), 0, -1).Result()
	if err != nil {
		return nil, 0, storage.RedisError("read a day of the audit log", err)
	}
	for _, entry := range list {
		lines = append(append(lines, entry...), '\n')
	}
	return lines, len(list), nil
}

// filedScript removes a day from those to be archived, unless it has new entries.
const filedScript = `
if redis.call('LLEN', KEYS[1]) == tonumber(ARGV[2]) then redis.call('SREM', KEYS[2], ARGV[1]) end
return 1
`

// Filed records that a day's file in the archive has this number of entries.
func (l *Log) Filed(ctx context.Context, day string, entries int) error {
	err := redis.NewScript(filedScript).Run(ctx, l.client, []string{dayKey(day), daysKey}, day, entries).Err()
	return storage.RedisError("record a day of the audit log", err)
}
