package calls_test

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
	"testing"

	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/stage"
)

// body is a stream of words, one event each, as the upstream sends it.
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
		{"counts that were not requested", body(3, func(e []string) []string { return slices.Insert(e, 5, counts) }), false},
		{"an error in it", body(3, func(e []string) []string { e[4] = `{"error":{"message":"broke off"}}`; return e }), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := calls.CheckStream([]byte(tc.body), 3); (err == nil) != tc.right {
				t.Errorf("got %v, want right: %v", err, tc.right)
			}
		})
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
			right, err := calls.Chat(t.Context(), serve(t, tc.answer), os.Getpid(), []byte(want), 3, 50)
			switch {
			case tc.right && (err != nil || right != 50):
				t.Errorf("got %d right of 50, %v", right, err)
			case !tc.right && !errors.Is(err, stage.ErrBroken):
				t.Errorf("got error %v, want ErrBroken", err)
			}
		})
	}
}

// TestStreams: a server cuts every fifth of twenty streams; four count as broken, and the others are read to their ends.
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
	broken, resident, err := calls.Streams(t.Context(), addr, os.Getpid(), 20)
	if broken != 4 || !errors.Is(err, stage.ErrBroken) {
		t.Errorf("got %d broken, %v, want 4", broken, err)
	}
	if resident <= 0 {
		t.Errorf("got %d bytes of memory", resident)
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the CPU time of another process")
	}
}
