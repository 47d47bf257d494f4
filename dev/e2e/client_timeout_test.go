package e2e_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// impatience is how long the HTTP client of TestClientTimesOut waits for an answer. Then its SDK asks again, which it
// does not do after a time-out of its own (option.WithRequestTimeout).
const impatience = time.Second

// TestClientTimesOut: an SDK that hears nothing of its create gives up and asks again by itself, without a key, and again.
// The task is one, wherever the first request stood when it was given up.
func TestClientTimesOut(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	cases := map[string]struct {
		redis   bool            // the answers of Redis are held, else Temporal's
		what    stack.Direction // what the front sends is held, or what it is answered
		restart bool            // Redis is killed in between
	}{
		"Temporal's answer is late":         {what: stack.Back},
		"Temporal hears it late":            {what: stack.Towards},
		"Redis answers late":                {redis: true, what: stack.Back},
		"Redis hears it late":               {redis: true, what: stack.Towards},
		"Redis restarts":                    {restart: true, what: stack.Back},
		"Redis restarts, Temporal is late":  {restart: true, what: stack.Towards},
		"Redis restarts while it is waited": {redis: true, restart: true, what: stack.Back},
	}
	for name, c := range cases {
		if c.restart && !stack.RedisKeeps() {
			continue // the embedded one forgets, and a create without a key is protected by what it remembers
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Shared(t)
			if c.restart {
				s.OwnRedis()
			}
			s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
			temporal, redis := stack.NewLink(t, s.TemporalAt), stack.NewLink(t, s.RedisAt)
			front := s.StartGateway(stack.GatewayOptions{
				Args: []string{"serve", "--worker=false"}, TemporalAt: temporal.Addr(),
				RedisAt: redis.Addr(),
			})
			s.Control.AddRule(map[string]any{"operation": "video.create", "action": "delay", "ms": 1000})
			held := temporal
			if c.redis {
				held = redis
			}
			var asked atomic.Int32
			transport := http.Transport{ResponseHeaderTimeout: impatience}
			t.Cleanup(transport.CloseIdleConnections)
			sdk := front.SDK(option.WithMaxRetries(10), option.WithHTTPClient(&http.Client{Transport: &transport}),
				option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
					asked.Add(1)
					return next(r)
				}))

			held.Hold(c.what)
			var (
				video *openai.Video
				err   error
				group sync.WaitGroup
			)
			group.Go(func() {
				video, err = sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "asked again", Model: "sora-2-fast"})
			})
			again := func(n int32) {
				testwait.Eventually(t, "the SDK asks again", stack.ReadyTimeout, func() bool { return asked.Load() >= n })
			}
			again(2)
			if c.restart {
				s.Redis.Kill()
				again(3)
				s.StartRedis()
				s.Redis.AwaitReady(t)
			}
			again(asked.Load() + 1)
			held.Restore()
			group.Wait()
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			front.AwaitCompleted(video.ID, stack.CrashTimeout)
			s.WantSubmittedOnce(1)
			if n := s.CountTasks(t.Context()); n != 1 {
				t.Errorf("%d tasks for one create that was asked %d times", n, asked.Load())
			}
		})
	}
}
