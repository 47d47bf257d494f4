package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/storage/storagetest"
)

// TestChannels: two gateways share one Redis. What the first finds out of a channel and of a key the second one knows,
// and an operator sees both.
func TestChannels(t *testing.T) {
	t.Parallel()
	redis, _ := storagetest.Miniredis(t)
	broke := providers.Secret("sk-broke")
	mixed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") == "Bearer "+broke.Reveal() {
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`)
			return
		}
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "busy") {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	}))
	t.Cleanup(mixed.Close)
	config := fmt.Sprintf(`listen: 127.0.0.1:0
metrics: {listen: ""}
redis: {url: redis://%s/0}
temporal: {address: 127.0.0.1:1}
archive: {endpoint: http://127.0.0.1:1, bucket: videos, access_key: x, secret_key: yyyyyyyy}
tokens: [{name: demo, key: sk-demo}]
channels:
  - {name: mixed, vendor: openai, base_url: %s, keys: [sk-broke, sk-fine], models: {m: , busy: }}
  - {name: dead, vendor: openai, base_url: "http://127.0.0.1:1", keys: [sk-dead], models: {m: }, priority: 1}
`, redis.Addr(), mixed.URL)
	first, second := serve(t, config, "--worker=false"), serve(t, config, "--worker=false")
	ask := func(s *serving, model string) int {
		t.Helper()
		body := strings.NewReader(`{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/chat/completions", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer sk-demo")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode
	}
	chat := func(s *serving) {
		t.Helper()
		if code := ask(s, "m"); code != http.StatusOK {
			t.Fatalf("answered %d", code)
		}
	}
	// The second says hello, so that there is something to hear it with; then the first finds out.
	states := func() map[string]health.ChannelState {
		t.Helper()
		out, stderr, code := run(t, nil, "channels", "--config", first.config, "--json")
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		byName := make(map[string]health.ChannelState)
		for _, state := range decode[[]health.ChannelState](t, out) {
			byName[state.Name] = state
		}
		return byName
	}
	await := func(what string, done func(map[string]health.ChannelState) bool) map[string]health.ChannelState {
		t.Helper()
		for limit := time.Now().Add(patience); ; {
			got := states()
			if done(got) {
				return got
			}
			if time.Now().After(limit) {
				text, _ := json.Marshal(got)
				t.Fatalf("%s: not seen in time: %s", what, text)
			}
		}
	}
	await("both processes", func(got map[string]health.ChannelState) bool { return got["dead"].Processes == 2 })
	for range health.DefaultCooldownFailures {
		chat(first)
	}
	if code := ask(first, "busy"); code != http.StatusTooManyRequests {
		t.Errorf("a model over its limit: answered %d", code)
	}
	got := await("the rests", func(got map[string]health.ChannelState) bool {
		return got["dead"].State == health.StateOpen && got["mixed"].Keys[0].State == health.StateOpen && len(got["mixed"].Keys[1].Models) > 0
	})
	if fault := got["dead"].LastFault; fault == nil || fault.Kind != providers.Upstream {
		t.Errorf("got last fault %+v of the dead channel", fault)
	}
	key := got["mixed"].Keys[0]
	if key.Fingerprint != broke.Fingerprint() || key.LastFault.Key != "exhausted" || key.LastFault.Code != "insufficient_quota" ||
		key.CooldownLeft < 200 {
		t.Errorf("got key %+v", key)
	}
	if got["mixed"].State != health.StateClosed {
		t.Errorf("got %+v of a channel with one good key", got["mixed"])
	}
	if fine := got["mixed"].Keys[1]; fine.State != health.StateClosed || fine.Models[0].Model != "busy" || fine.Models[0].CooldownLeft < 200 {
		t.Errorf("got key %+v, which is limited for one model", fine)
	}
	// The other gateway spends no attempt on any.
	await("the other gateway's knowledge", func(map[string]health.ChannelState) bool {
		fellOver, one := strings.Count(second.err.String(), `"msg":"attempt"`), strings.Count(second.err.String(), `"attempts":1`)
		chat(second)
		log := second.err.String()
		return strings.Count(log, `"msg":"attempt"`) == fellOver && strings.Count(log, `"attempts":1`) == one+1
	})

	await("the other gateway's knowledge of the model", func(map[string]health.ChannelState) bool {
		return ask(second, "busy") == http.StatusServiceUnavailable
	})

	table, stderr, code := run(t, nil, "channels", "--config", first.config)
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{
		"CHANNEL", "dead", "open", "key " + broke.Fingerprint(), "key exhausted 429 insufficient_quota", "for busy",
		"ago",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
	for _, secret := range []string{"sk-broke", "sk-fine", "sk-dead"} {
		if strings.Contains(table, secret) {
			t.Errorf("the table shows the key %s", secret)
		}
	}

	first.stop()
	second.stop()
	first.end()
	second.end()
	table, stderr, code = run(t, nil, "channels", "--config", first.config)
	if code != 0 || !strings.Contains(table, "unknown") || !strings.Contains(stderr, "No running gateway") {
		t.Errorf("with no gateway: exit code %d, %s%s", code, stderr, table)
	}
	redis.Close()
	if _, _, code := run(t, nil, "channels", "--config", first.config); code != 1 {
		t.Errorf("with redis away: exit code %d, want 1", code)
	}
}

// TestChannelModels: what the video models of the channels take, whether a gateway runs or not.
func TestChannelModels(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	path := writeFile(t, "gateway.yaml", `redis: {url: "redis://`+server.Addr()+`"}
channels:
  - {name: films, vendor: luma, keys: [k], models: {film: ray-3.2, "film-*": "*"}}
  - {name: words, vendor: anthropic, base_url: "http://127.0.0.1:1", keys: [k], models: {c: }}
`)
	table, stderr, code := run(t, nil, "channels", "--models", "--config", path)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 2 || !strings.HasPrefix(rows[0], "CHANNEL") {
		t.Fatalf("got\n%s", table)
	}
	for _, want := range []string{"films", "film", "ray-3.2", "5 10", "16:9", "1080p", "image", "last_image", "never"} {
		if !strings.Contains(rows[1], want) {
			t.Errorf("no %q in %s", want, rows[1])
		}
	}
	text, stderr, code := run(t, nil, "channels", "--config", path, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, state := range decode[[]health.ChannelState](t, text) {
		if state.Name == "films" && (len(state.Videos) != 1 || state.Videos[0].Upstream != "ray-3.2" ||
			len(state.Videos[0].Video.Seconds) == 0) ||
			state.Name == "words" && state.Videos != nil {
			t.Errorf("%s: got %+v", state.Name, state.Videos)
		}
	}
}
