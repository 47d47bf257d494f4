package ledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

var january = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func TestUsage(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	here, there := ledger.NewUsage(client, nil), ledger.NewUsage(client, nil)
	var calls sync.WaitGroup
	for i := range 400 {
		calls.Go(func() {
			usage := []*ledger.Usage{here, there}[i%2]
			usage.Record(ledger.Entry{
				Token: "anna", Model: "gpt 4o:é", Channel: "main|x", At: january, Requests: 1,
				InputTokens: 10, CachedTokens: 4, OutputTokens: 3, Failed: i%4 == 0,
			})
			usage.Record(ledger.Entry{Token: "berta", Model: "m", At: january.AddDate(0, 0, i%3), Requests: 1})
			usage.Record(ledger.Entry{Token: "anna", Model: "gpt 4o:é", Channel: "main|x", At: january, OutputTokens: 2})
		})
	}
	calls.Wait()
	for _, usage := range []*ledger.Usage{here, there} {
		if err := usage.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	anna := ledger.Row{
		Day: "2026-01-31", Token: "anna", Model: "gpt 4o:é", Channel: "main|x",
		Requests: 400, Failed: 100, InputTokens: 4000, CachedTokens: 1600, OutputTokens: 2000,
	}
	berta := func(day string, n int64) ledger.Row {
		return ledger.Row{Day: day, Token: "berta", Model: "m", Requests: n}
	}
	for _, test := range []struct {
		from, to time.Time
		token    string
		want     []ledger.Row
	}{
		{january, january, "anna", []ledger.Row{anna}},
		{january, january.AddDate(0, 0, 5), "", []ledger.Row{anna, berta("2026-01-31", 134), berta("2026-02-01", 133), berta("2026-02-02", 133)}},
		{
			january.Add(11 * time.Hour), january.AddDate(0, 0, 1).Add(-11 * time.Hour), "berta",
			[]ledger.Row{berta("2026-01-31", 134), berta("2026-02-01", 133)},
		},
		{january.AddDate(0, 0, 1), january, "", nil},
		{january, january, "unknown", nil},
	} {
		if got := storagetest.ReadUsage(t, client, test.from, test.to, test.token); !slices.Equal(got, test.want) {
			t.Errorf("%v to %v, %q:\ngot  %+v\nwant %+v", test.from, test.to, test.token, got, test.want)
		}
	}
}

func TestUsageOutlivesRedisBeingAway(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	client := server.Client(t)
	usage := storagetest.Usage(t, client)
	record := func() {
		usage.Record(ledger.Entry{Token: "a", Model: "m", At: january, Requests: 1, InputTokens: 5})
	}
	record()
	testwait.Eventually(t, "first entry written", storagetest.Patience,
		func() bool { return len(storagetest.ReadUsage(t, client, january, january, "a")) == 1 })
	server.Leave()
	for range 1000 {
		record()
	}
	if err := usage.Flush(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("flush: got %v, want ErrUnavailable", err)
	}
	if !usage.Away() || usage.Failures() < 1 {
		t.Errorf("got away %v, %d failures", usage.Away(), usage.Failures())
	}
	record()
	server.Return()
	testwait.Eventually(t, "all written", storagetest.Patience, func() bool {
		rows, err := ledger.NewReader(client).Read(t.Context(), january, january, "a")
		return err == nil && len(rows) == 1 && rows[0].Requests == 1002 && rows[0].InputTokens == 5010
	})
	testwait.Eventually(t, "back", storagetest.Patience, func() bool { return !usage.Away() })
}

// lostAnswers loses the answer of every second script, which has run.
type lostAnswers struct{ n int }

func (*lostAnswers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lostAnswers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lostAnswers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.n++; err == nil && l.n%2 == 0 {
			err = &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
			cmd.SetErr(err)
		}
		return err
	}
}

func TestUsageCountsOnceWhenAnAnswerIsLost(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	lossy := storagetest.Again(t, client)
	hook := &lostAnswers{}
	lossy.AddHook(hook)
	usage := ledger.NewUsage(lossy, &ledger.UsageOptions{FlushEvery: time.Hour})
	failed := 0
	for i := range 50 {
		for m := range 30 {
			usage.Record(ledger.Entry{Token: fmt.Sprint("t", m%7), Model: fmt.Sprint("m", m), At: january, Requests: 1, OutputTokens: int64(i)})
		}
		if usage.Flush(t.Context()) != nil {
			failed++
		}
	}
	for range 5 {
		if err := usage.Close(t.Context()); err == nil {
			break
		}
	}
	rows := storagetest.ReadUsage(t, client, january, january, "")
	if len(rows) != 30 || failed < 10 {
		t.Fatalf("%d rows, %d answers lost", len(rows), failed)
	}
	for _, row := range rows {
		if row.Requests != 50 || row.OutputTokens != 49*50/2 {
			t.Errorf("%+v, want 50 requests and 1,225 tokens", row)
		}
	}
}

