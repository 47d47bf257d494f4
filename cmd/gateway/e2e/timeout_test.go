package e2e_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// impatience is how long the HTTP client of TestClientTimesOut waits for an answer. Then its SDK asks again, which it
// does not do after a time-out of its own (option.WithRequestTimeout).
const impatience = time.Second

// TestClientTimesOut: an SDK that hears nothing of its create gives up and asks again by itself, without a key, and again.
// The task is one, wherever the first request stood when it was given up.
func TestClientTimesOut(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		redis   bool // the answers of Redis are held, else Temporal's
		towards bool // what the front sends is held, else what it is answered
		restart bool // Redis is killed in between
	}{
		"Temporal's answer is late":         {},
		"Temporal hears it late":            {towards: true},
		"Redis answers late":                {redis: true},
		"Redis hears it late":               {redis: true, towards: true},
		"Redis restarts":                    {restart: true},
		"Redis restarts, Temporal is late":  {restart: true, towards: true},
		"Redis restarts while it is waited": {redis: true, restart: true},
	}
	for name, c := range cases {
		if c.restart && !redisKeeps() {
			continue // the embedded one forgets, and a create without a key is protected by what it remembers
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			s.gateway(gatewayOptions{args: []string{"worker"}})
			temporal, redis := newGate(t, s.temporalAt), newGate(t, s.redisAt)
			front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, temporalAt: temporal.addr(), redisAt: redis.addr()})
			s.control.rule(map[string]any{"operation": "video.create", "action": "delay", "ms": 1000})
			gate := temporal
			if c.redis {
				gate = redis
			}
			var asked atomic.Int32
			transport := http.Transport{ResponseHeaderTimeout: impatience}
			t.Cleanup(transport.CloseIdleConnections)
			sdk := front.sdk(option.WithMaxRetries(10), option.WithHTTPClient(&http.Client{Transport: &transport}),
				option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
					asked.Add(1)
					return next(r)
				}))

			gate.hold(c.towards)
			var (
				video *openai.Video
				err   error
				group sync.WaitGroup
			)
			group.Go(func() {
				video, err = sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "asked again", Model: "sora-2-fast"})
			})
			again := func(n int32) {
				eventually(t, "the SDK asks again", readyTimeout, func() bool { return asked.Load() >= n })
			}
			again(2)
			if c.restart {
				s.redis.kill()
				again(3)
				s.startRedis()
				s.redis.ready(t)
			}
			again(asked.Load() + 1)
			gate.release()
			group.Wait()
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			front.completed(video.ID, crashTimeout)
			s.submittedOnce(1)
			if n := s.tasks(t.Context()); n != 1 {
				t.Errorf("%d tasks for one create that was asked %d times", n, asked.Load())
			}
		})
	}
}
