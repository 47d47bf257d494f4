package main_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// TestTranslatedCalls: a client of another format calls a model under an alias; the log, the metrics and the answer's header
// name both endpoints, and a reload changes the aliases.
func TestTranslatedCalls(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	u := startUpstream(t, "A")
	config := strings.Replace(withMetrics(configFor("redis://"+server.Addr(), u.URL, "sk-demo", "")), "models: {m: }}]",
		`models: {"haiku-*": , m: }, dialect: chat, traits: {haiku: [reasons]}}]`, 1)
	s := serve(t, config+"aliases: {claude-haiku: haiku-4}\n", "--worker=false")
	client := newClient(t)
	ask := func(model string) (*http.Response, string) {
		t.Helper()
		body := `{"model":"` + model + `","max_tokens":64,"temperature":0.5,"messages":[{"role":"user","content":"hi"}]}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/messages", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "sk-demo")
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(answer)
	}
	for _, model := range []string{"claude-haiku", "haiku-5"} {
		resp, body := ask(model)
		if resp.StatusCode != 200 || !strings.Contains(body, `"text":"A"`) || !strings.Contains(body, `"model":"`+model+`"`) ||
			resp.Header.Get("X-Relay-Translated") != "openai.chat" || resp.Header.Get("X-Relay-Dropped") != "temperature" {
			t.Errorf("%s: got %d %v %s", model, resp.StatusCode, resp.Header, body)
		}
	}
	s.err.line(t, 2, `"translated":"openai.chat"`)
	testwait.Eventually(t, "both counted", patience, func() bool {
		n, _ := s.scrape().sum("gateway_calls_translated_total", `from="anthropic.messages"`, `to="openai.chat"`)
		return n == 2
	})
	s.rewrite(config + "aliases: {small: haiku-4}\n")
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	for model, want := range map[string]int{"small": 200, "claude-haiku": 404} {
		if resp, body := ask(model); resp.StatusCode != want {
			t.Errorf("%s after a reload: got %d %s", model, resp.StatusCode, body)
		}
	}
}
