package logline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/internal/logline"
)

var now = regexp.MustCompile(`"time":"[^"]+"`)

func write(tb testing.TB, log *slog.Logger, level slog.Level, texts []string, number int64, took time.Duration) {
	tb.Helper()
	var pool logline.Pool
	line := pool.Begin(log, level, "request")
	for _, text := range texts {
		line.Text("text", text)
	}
	line.Int("number", number).Milliseconds("ms", took).True("flag")
	pool.End(tb.Context(), line)
}

// same compares a line with what slog writes.
func same(t *testing.T, level slog.Level, texts []string, number int64, took time.Duration) {
	t.Helper()
	var own, theirs bytes.Buffer
	write(t, slog.New(logline.NewHandler(&own, slog.LevelDebug)), level, texts, number, took)
	write(t, slog.New(slog.NewJSONHandler(&theirs, &slog.HandlerOptions{Level: slog.LevelDebug})), level, texts, number, took)
	got, want := now.ReplaceAllString(own.String(), ""), now.ReplaceAllString(theirs.String(), "")
	// Of "\b" and "\f" slog knows no short form.
	if got != want && !slices.Equal(tokens(t, own.Bytes()), tokens(t, theirs.Bytes())) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var members struct{ Time time.Time }
	if err := json.Unmarshal(own.Bytes(), &members); err != nil || time.Since(members.Time).Abs() > time.Minute {
		t.Errorf("time %v, %v", members.Time, err)
	}
}

// tokens are a line's members in their order, without its time.
func tokens(t *testing.T, line []byte) []json.Token {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var found []json.Token
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return slices.Delete(found, 1, 3)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found = append(found, token)
	}
}

// TestLine: a line is what slog's JSON handler writes.
func TestLine(t *testing.T) {
	t.Parallel()
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelError, slog.LevelInfo + 1} {
		same(t, level, []string{"", "plain", `"quoted\"`, "line\nfeed\x00\x7f", "<a&b>", "Grüße 你好", "\u2028\u2029", "broken \xff utf8", "\b\f"}, -3, 1234567*time.Nanosecond)
	}
	for _, took := range []time.Duration{0, time.Nanosecond, time.Microsecond, time.Millisecond, time.Hour, 1000 * time.Hour, -time.Second} {
		same(t, slog.LevelInfo, nil, 1<<62, took)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("text\n", int64(1), int64(1500))
	f.Fuzz(func(t *testing.T, text string, number, took int64) {
		same(t, slog.LevelInfo, []string{text}, number, time.Duration(took))
	})
}

// TestLines: lines of both kinds do not mix, and a logger with attributes of its own keeps them.
func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(logline.NewHandler(&out, slog.LevelInfo))
	var pool logline.Pool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				pool.End(t.Context(), pool.Begin(log, slog.LevelInfo, "one").Text("text", strings.Repeat("x", 5000)))
				log.With("part", "p").Info("two", "text", "y")
				pool.End(t.Context(), pool.Begin(log.With("part", "p"), slog.LevelInfo, "three").Int("n", 3))
			}
		})
	}
	all.Wait()
	count := map[string]int{}
	for line := range strings.Lines(out.String()) {
		var members struct{ Msg, Part string }
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		count[members.Msg+members.Part]++
	}
	if count["one"] != 400 || count["twop"] != 400 || count["threep"] != 400 || len(count) != 3 {
		t.Errorf("got %v", count)
	}
}

// TestLineAllocates: a line of plain values allocates nothing once the first were written.
func TestLineAllocates(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	if raceDetector {
		t.Skip("the race detector lets pools forget")
	}
	log := slog.New(logline.NewHandler(discard{}, slog.LevelInfo))
	var pool logline.Pool
	got := testing.AllocsPerRun(1000, func() {
		pool.End(t.Context(), pool.Begin(log, slog.LevelInfo, "request").Text("id", "req_1").Int("n", 7).Milliseconds("ms", 1500*time.Microsecond).True("flag"))
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
