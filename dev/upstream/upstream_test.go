package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/upstream"
)

const testKey = "sk-upstream-test"

// fake is one running upstream and a client of it.
type fake struct {
	url  string
	stop func() // ends Run and waits for it
}

func start(t *testing.T, o upstream.Options) *fake {
	t.Helper()
	if o.ChunkInterval == 0 {
		o.ChunkInterval = -1
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	o.Ready = func(addr string) { ready <- addr }
	go func() { ended <- upstream.Run(ctx, o) }()
	stopped := false
	f := &fake{stop: func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}}
	select {
	case addr := <-ready:
		f.url = "http://" + addr
	case err := <-ended:
		cancel()
		t.Fatalf("Run: %v", err)
	}
	t.Cleanup(f.stop)
	return f
}

// answer is a response read to its end, which err says was not reached.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("body is no JSON object: %v\n%s", err, a.body)
	}
	return v
}

// do sends a request; pairs are header names and values. A JSON content type and the test key are there unless given.
func (f *fake) do(t *testing.T, method, path, body string, pairs ...string) answer {
	t.Helper()
	a, err := f.try(t.Context(), method, path, body, pairs...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (f *fake) try(ctx context.Context, method, path, body string, pairs ...string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, f.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+testKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			req.Header.Del(pairs[i])
			continue
		}
		req.Header.Set(pairs[i], pairs[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	a.body, a.err = io.ReadAll(res.Body)
	return a, nil
}

// control sends an order to the control interface and returns its answer.
func (f *fake) control(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	a := f.do(t, method, "/_control/"+path, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a.json(t)
}

// at reads a path of keys and indexes out of decoded JSON; nil when it leads nowhere.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[step]
		case int:
			l, _ := v.([]any)
			if step >= len(l) {
				return nil
			}
			v = l[step]
		}
	}
	return v
}

// textAt is at for a value that must be a string.
func textAt(t *testing.T, v any, path ...any) string {
	t.Helper()
	s, ok := at(v, path...).(string)
	if !ok {
		t.Fatalf("%v: no text in %v", path, v)
	}
	return s
}

// listAt is at for a value that must be an array.
func listAt(t *testing.T, v any, path ...any) []any {
	t.Helper()
	l, ok := at(v, path...).([]any)
	if !ok {
		t.Fatalf("%v: no array in %v", path, v)
	}
	return l
}

// wants compares values at paths written with dots.
func wants(t *testing.T, v any, want map[string]any) {
	t.Helper()
	for path, value := range want {
		got := v
		for step := range strings.SplitSeq(path, ".") {
			if len(step) == 1 && step[0] >= '0' && step[0] <= '9' {
				got = at(got, int(step[0]-'0'))
			} else {
				got = at(got, step)
			}
		}
		if n, ok := value.(int); ok {
			value = float64(n)
		}
		if got != value {
			t.Errorf("%s: got %v, want %v", path, got, value)
		}
	}
}

// events splits a stream into its data lines.
func events(t *testing.T, body []byte) []string {
	t.Helper()
	if !bytes.HasSuffix(body, []byte("\n\n")) {
		t.Errorf("stream does not end with a blank line: %q", body[max(0, len(body)-40):])
	}
	var data []string
	for line := range strings.SplitSeq(string(body), "\n") {
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			data = append(data, text)
		}
	}
	return data
}

// eventually asks until done says so.
func eventually(t *testing.T, ask func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for !ask() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("it did not happen within 20 s")
		}
	}
}
