package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows/tasks"
)

// staging is a client with everything that a create may meet.
type staging struct {
	tasks   *tasks.Client
	engine  *fakeEngine
	archive *storagetest.MemoryArchive
	index   *taskindex.Index
	budgets *ledger.Budgets
	puts    atomic.Int64
}

func newStaging(t *testing.T, connection redis.UniversalClient, over func(*fakeEngine) client.Client) *staging {
	t.Helper()
	s := &staging{
		engine: &fakeEngine{}, archive: storagetest.NewMemoryArchive(), index: taskindex.New(connection, 0),
		budgets: ledger.NewBudgets(connection, 0),
	}
	s.archive.Fail = func(operation, _ string) error {
		if operation == "put" {
			s.puts.Add(1)
		}
		return nil
	}
	var temporal client.Client = s.engine
	if over != nil {
		temporal = over(s.engine)
	}
	opts := options(s.archive, connection)
	opts.Budgets, opts.Prices = s.budgets, videoPrices(t)
	s.tasks = tasks.NewClient(temporal, opts)
	return s
}

// large is a create with an image and a request that go to the archive.
func large() tasks.Create {
	in := create(providers.VideoRequest{
		Model: "sora-2", Prompt: strings.Repeat("long ", 20_000), Seconds: "8",
		Inputs: []providers.Media{{Data: []byte("pixels"), ContentType: "image/png"}},
	})
	in.Budget, in.MaxTasks = 1, 1
	return in
}

// fakeNothing fails the test where something of a create is left.
func (s *staging) nothing(t *testing.T) {
	t.Helper()
	if keys := s.archive.Keys(); len(keys) > 0 {
		t.Errorf("the archive has %v", keys)
	}
	if open, _, err := s.index.Unfinished(t.Context(), "demo", 0, 10); err != nil || len(open) > 0 {
		t.Errorf("unfinished are %v, %v", open, err)
	}
	if balance, err := s.budgets.Balance(t.Context(), "demo"); err != nil || balance != (ledger.Balance{}) {
		t.Errorf("balance %+v, %v", balance, err)
	}
}

// TestCreateJudgesFirst: a create that is refused has put nothing into the archive, not for a moment.
func TestCreateJudgesFirst(t *testing.T) {
	t.Parallel()
	deep := json.RawMessage(`{"a":` + strings.Repeat("[", 9_997) + strings.Repeat("]", 9_997) + `}`)
	for name, tc := range map[string]struct {
		change func(in *tasks.Create)
		want   providers.Kind
	}{
		"depth":               {func(in *tasks.Create) { in.Request.Metadata = deep }, providers.Invalid},
		"size":                {func(in *tasks.Create) { in.Request.Prompt = strings.Repeat("x", archive.MaxDocument) }, providers.TooLarge},
		"webhook":             {func(in *tasks.Create) { in.Request.WebhookURL = "https://example.com/hook" }, providers.Invalid},
		"source":              {func(in *tasks.Create) { in.Request.RemixOf = tasks.RandomID() }, providers.NotFound},
		"budget":              {func(in *tasks.Create) { in.Budget = 0.1 }, providers.Quota},
		"budget, without key": {func(in *tasks.Create) { in.Budget, in.IdempotencyKey = 0.1, "" }, providers.Quota},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t, storagetest.Redis(t), nil)
			in := large()
			tc.change(&in)
			if _, err := s.tasks.Create(t.Context(), in); kindOf(err) != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if n := s.puts.Load(); n > 0 || s.engine.count() > 0 {
				t.Errorf("%d objects were written, %d tasks", n, s.engine.count())
			}
			s.nothing(t)
		})
	}
	t.Run("unfinished tasks", func(t *testing.T) {
		t.Parallel()
		s := newStaging(t, storagetest.Redis(t), nil)
		mustCreate(t, s.tasks, large())
		before, next := s.puts.Load(), large()
		next.IdempotencyKey = "next"
		if _, err := s.tasks.Create(t.Context(), next); kindOf(err) != providers.RateLimited || s.puts.Load() != before {
			t.Errorf("got %v after %d writes, want a refusal after %d", err, s.puts.Load(), before)
		}
	})
}

// TestCreateTakesBack: whatever ends a create before its task begins leaves nothing of it behind.
func TestCreateTakesBack(t *testing.T) {
	t.Parallel()
	const leave = "the client leaves"
	for name, fails := range map[string]func(operation, key string) error{
		"the archive goes away": func(operation, key string) error {
			if operation == "put" && strings.HasSuffix(key, "/request.json") {
				return storage.ErrUnavailable
			}
			return nil
		},
		leave: nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t, storagetest.Redis(t), nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := providers.Overloaded
			if s.archive.Fail = fails; name == leave {
				want = providers.Canceled
				s.archive.Fail = func(operation, key string) error {
					if operation == "put" && strings.HasSuffix(key, "/request.json") {
						cancel()
						return ctx.Err()
					}
					return nil
				}
			}
			if _, err := s.tasks.Create(ctx, large()); kindOf(err) != want || s.engine.count() > 0 {
				t.Errorf("got %v and %d tasks, want %s", err, s.engine.count(), want)
			}
			s.nothing(t)
		})
	}
}

