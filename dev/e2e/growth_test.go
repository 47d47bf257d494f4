package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/dev/e2e/stack"
)

// growingBody is a call whose body has n parts of a kind.
type growingBody struct {
	path   string
	status int
	body   func(n int) map[string]any
}

// growingBodies are calls of each kind that looks something up, and of those that only pass.
func growingBodies() map[string]growingBody {
	said := map[string]any{"role": "user", "content": "Hello."}
	repeated := func(n int, one func(i int) any) (all []any) {
		for i := range n {
			all = append(all, one(i))
		}
		return all
	}
	tools := func(n int) []any { return manyCalls(n) }
	return map[string]growingBody{
		"turns": {"/v1/chat/completions", http.StatusOK, func(n int) map[string]any {
			return map[string]any{"model": "gpt-5.2", "messages": repeated(n, func(int) any { return said })}
		}},
		"tool calls to Claude": {"/v1/chat/completions", http.StatusOK, func(n int) map[string]any {
			return map[string]any{"model": "claude-sonnet-4-5", "messages": tools(n)}
		}},
		"tool calls to Gemini": {"/v1/chat/completions", http.StatusOK, func(n int) map[string]any {
			return map[string]any{"model": "gemini-3-pro", "messages": tools(n)}
		}},
		"texts to embed": {"/v1/embeddings", http.StatusOK, func(n int) map[string]any {
			return map[string]any{"model": "text-embedding-3-small", "input": repeated(n, func(i int) any { return fmt.Sprint("text ", i) })}
		}},
		"members": {"/v1/chat/completions", http.StatusOK, func(n int) map[string]any {
			body := map[string]any{"model": "glm-5", "messages": []any{said}}
			for i := range n {
				body[fmt.Sprintf("member_%d", i)] = i
			}
			return body
		}},
		"references": {"/v1/responses", http.StatusNotFound, func(n int) map[string]any {
			return map[string]any{"model": "gpt-5.2", "input": repeated(n, func(i int) any {
				return map[string]any{"type": "item_reference", "id": fmt.Sprintf("msg_%048d", i)}
			})}
		}},
	}
}

// TestRequestsDoNotGrow: a call whose body has a hundred parts costs as many round trips to Redis as one with two, and a create as many
// starts at Temporal. Five reads of Redis a call are allowed: Redis reads a long request in pieces, and the process has requests of its
// own.
func TestRequestsDoNotGrow(t *testing.T) {
	t.Parallel()
	if !stack.RedisKeeps() {
		t.Skip("needs redis-server")
	}
	const calls, few, many, margin = 20, 2, 100, 5
	s := stack.Shared(t, unpaced).OwnRedis()
	front := stack.NewTemporalFront(t, s.TemporalAt, stack.FrontOptions{})
	g := s.StartGateway(stack.GatewayOptions{
		Args: []string{"serve", "--worker=false"}, TemporalAt: front.Address,
		Channels: s.Pairs("gpt-5.5: ", "") + s.Channel("videos", "sk-upstream-videos", ""),
	})
	redis := s.RedisClient("")
	for name, kind := range growingBodies() {
		used := make(map[int]int)
		for _, n := range []int{few, many} {
			before := redisReads(t, redis)
			for range calls {
				answer := g.Call(t, stack.Request{Method: http.MethodPost, Path: kind.path, Body: kind.body(n)})
				if answer.Status != kind.status {
					t.Fatalf("%s: %d %.300s", name, answer.Status, answer.Body)
				}
			}
			used[n] = redisReads(t, redis) - before
		}
		if used[many] > used[few]+margin*calls {
			t.Errorf("%s: %d reads of Redis for %d calls with %d parts, %d with %d", name, used[many], calls, many, used[few], few)
		}
		t.Logf("%s: %d and %d reads of Redis", name, used[few], used[many])
	}
	const start = workflowService + "StartWorkflowExecution"
	for prompt, size := range map[string]int{"short": 1, "long": 4000} {
		before := front.Calls(start)
		for n := range calls {
			g.Create(t.Context(), "sora-2-manual", strings.Repeat(prompt+strconv.Itoa(n)+" ", size))
		}
		if starts := front.Calls(start) - before; starts != calls {
			t.Errorf("%s prompts: %d starts for %d creates", prompt, starts, calls)
		}
	}
}

// redisReads counts how often Redis has read from a connection: once for what a client sends at a time, some KB at most.
func redisReads(t *testing.T, client redis.UniversalClient) int {
	t.Helper()
	stats, err := client.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(stats, "total_reads_processed:")
	text, _, _ := strings.Cut(rest, "\r")
	count, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
