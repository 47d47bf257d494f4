package e2e_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestBothBackEndsAway: while a gateway makes a task it loses Temporal and Redis at once, or the connections to both stay half open. Its
// client's SDK asks again, at another gateway. When both are back there is one task, paid once, whatever the SDK was answered.
func TestBothBackEndsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away    func(*stack.Link)
		started bool // Temporal has the start, whose answer is lost
	}{
		"cut after the start":     {(*stack.Link).Cut, true},
		"cut before the start":    {(*stack.Link).Cut, false},
		"frozen after the start":  {(*stack.Link).Freeze, true},
		"frozen before the start": {(*stack.Link).Freeze, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Shared(t)
			temporal, redis := stack.NewLink(t, s.TemporalAt), stack.NewLink(t, s.RedisAt)
			options := stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, TemporalAt: temporal.Addr(), RedisAt: redis.Addr()}
			lonely, other := s.StartGateway(options), s.StartGateway(stack.GatewayOptions{})
			client := http.Client{Transport: firstAt{lonely, &http.Transport{ResponseHeaderTimeout: 3 * time.Second}}}
			sdk := other.SDK(option.WithMaxRetries(3), option.WithHTTPClient(&client))
			held := stack.Towards
			if c.started {
				held = stack.Back
			}
			temporal.Hold(held)
			var (
				group sync.WaitGroup
				video *openai.Video
				err   error
			)
			group.Go(func() {
				video, err = sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: name, Model: "sora-2-fast"})
			})
			if c.started {
				s.AwaitTasks(1)
			} else {
				awaitBytes(t, temporal, held)
			}
			c.away(redis)
			c.away(temporal)
			group.Wait()
			temporal.Restore()
			redis.Restore()
			if err == nil {
				other.AwaitCompleted(video.ID, stack.CrashTimeout)
				s.AwaitTasks(1) // it is visible somewhat later
			} else {
				t.Logf("the SDK is answered %v", err)
			}
			made := s.CountTasks(t.Context())
			// The gateway that was away works again, and what waited in its connections has arrived.
			again := lonely.Create(t.Context(), "sora-2-fast", name+", again")
			lonely.AwaitCompleted(again.ID, stack.CrashTimeout)
			s.AwaitTasks(made + 1)
			if n := s.CountTasks(t.Context()); n > 2 || err == nil && (n != 2 || made != 1) {
				t.Errorf("%d tasks for two creates, %d before the second; the first was answered %v", n, made, err)
			}
			s.Control.Job(name) // fails the test if there are two
		})
	}
}

// awaitBytes returns when something waits in a link.
func awaitBytes(t *testing.T, l *stack.Link, d stack.Direction) {
	t.Helper()
	testwait.Eventually(t, "bytes wait in the link", stack.ReadyTimeout, func() bool { return l.Waiting(d) > 0 })
}
