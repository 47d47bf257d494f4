package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows/tasks"
)

// fakeArchive is an archive of documents that can go away.
type fakeArchive struct {
	activities.Objects // nil: what is not below panics

	docs map[string][]byte
	away bool
}

func (s *fakeArchive) PutJSON(_ context.Context, key string, doc any) error {
	raw, err := json.Marshal(doc)
	switch {
	case err != nil:
		return err
	case s.away:
		return storage.ErrUnavailable
	case len(raw) > archive.MaxDocument:
		return archive.ErrTooLarge
	}
	s.docs[key] = raw
	return nil
}

func (s *fakeArchive) GetJSON(_ context.Context, key string, into any) error {
	if s.away {
		return storage.ErrUnavailable
	}
	return json.Unmarshal(s.docs[key], into)
}

// Put hangs, as a store on a hung disk does.
func (s *fakeArchive) Put(ctx context.Context, _ string, _ io.Reader, _ int64, _ archive.PutOptions) (archive.Object, error) {
	<-ctx.Done()
	return archive.Object{}, ctx.Err()
}

// DeletePrefix hangs as well.
func (s *fakeArchive) DeletePrefix(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// options are those of a client over the archive and the Redis.
func options(objects activities.Objects, connection redis.UniversalClient) tasks.ClientOptions {
	return tasks.ClientOptions{
		TaskQueue: "video", Objects: objects, Repeats: taskindex.NewRepeats(connection),
		Index: taskindex.New(connection, 0), Changes: taskindex.NewChanges(connection),
	}
}

func newClient(t *testing.T) (*tasks.Client, *fakeEngine, *fakeArchive) {
	t.Helper()
	e, s := &fakeEngine{}, &fakeArchive{docs: make(map[string][]byte)}
	return tasks.NewClient(e, options(s, storagetest.NewServer(t).Client(t))), e, s
}

func create(req providers.VideoRequest) tasks.Create {
	return tasks.Create{TokenID: "demo", TokenName: "demo", Group: "default", Format: providers.OpenAI, Request: req, IdempotencyKey: "k"}
}

// TestPrivateRequestReadsWithoutArchive: an input address with a signature keeps the request out of the history, and the
// task is answered as any other while the archive is away.
func TestPrivateRequestReadsWithoutArchive(t *testing.T) {
	t.Parallel()
	service, engine, shelf := newClient(t)
	made, err := service.Create(t.Context(), create(providers.VideoRequest{
		Model: "sora-2", Prompt: "a cat", Size: "1280x720", Metadata: json.RawMessage(`{"a":1}`),
		Inputs: []providers.Media{{URL: "https://example.com/a.png?sig=hush"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(engine.input), "hush") || strings.Contains(engine.memo(made.ID), "hush") {
		t.Error("the signature is in the history")
	}
	shelf.away = true
	got, err := service.Find(t.Context(), made.ID, "demo")
	if err != nil || got.Request.Prompt != "a cat" || got.Request.Size != "1280x720" || string(got.Request.Metadata) != `{"a":1}` {
		t.Errorf("got %+v, %v", got.Request, err)
	}
}

// TestLongPromptIsReadFromTheArchive: a process that did not create the task reads its long prompt from the archive. While the archive is
// unavailable, the task is returned without the prompt.
func TestLongPromptIsReadFromTheArchive(t *testing.T) {
	t.Parallel()
	for _, away := range []bool{false, true} {
		service, engine, shelf := newClient(t)
		prompt := strings.Repeat("meow ", 40_000)
		made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: prompt, Seconds: "8"}))
		if err != nil {
			t.Fatal(err)
		}
		if size := len(engine.memo(made.ID)) + len(engine.input); size > 4<<10 {
			t.Errorf("history and memo hold %d bytes of it", size)
		}
		shelf.away = away
		want := prompt
		if away {
			want = ""
		}
		other := tasks.NewClient(engine, service.Options())
		got, err := other.Find(t.Context(), made.ID, "demo")
		if err != nil || got.Request.Prompt != want || got.Seconds != "8" || got.Request.Model != "sora-2" {
			t.Errorf("archive away %v: prompt of %d bytes, %+v, %v", away, len(got.Request.Prompt), got.Seconds, err)
		}
	}
}

// TestCreateRefuses: a request that is too large or too deep for a task is refused.
func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	nested := `{"a":` + strings.Repeat("[", 9_997) + strings.Repeat("]", 9_997) + `}`
	cases := map[string]struct {
		req  providers.VideoRequest
		want providers.Kind
	}{
		"more than a document": {providers.VideoRequest{Model: "m", Prompt: strings.Repeat("x", archive.MaxDocument)}, providers.TooLarge},
		"nested metadata":      {providers.VideoRequest{Model: "m", Prompt: "p", Metadata: json.RawMessage(nested)}, providers.Invalid},
		"nested parameters":    {providers.VideoRequest{Model: "m", Prompt: "p", Extra: json.RawMessage(nested)}, providers.Invalid},
	}
	for name, c := range cases {
		service, engine, _ := newClient(t)
		_, err := service.Create(t.Context(), create(c.req))
		var fault *providers.Fault
		if !errors.As(err, &fault) || fault.Kind != c.want || engine.count() > 0 {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestCreateDoesNotWaitForTheArchive: if the store hangs, a create fails with 503 before a usual client gives up.
func TestCreateDoesNotWaitForTheArchive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, _, _ := newClient(t)
		began := time.Now()
		_, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "m", Inputs: []providers.Media{{Data: []byte("x")}}}))
		var fault *providers.Fault
		if !errors.As(err, &fault) || fault.Kind != providers.Overloaded || fault.RetryAfter <= 0 {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("waited %v", took)
		}
	})
}

// TestCreateTakesItsTokensTurn: each token has its own fairness key, within the length that Temporal accepts.
func TestCreateTakesItsTokensTurn(t *testing.T) {
	t.Parallel()
	const limit = 64 // bytes, Temporal's
	service, engine, _ := newClient(t)
	keys := make(map[string]bool)
	for i, token := range []string{"demo", strings.Repeat("a", 128), strings.Repeat("a", 127) + "b"} {
		in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"})
		in.TokenID, in.Weight = token, 3*i
		if _, err := service.Create(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if got, want := engine.turn.FairnessWeight, float32(max(1, 3*i)); got != want || engine.turn.PriorityKey != 0 {
			t.Errorf("got %+v, want weight %v", engine.turn, want)
		}
		if len(engine.turn.FairnessKey) > limit {
			t.Errorf("the key %q is too long", engine.turn.FairnessKey)
		}
		keys[engine.turn.FairnessKey] = true
	}
	if len(keys) != 3 || !keys["demo"] {
		t.Errorf("got keys %v", keys)
	}
}