// TestUsageContinuesAfterARefusal: if another program has written to a key of the ledger, only the rows of that key are lost.
// The rows after them are written, and nothing counts twice.
func TestUsageContinuesAfterARefusal(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	ctx := t.Context()
	var log bytes.Buffer
	usage := ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
	for _, key := range []string{"mr:usage:2026-01-31:a", "mr:budget:b"} {
		if err := client.Set(ctx, key, "of another program", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		for _, token := range []string{"a", "b", "c"} {
			usage.Record(ledger.Entry{Token: token, Model: "m", At: january, Requests: 1, Cost: 3})
		}
		storagetest.FlushUsage(t, usage)
	}
	if got, want := usage.Refused(), int64(4); got != want {
		t.Errorf("%d parts refused, want %d", got, want)
	}
	if text := log.String(); strings.Count(text, "redis refuses a row") != 4 || !strings.Contains(text, "token=a") ||
		!strings.Contains(text, "requests=1 cost=3") || !strings.Contains(text, "WRONGTYPE") {
		t.Errorf("log %s", text)
	}
	for _, token := range []string{"b", "c"} {
		want := []ledger.Row{{Day: "2026-01-31", Token: token, Model: "m", Requests: 2, Cost: 6}}
		if got := storagetest.ReadUsage(t, client, january, january, token); !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	// What could be stored of a: its budget has it.
	for _, token := range []string{"a", "c"} {
		if got := storagetest.Balance(t, client, token); got.Spent != 6 {
			t.Errorf("%s spent %d, want 6", token, got.Spent)
		}
	}
	if err := usage.Close(ctx); err != nil {
		t.Error(err)
	}
}

// refuses answers scripts as a Redis does that has other ideas of them.
type refuses struct {
	left   int
	answer string
}

func (*refuses) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*refuses) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r *refuses) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if r.left == 0 || cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		r.left--
		err := refusedBy(r.answer)
		cmd.SetErr(err)
		return err
	}
}

// refusedBy is an answer of Redis.
type refusedBy string

func (e refusedBy) Error() string { return string(e) }

// RedisError marks it for the library.
func (refusedBy) RedisError() {}

// TestUsageRepeatsBatches: Usage sends a batch that Redis refuses as a whole ten times. While Redis cannot serve (full,
// read-only, loading) it sends the batch without end.
func TestUsageRepeatsBatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		times  int
		want   int64 // requests that are written
	}{
		"for a moment":   {"ERR not now", 9, 2},
		"permanently":    {"ERR never", 10, 1},
		"it is full":     {"OOM command not allowed when used memory > 'maxmemory'.", 50, 2},
		"it is a copy":   {"READONLY You can't write against a read only replica.", 50, 2},
		"it is starting": {"LOADING Redis is loading the dataset in memory", 50, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := storagetest.Redis(t)
			hook := &refuses{left: tc.times, answer: tc.answer}
			picky := storagetest.Again(t, client)
			picky.AddHook(hook)
			usage := ledger.NewUsage(picky, &ledger.UsageOptions{FlushEvery: time.Hour})
			usage.Record(ledger.Entry{Token: "a", Model: "m", At: january, Requests: 1})
			failed := 0
			for range tc.times {
				if usage.Flush(t.Context()) != nil {
					failed++
				}
			}
			usage.Record(ledger.Entry{Token: "a", Model: "m", At: january, Requests: 1})
			storagetest.FlushUsage(t, usage)
			rows := storagetest.ReadUsage(t, client, january, january, "a")
			if len(rows) != 1 || rows[0].Requests != tc.want || usage.Refused() != 2-tc.want || failed == 0 {
				t.Errorf("rows %+v with %d flushes failed and %d rows refused, want %d requests", rows, failed, usage.Refused(), tc.want)
			}
			if err := usage.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDays: a read takes the days that it names, and of many those that are stored.
func TestDays(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC)
	for before, want := range map[int]int{0: 1, 1: 2, 29: 30, 399: 400, 10_000: 400} {
		if got := ledger.Days(at.AddDate(0, 0, -before), at); got != want {
			t.Errorf("%d days before: %d, want %d", before, got, want)
		}
	}
}
