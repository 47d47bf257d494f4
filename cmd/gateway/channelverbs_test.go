package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// TestChannelVerbs: what an operator says of a channel at one process, or by a command, holds at all of them, and for one
// that starts later; a test brings the upstream's own words, and none of its key.
func TestChannelVerbs(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "up-1")
		if r.Header.Get("Authorization") == "Bearer sk-typed-by-hand" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: sk-typed-by-hand."}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/models") {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(upstream.Close)
	text := "admin_key: some-admin-key\n" + configFor("redis://"+server.Addr(), upstream.URL, "sk-demo", "")
	here, there := serve(t, text, "--worker=false"), serve(t, text, "--worker=false")
	post := func(s *serving, key, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		resp, err := newClient(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(answer)
	}
	chats := func(s *serving) int {
		code, _ := post(s, "sk-demo", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"Hello"}]}`)
		return code
	}
	become := func(s *serving, what string, want int) {
		t.Helper()
		testwait.Eventually(t, what, storagetest.Patience, func() bool { return chats(s) == want })
	}
	become(there, "the channel answers", 200)
	code, body := post(here, "some-admin-key", "/admin/channels/main/pause", `{"minutes":60,"reason":"billing"}`)
	if code != 200 || !strings.Contains(body, `"state":"paused"`) || chats(here) != 503 {
		t.Fatalf("pause: %d %s", code, body)
	}
	become(there, "paused at the other process", 503)
	late := serve(t, text, "--worker=false")
	become(late, "paused after a start", 503)

	path := writeFile(t, "gateway.yaml", text)
	if stdout, stderr, code := run(t, nil, "channels", "--config", path); code != 0 || !strings.Contains(stdout, "paused") {
		t.Errorf("listed: %s%s", stdout, stderr)
	}
	if stdout, stderr, code := run(t, nil, "channels", "pause", "main", "--for", "5m", "--config", path); code != 0 ||
		!strings.Contains(stdout, "main is paused until") {
		t.Errorf("a shorter pause: %s%s", stdout, stderr)
	}
	if stdout, stderr, code := run(t, nil, "channels", "resume", "main", "--config", path); code != 0 {
		t.Errorf("resume: %s%s", stdout, stderr)
	}
	for _, s := range []*serving{here, there, late} {
		become(s, "resumed by a command", 200)
	}
	// A process that learns of a pause late, and missed its end, learns of the end when it is connected to Redis again.
	server.Publish(storage.Prefix+"cooldown-news", `{"process":"x","name":"pause main","left":3600000,"text":{"paused":"main"}}`)
	become(there, "paused by word alone", 503)
	server.Close()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	become(there, "resumed when Redis is back", 200)
	become(here, "resumed when Redis is back", 200)
	if stdout, stderr, code := run(t, nil, "channels", "wake", "main", "--config", path); code != 0 {
		t.Errorf("wake: %s%s", stdout, stderr)
	}
	if _, stderr, code := run(t, nil, "channels", "pause", "none", "--config", path); code != 1 ||
		!strings.Contains(stderr, `no channel "none"`) {
		t.Errorf("pause of none: %d %s", code, stderr)
	}
	if stdout, stderr, code := run(t, nil, "channels", "test", "main", "--config", path); code != 0 ||
		!strings.Contains(stdout, "the right to m") || strings.Contains(stdout, "Hello") {
		t.Errorf("free test by the command: %d %s%s", code, stdout, stderr)
	}
	code, body = post(here, "some-admin-key", "/admin/channels/main/test", `{"key":"sk-typed-by-hand"}`)
	if code != 200 || !strings.Contains(body, `"ok":false`) ||
		!strings.Contains(body, "the key is refused (status 401: Incorrect API key provided: ***.)") || strings.Contains(body, "sk-typed") {
		t.Errorf("free test with a typed key: %d %s", code, body)
	}
	if chats(here) != 200 {
		t.Error("a test with a wrong key counts against the channel")
	}
	if code, body := here.admin("some-admin-key", "GET", "/admin/audit?subject=main&by=cli"); code != 200 ||
		strings.Count(body, `"what"`) != 4 {
		t.Errorf("audit: %d %s", code, body)
	}
}
