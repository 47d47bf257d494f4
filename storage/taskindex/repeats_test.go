package taskindex_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
)

// TestRetries: a retry has the task of the create before it, however often it comes; any other create has its own.
func TestRetries(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	retries := taskindex.NewRepeats(client)
	begin := func(id string, retry bool, want taskindex.Beginning) {
		t.Helper()
		if got, err := retries.Begin(ctx, "a", "h", id, retry, 0); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if _, err := retries.Last(ctx, "a", "h"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("nothing remembered: %v", err)
	}
	begin("video_1", false, taskindex.Beginning{TaskID: "video_1"})
	begin("video_2", true, taskindex.Beginning{TaskID: "video_1", Known: true})
	if got, err := retries.Last(ctx, "a", "h"); err != nil || got != "video_1" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, other := range [][2]string{{"b", "h"}, {"a", "i"}} {
		if _, err := retries.Last(ctx, other[0], other[1]); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%v: %v", other, err)
		}
	}
	// An SDK gives up after ten minutes and then comes again, and once more.
	for what, again := range map[string]func(){
		"recalled": func() { _, _ = retries.Last(ctx, "a", "h") },
		"repeated": func() { begin("video_3", true, taskindex.Beginning{TaskID: "video_1", Known: true}) },
	} {
		client.Expire(ctx, "mr:retry:a:h", time.Minute)
		again()
		if ttl := client.TTL(ctx, "mr:retry:a:h").Val(); ttl > 11*time.Minute || ttl < 10*time.Minute+30*time.Second {
			t.Errorf("%s: remembered for %v", what, ttl)
		}
	}
	// Three variations that are asked for at once are three.
	begin("video_4", false, taskindex.Beginning{TaskID: "video_4"})
	begin("video_5", false, taskindex.Beginning{TaskID: "video_5"})
	away := taskindex.NewRepeats(storagetest.Client(t, "redis://127.0.0.1:1"))
	if _, err := away.Begin(ctx, "a", "h", "video_1", false, 0); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	if err := away.Note(ctx, "a", "h", "video_1", true); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	if _, err := away.Last(ctx, "a", "h"); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("away: %v", err)
	}
}

// TestOpenNotes: each goes to one create of the same token and request, until that leaves it open again.
func TestOpenNotes(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	retries := taskindex.NewRepeats(client)
	note := func(id string, open bool) {
		t.Helper()
		if err := retries.Note(ctx, "a", "h", id, open); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	begin := func(token, want string) {
		t.Helper()
		n++
		id := fmt.Sprintf("video_new%d", n)
		own := want == ""
		if own {
			want = id
		}
		got, err := retries.Begin(ctx, token, "h", id, false, 0)
		if err != nil || got != (taskindex.Beginning{TaskID: want, Known: !own, Noted: !own}) {
			t.Errorf("got %+v, %v, want %s", got, err, want)
		}
	}
	note("video_1", true)
	note("video_2", true)
	begin("b", "")
	begin("a", "video_1")
	begin("a", "video_2")
	begin("a", "") // both are in progress
	note("video_1", true)
	begin("a", "video_1")
	note("video_1", false)
	note("video_2", false)
	begin("a", "")
	note("video_3", true)
	if got, err := retries.Begin(ctx, "a", "h", "video_x", true, 0); err != nil || got.TaskID == "video_x" || got.Noted {
		t.Errorf("a marked retry got %+v, %v, want the last create's", got, err)
	}
	for i := range 150 {
		note(fmt.Sprint("many", i), true)
	}
	if count := client.ZCard(ctx, "mr:retry-open:a:h").Val(); count != 100 {
		t.Errorf("%d notes of one request", count)
	}
	if ttl := client.TTL(ctx, "mr:retry-open:a:h").Val(); ttl <= 0 || ttl > 11*time.Minute {
		t.Errorf("stored for %v", ttl)
	}
}

// TestRetryBeforeItsFirstTry: a retry that comes first makes the task, and the first try, which wakes late, has it as well;
// a create that came after the retry, or at the same time, is another.
func TestRetryBeforeItsFirstTry(t *testing.T) {
	t.Parallel()
	retries := taskindex.NewRepeats(storagetest.Redis(t))
	n := 0
	begin := func(retry bool, age time.Duration) taskindex.Beginning {
		t.Helper()
		n++
		got, err := retries.Begin(t.Context(), "a", "h", fmt.Sprint("video_", n), retry, age)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	made := begin(true, 0)
	if made.Known {
		t.Errorf("got %+v, want a task of its own", made)
	}
	for what, age := range map[string]time.Duration{"a create after the retry": 0, "a create during the retry": 100 * time.Millisecond} {
		if got := begin(false, age); got.Known {
			t.Errorf("%s: got %+v", what, got)
		}
	}
	if got := begin(false, time.Hour); got.TaskID != made.TaskID || !got.Known {
		t.Errorf("the first try got %+v, want %s", got, made.TaskID)
	}
	if got := begin(false, time.Hour); got.Known {
		t.Errorf("another one got %+v as well", got)
	}
}

// TestFirstTryReachesRedisLate: the request of a first try waits on its way to Redis, in a process that stands still, and arrives after a
// retry has made the task.
func TestFirstTryReachesRedisLate(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	retries := taskindex.NewRepeats(client)
	client.AddHook(&onTheWay{do: func() {
		began := time.Now()
		if got, err := retries.Begin(t.Context(), "a", "h", "video_retry", true, 0); err != nil || got.TaskID != "video_retry" {
			t.Errorf("retry: %+v, %v", got, err)
		}
		const wait = 400 * time.Millisecond
		testwait.Eventually(t, "the retry is a while ago", time.Minute, func() bool { return time.Since(began) >= wait })
	}})
	got, err := retries.Begin(t.Context(), "a", "h", "video_first", false, 500*time.Millisecond)
	if want := (taskindex.Beginning{TaskID: "video_retry", Known: true}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestBeginIsOneScript: whatever the way to Redis takes, a create asks Redis once, so that no retry comes between two of its questions.
func TestBeginIsOneScript(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	retries := taskindex.NewRepeats(client)
	if _, err := retries.Begin(t.Context(), "a", "h", "video_first", false, 0); err != nil { // Redis knows the script and its time is known
		t.Fatal(err)
	}
	slow := new(slowWay)
	client.AddHook(slow)
	if got, err := retries.Begin(t.Context(), "a", "i", "video_other", false, 0); err != nil || got.TaskID != "video_other" {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := slow.n.Load(); n != 1 {
		t.Errorf("%d questions, want one", n)
	}
}

// slowWay counts commands, each of which is on its way for longer than a first try is older than its retry.
type slowWay struct {
	onTheWay

	n atomic.Int64
}

func (s *slowWay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.n.Add(1)
		<-time.NewTimer(400 * time.Millisecond).C
		return next(ctx, cmd)
	}
}

// onTheWay does something before the first command is sent.
type onTheWay struct {
	do   func()
	done atomic.Bool
}

func (o *onTheWay) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *onTheWay) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.done.CompareAndSwap(false, true) {
			o.do()
		}
		return next(ctx, cmd)
	}
}

func (o *onTheWay) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
