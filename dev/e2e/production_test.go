package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// phases is how many tasks are in each phase when a process is killed, and come while it is away.
const phases = 2

// siege is a gateway whose services are production's, and the tasks that it was given so far. Its front and worker are apart.
type siege struct {
	*stack.Split
	t     *testing.T
	tasks []besieged
	// loads numbers the loads, so that no two tasks have the same prompt.
	loads int
}

// besieged is one task.
type besieged struct{ id, prompt string }

func newSiege(t *testing.T) *siege {
	t.Helper()
	stack.NeedProduction(t)
	return &siege{Split: stack.NewSplit(stack.New(t)), t: t}
}

// round kills a process while tasks are submitted, polled and archived, creates more while it is away, and waits until all are
// completed: each with the bytes of its job, none submitted twice.
func (s *siege) round(name string, kill func()) {
	s.t.Helper()
	began := time.Now()
	s.loads++
	mark := fmt.Sprintf("%02d %s ", s.loads, name)
	s.Control.AddRule(map[string]any{"operation": "video.create", "contains": mark + "submitting", "action": "hang", "accept": true})
	s.Control.AddRule(map[string]any{"operation": "video.content", "contains": mark + "archiving", "action": "stall", "bytes": 1000})
	var polled []string
	for i := range phases {
		s.create("sora-2-pro", fmt.Sprint(mark, "submitting ", i))
		s.create("sora-2-fast", fmt.Sprint(mark, "archiving ", i))
		polled = append(polled, fmt.Sprint(mark, "polling ", i))
		s.create("sora-2-manual", polled[i])
	}
	testwait.Eventually(s.t, "tasks are in every phase", stack.TaskTimeout, func() bool {
		ready := 0
		for _, job := range s.Control.Jobs() {
			switch {
			case !slices.ContainsFunc(s.tasks[len(s.tasks)-3*phases:], func(b besieged) bool { return b.prompt == job.Prompt }):
			case job.Model == "sora-2-pro", job.Model == "sora-2-manual" && job.Polls > 0, job.Model == "sora-2-fast" && job.Downloads > 0:
				ready++
			}
		}
		return ready == 3*phases
	})
	kill()
	var group sync.WaitGroup
	made := make([]besieged, phases)
	for i := range phases {
		group.Go(func() { made[i] = s.make("sora-2-fast", fmt.Sprint(mark, "while away ", i)) })
	}
	s.Control.Clear()
	for _, prompt := range polled {
		s.Control.Drive(s.Control.Job(prompt).ID, "completed", 100)
	}
	group.Wait()
	s.tasks = append(s.tasks, made...)
	for _, task := range s.tasks[len(s.tasks)-4*phases:] {
		s.Front.AwaitCompleted(task.id, stack.CrashTimeout)
		s.sameBytes(task)
	}
	s.WantSubmittedOnce(len(s.tasks))
	s.t.Logf("%s: %v", name, time.Since(began).Round(time.Second))
}

func (s *siege) create(model, prompt string) { s.tasks = append(s.tasks, s.make(model, prompt)) }

// make asks for a task until it is answered, as a client with a key does.
func (s *siege) make(model, prompt string) besieged {
	sdk := s.Front.SDK(option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", prompt), option.WithRequestTimeout(stack.EndTimeout))
	var (
		video *openai.Video
		err   error
	)
	if !testwait.InTime(s.t, stack.CrashTimeout, func() bool {
		video, err = sdk.Videos.New(s.t.Context(), openai.VideoNewParams{Prompt: prompt, Model: openai.VideoModel(model)})
		return err == nil
	}) {
		s.t.Errorf("create %q: %v", prompt, err)
		return besieged{prompt: prompt}
	}
	return besieged{id: video.ID, prompt: prompt}
}

// sameBytes compares a task's video with that of its own job.
func (s *siege) sameBytes(task besieged) {
	s.t.Helper()
	got := s.Front.Call(s.t, stack.Request{Path: "/v1/videos/" + task.id + "/content", Token: stack.Token})
	sum := sha256.Sum256(got.Body)
	job := s.Control.Job(task.prompt)
	if job == nil || job.SHA256 != hex.EncodeToString(sum[:]) {
		s.t.Errorf("%q: got %d bytes, status %d, which are not those of its job %+v", task.prompt, len(got.Body), got.Status, job)
	}
}

// TestKillProduction: tasks survive a kill of each process of Temporal, of its database and of the store.
func TestKillProduction(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	for _, victim := range []struct {
		name string
		of   *stack.Process
	}{
		{"postgres", s.Temporal},
		{"history-1", s.Temporal},
		{"history-2", s.Temporal},
		{"matching", s.Temporal},
		{"frontend", s.Temporal},
		{"worker", s.Temporal},
		{"minio", s.S3},
	} {
		before := victim.of.Unit(t, victim.name)
		s.round(victim.name, func() { victim.of.KillUnit(t, victim.name) })
		victim.of.AwaitUnit(t, victim.name, before)
	}
}

// TestFailover: tasks survive a failover of Redis. The test kills the primary twice, so that each of the two servers replaces the other,
// and then all of Redis: what was written after a failover is there after its restart.
func TestFailover(t *testing.T) {
	t.Parallel()
	s := newSiege(t)
	for _, primary := range []string{"redis-1", "redis-2"} {
		before := s.Redis.Unit(t, primary)
		s.round(primary, func() { s.Redis.KillUnit(t, primary) })
		redis := s.RedisClient("")
		testwait.Eventually(t, "another primary", stack.ReadyTimeout, func() bool {
			return redis.Set(t.Context(), "after", primary, 0).Err() == nil
		})
		s.Redis.AwaitUnit(t, primary, before)
		testwait.Eventually(t, "the one that was killed follows", stack.ReadyTimeout, func() bool {
			text, err := redis.Info(t.Context(), "replication").Result()
			return err == nil && strings.Contains(text, "state=online")
		})
	}
	// Its file gets a write at once, or within two seconds where the disk is busy with what came before.
	redis := s.RedisClient("")
	testwait.Eventually(t, "the last write is in the file", stack.ReadyTimeout, func() bool {
		text, err := redis.Info(t.Context(), "persistence").Result()
		return err == nil && strings.Contains(text, "aof_buffer_length:0\r") && strings.Contains(text, "aof_pending_bio_fsync:0\r")
	})
	s.Redis.Kill()
	s.StartRedis()
	s.Redis.AwaitReady(t)
	if got, err := s.RedisClient("").Get(t.Context(), "after").Result(); got != "redis-2" || err != nil {
		t.Errorf("got %q %v", got, err)
	}
}
