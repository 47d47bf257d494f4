package tasks_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

func TestTaskIDs(t *testing.T) {
	t.Parallel()
	keyed := tasks.KeyedID("demo", "k1")
	if keyed != tasks.KeyedID("demo", "k1") {
		t.Error("the same token and key give two ids")
	}
	seen := map[string]string{keyed: "demo k1"}
	for name, id := range map[string]string{
		"another key":     tasks.KeyedID("demo", "k2"),
		"another token":   tasks.KeyedID("demo2", "k1"),
		"shifted border":  tasks.KeyedID("dem", "ok1"),
		"colon in a name": tasks.KeyedID("demo:k", "1"),
		"random":          tasks.RandomID(),
		"random again":    tasks.RandomID(),
	} {
		if other, ok := seen[id]; ok {
			t.Errorf("%s has the id of %s", name, other)
		}
		seen[id] = name
		if !tasks.IsTaskID(id) {
			t.Errorf("%s: %q is no task id", name, id)
		}
	}
	for _, bad := range []string{
		"", "video_", "video_abc", keyed + "0", strings.ToUpper(keyed), "video_" + strings.Repeat("z", 26),
		"tasks/../x",
	} {
		if tasks.IsTaskID(bad) {
			t.Errorf("%q passes as a task id", bad)
		}
	}
}

func TestRequestHash(t *testing.T) {
	t.Parallel()
	base := providers.VideoRequest{
		Model: "sora-2", Prompt: "a cat", Seconds: "8",
		Extra:  json.RawMessage(`{"style":"x","n":1.0}`),
		Inputs: []providers.Media{{SHA256: "aa", ContentType: "image/png"}},
	}
	hash := func(change func(*providers.VideoRequest)) string {
		req := base
		req.Inputs = append([]providers.Media(nil), base.Inputs...)
		change(&req)
		got, err := tasks.RequestHash(req)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := hash(func(*providers.VideoRequest) {})
	same := map[string]func(*providers.VideoRequest){
		"key order":       func(r *providers.VideoRequest) { r.Extra = json.RawMessage(`{ "n":1.0, "style":"x" }`) },
		"place of upload": func(r *providers.VideoRequest) { r.Inputs[0].Object = "tasks/y/inputs/aa" },
		"idempotency key": func(r *providers.VideoRequest) { r.IdempotencyKey = "k" },
	}
	for name, change := range same {
		if got := hash(change); got != want {
			t.Errorf("%s makes another request of it", name)
		}
	}
	other := map[string]func(*providers.VideoRequest){
		"prompt":  func(r *providers.VideoRequest) { r.Prompt = "a dog" },
		"seconds": func(r *providers.VideoRequest) { r.Seconds = "4" },
		"image":   func(r *providers.VideoRequest) { r.Inputs[0].SHA256 = "bb" },
		"extra":   func(r *providers.VideoRequest) { r.Extra = json.RawMessage(`{"style":"y","n":1.0}`) },
		"number":  func(r *providers.VideoRequest) { r.Extra = json.RawMessage(`{"style":"x","n":1}`) },
	}
	for name, change := range other {
		if got := hash(change); got == want {
			t.Errorf("another %s passes as the same request", name)
		}
	}
}

// TestInline: what is large, or may hold a signed address, stays out of histories.
func TestInline(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		doc  string
		want bool
	}{
		"plain":               {`{"prompt":"a cat? yes"}`, true},
		"address":             {`{"url":"https://example.com/a.png"}`, true},
		"address, question":   {`{"prompt":"see https://example.com/a.png ok?"}`, true},
		"signed address":      {`{"url":"https://example.com/a.png?sig=1"}`, false},
		"user in an address":  {`{"url":"https://user:pass@example.com/a.png"}`, false},
		"another scheme":      {`{"url":"s3://bucket/a.png?sig=1"}`, false},
		"image":               {`{"image":"data:image/png;base64,AAAA"}`, false},
		"upper case":          {`{"url":"HTTPS://example.com/a.png?sig=1"}`, false},
		"exactly the limit":   {strings.Repeat("x", 64<<10), true},
		"one above the limit": {strings.Repeat("x", 64<<10+1), false},
	}
	for name, c := range cases {
		if got := tasks.Inline([]byte(c.doc)); got != c.want {
			t.Errorf("%s: inline = %v, want %v", name, got, c.want)
		}
	}
}

// TestInlineSeesThroughEscapes: what a client writes as an escape is a character all the same.
func TestInlineSeesThroughEscapes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"url":"https:\/\/example.com\/a.png?sig=1"}`, `{"url":"https:\u002F\u002fexample.com/a.png\u003fsig=1"}`,
		`{"url":"d\u0061ta:image/png;base64,AAAA"}`,
	} {
		for name, req := range map[string]providers.VideoRequest{
			"extra": {Extra: json.RawMessage(raw)}, "metadata": {Metadata: json.RawMessage(raw)},
		} {
			doc, err := tasks.Canonical(req)
			if err != nil {
				t.Fatal(err)
			}
			if tasks.Inline(doc) {
				t.Errorf("%s %s passes into histories", name, raw)
			}
		}
	}
}

func FuzzIsTaskID(f *testing.F) {
	f.Add(tasks.KeyedID("a", "b"))
	f.Add("video_../../secret")
	f.Fuzz(func(t *testing.T, s string) {
		if tasks.IsTaskID(s) && strings.ContainsAny(s, "/\\.%? ") {
			t.Errorf("%q passes as a task id", s)
		}
	})
}
