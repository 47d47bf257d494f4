package main_test

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	main "modelrelay/cmd/gateway"
	"modelrelay/storage/testwait"
)

// series is what Prometheus reads, by name and labels as they are written.
type series map[string]float64

// scrape reads the metrics of a gateway that logged where they are.
func (s *serving) scrape() series {
	s.t.Helper()
	at := decode[struct{ Address string }](s.t, s.err.line(s.t, 1, `"msg":"metrics"`)).Address
	status, text := s.getAt("http://" + at + "/metrics")
	if status != http.StatusOK {
		s.t.Fatalf("metrics: status %d: %s", status, text)
	}
	read := series{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := cutLast(strings.TrimSpace(line), " ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			s.t.Fatalf("no sample: %s", line)
		}
		read[name] = n
	}
	return read
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// sum adds up the series of a name that have all the labels, each written name="value"; found counts them.
func (r series) sum(name string, labels ...string) (total float64, found int) {
next:
	for key, value := range r {
		have, rest, _ := strings.Cut(key, "{")
		if have != name {
			continue
		}
		for _, label := range labels {
			if !strings.Contains("{,"+rest, ","+label) && !strings.HasPrefix(rest, label) {
				continue next
			}
		}
		total += value
		found++
	}
	return total, found
}

func (r series) want(t *testing.T, want float64, name string, labels ...string) {
	t.Helper()
	if got, found := r.sum(name, labels...); found == 0 || got != want {
		t.Errorf("%s%v: got %v in %d series, want %v", name, labels, got, found, want)
	}
}

func withMetrics(config string) string {
	return strings.Replace(config, `metrics: {listen: ""}`, "metrics: {listen: 127.0.0.1:0}", 1)
}

// TestMetricsOfCalls: counts are what happened, a call that fails over included.
func TestMetricsOfCalls(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	close(u.release)
	config := strings.NewReplacer(
		"{name: demo, key: sk-demo}", "{name: demo, key: sk-demo}, {name: one, key: sk-one, requests_per_minute: 1}",
		"models: {m: }}]", "models: {m: }}, {name: dead, vendor: openai, base_url: \"http://127.0.0.1:1\", keys: [k], models: {m: }, priority: 9}]",
	).Replace(withMetrics(configFor(redisAway, u.URL, "sk-demo", "cooldown_failures: 1"))) +
		"prices: {m: {input: 1, output: 2, unit: \"1\"}}\n"
	s := serve(t, config, "--worker=false")
	client := newClient(t)
	for range 3 {
		if status, body, err := s.chat(t.Context(), client, "sk-demo"); status != 200 || err != nil {
			t.Fatal(status, body, err)
		}
	}
	for _, want := range []int{200, 429} {
		if status, body, err := s.chat(t.Context(), client, "sk-one"); status != want || err != nil {
			t.Fatal(want, status, body, err)
		}
	}
	resp, err := s.post(t.Context(), client, "sk-demo", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if status, _ := s.get("/v1/models/unheard-of"); status != 401 {
		t.Fatal(status)
	}
	// The last request's handler counts after its last byte.
	var got series
	testwait.Eventually(t, "all counted", patience, func() bool {
		got = s.scrape()
		n, _ := got.sum("http_server_request_duration_seconds_count")
		return n == 7
	})
	const chat = `http_route="/v1/chat/completions"`
	got.want(t, 5, "http_server_request_duration_seconds_count", chat, `http_response_status_code="200"`, `http_request_method="POST"`)
	got.want(t, 1, "http_server_request_duration_seconds_count", chat, `http_response_status_code="429"`)
	call := []string{`gen_ai_operation_name="chat"`, `gen_ai_provider_name="openai"`, `gen_ai_request_model="m"`}
	got.want(t, 5, "gen_ai_client_operation_duration_seconds_count", call...)
	got.want(t, 1, "gen_ai_client_operation_time_to_first_chunk_seconds_count", call...)
	got.want(t, 5, "gateway_call_before_upstream_seconds_count", call[0])
	got.want(t, 5, "gen_ai_client_token_usage_count", append(call, `gen_ai_token_type="input"`)...)
	got.want(t, 1, "gateway_refusals_total", `limit="requests"`)
	got.want(t, 0, "gateway_refusals_total", `limit="budget"`)
	got.want(t, 2, "gateway_attempts_total", `channel="dead"`, `outcome="upstream"`, `again="false"`)
	got.want(t, 2, "gateway_attempts_total", `channel="main"`, `outcome="ok"`, `again="true"`)
	got.want(t, 3, "gateway_attempts_total", `channel="main"`, `outcome="ok"`, `again="false"`)
	got.want(t, 1, "gateway_channel_state", `channel="dead"`, `state="open"`)
	got.want(t, 1, "gateway_channel_state", `channel="main"`, `state="closed"`)
	got.want(t, 2, "gateway_model_channels", `model="m"`)
	got.want(t, 1, "gateway_model_channels_available", `model="m"`)
	got.want(t, 0, "gateway_channel_in_flight", `channel="main"`)
	got.want(t, 0, "http_server_active_requests")
	got.want(t, 1, "gateway_redis_away", `part="limits"`)
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "gateway_build_info", "gateway_spent_total"} {
		if n, found := got.sum(name); found == 0 || n <= 0 {
			t.Errorf("%s: got %v in %d series", name, n, found)
		}
	}
	for key := range got {
		if strings.Contains(key, "sk-") || strings.Contains(key, `"demo"`) || strings.Contains(key, "otel_scope") {
			t.Errorf("a label says too much: %s", key)
		}
	}
}

// TestMetricsAreBounded: clients cannot make series.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	const models = 504 // eight callers share them
	u := startUpstream(t, "A")
	config := strings.Replace(withMetrics(configFor(redisAway, u.URL, "sk-demo", "")), "models: {m: }", `models: {m: , "*": }`, 1)
	s := serve(t, config, "--worker=false")
	client := newClient(t)
	draw := func(n int) {
		var callers sync.WaitGroup
		for part := range 8 {
			callers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(part), 1))
				for range n / 8 {
					body := fmt.Sprintf(`{"model":"m-%d","messages":[{"role":"user","content":"hi"}]}`, random.Uint64())
					resp, err := s.post(t.Context(), client, "sk-demo", body)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode != 200 {
						t.Errorf("status %d", resp.StatusCode)
						return
					}
				}
			})
		}
		callers.Wait()
	}
	// A call is counted once its client has the answer, so a scrape may come before its series. Those of the look for Temporal, which
	// is away here, come when they come.
	counted := func(calls int) (all series) {
		testwait.Eventually(t, "all counted", patience, func() bool {
			all = s.scrape()
			n, _ := all.sum("gen_ai_client_operation_duration_seconds_count", `gen_ai_request_model="other"`)
			return n == float64(calls)
		})
		maps.DeleteFunc(all, func(key string, _ float64) bool { return strings.HasPrefix(key, "temporal_") })
		return all
	}
	draw(16)
	before := len(counted(16))
	draw(models)
	after := counted(models + 16)
	t.Logf("%d series before, %d after %d names", before, len(after), models)
	if len(after) > before+20 || len(after) > 1000 {
		t.Errorf("%d series before, %d after %d model names", before, len(after), models)
	}
}

