package bench_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modelrelay/dev/bench"
)

// body is a stream of words, an event each, as the upstream sends it.
func body(words int, change ...func([]string) []string) string {
	events := []string{`{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`}
	for i := range words {
		space := " "
		if i == words-1 {
			space = ""
		}
		events = append(events, fmt.Sprintf(`{"choices":[{"delta":{"content":"tok%d%s"},"finish_reason":null}]}`, i, space))
	}
	events = append(events, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "[DONE]")
	for _, c := range change {
		events = c(events)
	}
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

func TestCheckStream(t *testing.T) {
	t.Parallel()
	counts := `{"choices":[],"usage":{"prompt_tokens":1}}`
	for _, tc := range []struct {
		name, body string
		right      bool
	}{
		{"whole", body(3), true},
		{"empty", "", false},
		{"cut before the last line", strings.TrimSuffix(body(3), "data: [DONE]\n\n"), false},
		{"cut within the last line", strings.TrimSuffix(body(3), "]\n\n"), false},
		{"a word short", body(2), false},
		{"a word twice", body(3, func(e []string) []string { return slices.Insert(e, 1, e[1]) }), false},
		{"in another order", body(3, func(e []string) []string { e[1], e[2] = e[2], e[1]; return e }), false},
		{"no reason of the end", body(3, func(e []string) []string { return slices.Delete(e, 4, 5) }), false},
		{"counts nobody asked for", body(3, func(e []string) []string { return slices.Insert(e, 5, counts) }), false},
		{"an error in it", body(3, func(e []string) []string { e[4] = `{"error":{"message":"broke off"}}`; return e }), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := bench.CheckStream([]byte(tc.body), 3); (err == nil) != tc.right {
				t.Errorf("got %v, want right: %v", err, tc.right)
			}
		})
	}
}

func TestDelays(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	begin := time.Now()
	var arrived []time.Time
	// The first event is 5 ms late, the third 10 ms; the last line comes with the fourth.
	for _, at := range []time.Duration{5 * ms, 20 * ms, 50 * ms, 60 * ms, 60 * ms} {
		arrived = append(arrived, begin.Add(at))
	}
	if got, want := bench.Delays(arrived), []time.Duration{5 * ms, 0, 10 * ms, 0}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := bench.Delays(arrived[:1]); got != nil {
		t.Errorf("got %v of one event", got)
	}
}

// serve serves h on loopback and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestChat(t *testing.T) {
	t.Parallel()
	onLinux(t)
	const want = `"model":"m","content":"x"}`
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
		right  bool
	}{
		{"right", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"1",`+want) }, true},
		{"other words", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"model":"m","content":"y"}`) }, false},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, false},
		{"refused", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{`+want)
		}, false},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{`+want)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			right, _, err := bench.Chat(t.Context(), serve(t, tc.answer), os.Getpid(), []byte(want), 3, 50)
			switch {
			case tc.right && (err != nil || right != 50):
				t.Errorf("got %d right of 50, %v", right, err)
			case !tc.right && !errors.Is(err, bench.ErrBroken):
				t.Errorf("got error %v, want ErrBroken", err)
			}
		})
	}
}

// Of twenty streams that a server cuts each fifth of, four are found broken, and the others are read to their ends.
func TestStreams(t *testing.T) {
	t.Parallel()
	onLinux(t)
	var served atomic.Int32
	whole := body(100)
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		text := whole
		switch served.Add(1) % 10 {
		case 0:
			text = text[:len(text)/2]
		case 5:
			defer panic(http.ErrAbortHandler)
			text = text[:len(text)/3]
		}
		_, _ = io.WriteString(w, text)
		_ = http.NewResponseController(w).Flush()
	})
	broken, resident, err := bench.Streams(t.Context(), addr, os.Getpid(), 20)
	if broken != 4 || !errors.Is(err, bench.ErrBroken) {
		t.Errorf("got %d broken, %v, want 4", broken, err)
	}
	if resident <= 0 {
		t.Errorf("got %d bytes of memory", resident)
	}
}

func TestCPUTime(t *testing.T) {
	t.Parallel()
	onLinux(t)
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	got, err := bench.CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	used := func(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	const room = 20 * time.Millisecond // what the kernel rounds
	if got < used(before)-room || got > used(after)+room {
		t.Errorf("got %v, want between %v and %v", got, used(before), used(after))
	}
	if _, err := bench.CPUTime(1 << 23); err == nil {
		t.Error("no error for a process whose id no process can have")
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	row := bench.NewRow([]float64{1, 2, 4}, []float64{3, 3, 4}, &bench.Target{Ratio: true, Value: 1.5})
	if *row.Floor != 2 || *row.Gateway != 3 || *row.Ratio != 1.5 || !row.Target.Met {
		t.Errorf("got floor %v, gateway %v, ratio %v, met %v; want the medians of each, and of the ratios", *row.Floor, *row.Gateway, *row.Ratio, row.Target.Met)
	}
	if row := bench.NewRow(nil, []float64{98, 99}, &bench.Target{AtLeast: true, Value: 99}); *row.Gateway != 98.5 || row.Floor != nil || row.Target.Met {
		t.Errorf("got %+v, met %v", row, row.Target.Met)
	}
	row = bench.NewRow([]float64{1}, []float64{2}, &bench.Target{Ratio: true, Value: 1.6})
	var out strings.Builder
	if err := (&bench.Report{Machine: "two cores", Rows: []bench.Row{row}}).Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"two cores\n", "figure", "2.00", "ratio <= 1.6  (missed)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []bench.Options{{}, {Rounds: 1}, {Rounds: 1, Connections: 64, Requests: -1}, {Rounds: 1, Connections: 64, Streams: 1 << 20}} {
		if _, err := bench.Run(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the CPU time of another process")
	}
}