// fakeDeafEngine starts what it is asked to, where it starts, and answers with an error.
type fakeDeafEngine struct {
	*fakeEngine

	starts bool
	answer error
}

func (e *fakeDeafEngine) ExecuteWorkflow(
	ctx context.Context, opts client.StartWorkflowOptions, workflow any, args ...any,
) (client.WorkflowRun, error) {
	if e.starts {
		if _, err := e.fakeEngine.ExecuteWorkflow(ctx, opts, workflow, args...); err != nil {
			return nil, err
		}
	}
	return nil, e.answer
}

// TestCreateKeepsWhatItsTaskNeeds: where the start got through, or may have, the task has its inputs, its money and its
// place on the list.
func TestCreateKeepsWhatItsTaskNeeds(t *testing.T) {
	t.Parallel()
	busy, away := serviceerror.NewResourceExhausted(0, "busy"), serviceerror.NewUnavailable("away")
	for name, tc := range map[string]struct {
		starts bool
		answer error
		want   providers.Kind // "" where the create is answered with its task
		kept   bool
	}{
		"an earlier try got through":      {true, busy, "", true},
		"no try got through":              {false, busy, providers.Overloaded, false},
		"started, the answer is lost":     {true, away, providers.Overloaded, true},
		"not started, the answer is lost": {false, away, providers.Overloaded, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaging(t, storagetest.Redis(t), func(e *fakeEngine) client.Client {
				return &fakeDeafEngine{fakeEngine: e, starts: tc.starts, answer: tc.answer}
			})
			task, err := s.tasks.Create(t.Context(), large())
			if kindOf(err) != tc.want || tc.want == "" && task.ID == "" {
				t.Errorf("got %+v, %v, want %q", task, err, tc.want)
			}
			if !tc.kept {
				s.nothing(t)
				return
			}
			if keys := s.archive.Keys(); len(keys) != 2 {
				t.Errorf("the archive has %v", keys)
			}
			if open, _, err := s.index.Unfinished(t.Context(), "demo", 0, 10); err != nil || len(open) != 1 {
				t.Errorf("unfinished are %v, %v", open, err)
			}
			if balance, err := s.budgets.Balance(t.Context(), "demo"); err != nil || balance.Reserved == 0 {
				t.Errorf("balance %+v, %v", balance, err)
			}
		})
	}
}

// TestCreateCopiesSources: a task has its own copy of an object that its request names, and none where that is gone.
func TestCreateCopiesSources(t *testing.T) {
	t.Parallel()
	s := newStaging(t, storagetest.Redis(t), nil)
	const object = "tasks/video_0/outputs/0"
	in := create(providers.VideoRequest{Model: "sora-2", Prompt: "p", Inputs: []providers.Media{{
		Role: providers.SourceVideo, Object: object, ContentType: "video/mp4", Size: 5, SHA256: "abc",
	}}})
	if _, err := s.tasks.Create(t.Context(), in); kindOf(err) != providers.NotFound || s.engine.count() > 0 {
		t.Fatalf("without the source: got %v and %d tasks", err, s.engine.count())
	}
	s.nothing(t)
	if _, err := s.archive.Put(t.Context(), object, strings.NewReader("video"), 5, archive.PutOptions{ContentType: "video/mp4"}); err != nil {
		t.Fatal(err)
	}
	made := mustCreate(t, s.tasks, in)
	var copies []string
	for _, key := range s.archive.Keys() {
		if strings.HasPrefix(key, "tasks/"+made.ID+"/") && strings.HasSuffix(key, "/inputs/abc") {
			copies = append(copies, key)
		}
	}
	if len(copies) != 1 {
		t.Fatalf("the archive has %v", s.archive.Keys())
	}
	content, err := s.archive.Open(t.Context(), copies[0])
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if got, err := io.ReadAll(content); err != nil || string(got) != "video" || content.Object().ContentType != "video/mp4" {
		t.Errorf("the copy is %q, %+v, %v", got, content.Object(), err)
	}
}

// patientArchive has the longest time that a create gives it for an upload.
type patientArchive struct {
	*storagetest.MemoryArchive

	allowed atomic.Int64
}

func (a *patientArchive) Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
	until, _ := ctx.Deadline()
	a.allowed.Store(int64(time.Until(until)))
	return a.MemoryArchive.Put(ctx, key, r, size, opts)
}

// TestStageTimeout: a create waits for a store that does not answer no longer than clients and proxies do; a large upload has more time.
func TestStageTimeout(t *testing.T) {
	t.Parallel()
	connection := storagetest.Redis(t)
	patient := &patientArchive{MemoryArchive: storagetest.NewMemoryArchive()}
	service := tasks.NewClient(&fakeEngine{}, options(patient, connection))
	for size, bounds := range map[int][2]time.Duration{1: {0, 8 * time.Second}, 92 << 20: {8 * time.Second, 30 * time.Second}} {
		in := create(providers.VideoRequest{Model: "sora-2", Inputs: []providers.Media{{Data: make([]byte, size)}}})
		in.IdempotencyKey = fmt.Sprint(size)
		mustCreate(t, service, in)
		if got := time.Duration(patient.allowed.Load()); got <= bounds[0] || got > bounds[1] {
			t.Errorf("%d bytes may take %s, want %s", size, got, bounds)
		}
	}
}