// TestMetricsFollowAReload: a model that comes with a reload gets its name.
func TestMetricsFollowAReload(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	config := withMetrics(configFor(redisAway, u.URL, "sk-demo", ""))
	s := serve(t, config, "--worker=false")
	s.scrape().want(t, 1, "gateway_model_channels", `model="m"`)
	s.rewrite(strings.Replace(config, "models: {m: }", "models: {m: , later: }", 1))
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	s.scrape().want(t, 1, "gateway_model_channels", `model="later"`)
}

// TestMetricsAddress: one that is taken is named with its key; an empty one opens nothing, and a worker has metrics too.
func TestMetricsAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	config := configFor(redisAway, "http://u.test", "k", "")
	path := writeFile(t, "gateway.yaml", strings.Replace(config, `metrics: {listen: ""}`, "metrics: {listen: "+taken.Addr().String()+"}", 1))
	for _, command := range []string{"serve", "worker"} {
		_, stderr, code := run(t, nil, command, "--config", path)
		if code != main.ExitFailed || !strings.Contains(stderr, "gateway: metrics.listen: ") ||
			!strings.Contains(stderr, "its own address") {
			t.Errorf("%s: code %d\n%s", command, code, stderr)
		}
	}

	p := newProgram("worker", "--config", writeFile(t, "gateway.yaml", withMetrics(config)))
	ended := make(chan int, 1)
	go func() { ended <- p.do(t.Context()) }()
	at := decode[struct{ Address string }](t, p.err.line(t, 1, `"msg":"metrics"`)).Address
	worker := &serving{program: p, t: t}
	if status, text := worker.getAt("http://" + at + "/metrics"); status != 200 || !strings.Contains(text, "gateway_channel_state") {
		t.Errorf("a worker's metrics: status %d", status)
	}
	if status, _ := worker.getAt("http://" + at + "/readyz"); status != 404 {
		t.Errorf("the listener serves more than metrics: status %d", status)
	}

	quiet := serve(t, config, "--worker=false")
	if status, _ := quiet.get("/metrics"); status != 404 {
		t.Errorf("metrics on the public listener: status %d", status)
	}
	if strings.Contains(quiet.err.String(), `"msg":"metrics"`) {
		t.Error("a gateway that wants no metrics listens for them")
	}
}
