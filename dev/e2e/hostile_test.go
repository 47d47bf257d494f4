package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
)

const (
	// honestRate is how many calls a second the honest client of TestHostileTenant makes.
	honestRate = 50
	// hostiles is how many requests of each attack are in progress at a time.
	hostiles = 4
	// hostileKey is the hostile token's.
	hostileKey = "sk-hostile"
	// endless is a model whose answers have more events than fit into a connection.
	endless = "gpt-5.2-100000chunks"
)

// TestHostileTenant: while one token floods the gateway, sends huge and costly bodies, asks for unknown ids, leaves answers unread and
// provokes refusals of the upstreams, another token makes 50 calls a second with the same models. None of its answers changes.
func TestHostileTenant(t *testing.T) {
	t.Parallel()
	calls := 3 * honestRate
	if stack.IsFull() {
		calls = 20 * honestRate
	}
	s := stack.Shared(t, unpaced)
	slow := fmt.Sprintf(
		"  - {name: slow, vendor: openai, base_url: 'http://%s/openai/v1', keys: [sk-upstream-slow], models: {%s: , sora-2-long: }}\n",
		s.UpstreamAt, endless)
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.Pairs("gpt-5.5: ", "") + slow,
		Tokens:   "  - {name: hostile, key: " + hostileKey + ", group: default, models: [\"*\"]}\n",
	})
	provoked := provocations(s)

	ctx, stop := context.WithCancel(t.Context())
	var attacks sync.WaitGroup
	tenant := hostile{g: g, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: hostiles}}, provoked: provoked}
	for _, attack := range tenant.attacks() {
		for range hostiles {
			attacks.Go(func() {
				for ctx.Err() == nil {
					attack(ctx)
				}
			})
		}
	}
	t.Cleanup(attacks.Wait)
	t.Cleanup(stop)

	var honest sync.WaitGroup
	var wrong atomic.Int64
	pace := time.NewTicker(time.Second / honestRate)
	defer pace.Stop()
	for n := range calls {
		<-pace.C
		honest.Go(func() {
			if fault := honestCall(t.Context(), g, n); fault != "" && wrong.Add(1) <= 10 {
				t.Errorf("honest call %d: %s", n, fault)
			}
		})
	}
	honest.Wait()
	stop()
	attacks.Wait()
	sent := tenant.sent.Load()
	if wrong.Load() > 0 {
		t.Errorf("%d of %d honest answers changed", wrong.Load(), calls)
	}
	if sent < int64(calls) {
		t.Errorf("the hostile token sent %d requests with %d honest ones: nothing is proven", sent, calls)
	}
	t.Logf("%d honest calls with %d hostile requests, at most %d MB", calls, sent, g.PeakMemory(t)>>20)
}

// honestCall makes one call of a format at a model, and returns what is wrong with its answer.
func honestCall(ctx context.Context, g *stack.Gateway, n int) (fault string) {
	text := fmt.Sprintf("honest %d", n)
	model := []string{"gpt-5.2", "claude-sonnet-4-5", "gemini-2.5-flash"}[n/2%3]
	stream := n%2 == 0
	messages := []any{map[string]any{"role": "user", "content": text}}
	path, body := "/v1/chat/completions", map[string]any{"model": model, "stream": stream, "messages": messages}
	if n%4 > 1 {
		path, body["max_tokens"] = "/v1/messages", 100
	}
	answer, err := g.Send(ctx, stack.Request{
		Method: http.MethodPost, Path: path, Token: stack.Token + "-other", Body: body,
		Header: map[string]string{"Anthropic-Version": "2023-06-01"},
	})
	switch {
	case err != nil:
		return err.Error()
	case answer.Status != http.StatusOK:
		return fmt.Sprintf("%s of %s: %d %s", path, model, answer.Status, answer.Body)
	}
	for word := range strings.FieldsSeq("You said: " + text) {
		if !strings.Contains(string(answer.Body), word) {
			return fmt.Sprintf("%s of %s lacks %q: %s", path, model, word, answer.Body)
		}
	}
	if stream && !strings.Contains(string(answer.Body), "[DONE]") && !strings.Contains(string(answer.Body), "message_stop") {
		return fmt.Sprintf("%s of %s was cut: %s", path, model, answer.Body)
	}
	return ""
}

// provocations makes the upstreams refuse calls by a text in them, and returns the texts. No answer names the key or the account's
// balance: those are facts about the channel, which end its use for all tokens.
func provocations(s *stack.Stack) (texts []string) {
	for _, rule := range []map[string]any{
		{"action": "status", "status": 429, "headers": map[string]string{"Retry-After": "900"}},
		{"action": "status", "status": 402, "body": `{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens."}}`},
		{"action": "status", "status": 401, "body": `{"error":{"message":"Missing scopes: model.request.","type":"invalid_request_error"}}`},
		{"action": "status", "status": 403},
		{"action": "status", "status": 404},
		{"action": "status", "status": 500},
		{"action": "status", "status": 529},
		{"action": "drop"},
		{"action": "garbage"},
		{"action": "cut", "chunks": 1},
	} {
		text := fmt.Sprintf("provoke %v %v", rule["action"], rule["status"])
		texts = append(texts, text)
		rule["contains"] = text
		s.Control.AddRule(rule)
	}
	return texts
}

// hostile is the client of the hostile token.
type hostile struct {
	g        *stack.Gateway
	client   *http.Client
	provoked []string
	sent     atomic.Int64
}

// attacks each send one request, and take no notice of the answer.
func (h *hostile) attacks() []func(context.Context) {
	models := []string{"gpt-5.2", "claude-sonnet-4-5", "gemini-2.5-flash"}
	chat := func(text string) map[string]any {
		return map[string]any{
			"model": models[rand.IntN(len(models))], "stream": rand.IntN(2) == 0, "messages": []any{map[string]any{"role": "user", "content": text}},
		}
	}
	members := make(map[string]any)
	for n := range 32000 {
		members[fmt.Sprintf("member_%d", n)] = n
	}
	return []func(context.Context){
		func(ctx context.Context) { h.post(ctx, "/v1/chat/completions", chat("flood")) },
		func(ctx context.Context) {
			h.post(ctx, "/v1/chat/completions", chat(h.provoked[rand.IntN(len(h.provoked))]))
		},
		func(ctx context.Context) {
			h.post(ctx, "/v1/chat/completions", chat(strings.Repeat("huge ", 4<<20))) // 20 MB
		},
		func(ctx context.Context) {
			body := chat("members")
			maps.Copy(body, members)
			h.post(ctx, "/v1/chat/completions", body)
		},
		func(ctx context.Context) {
			body := chat("calls")
			body["messages"] = manyCalls(2000)
			h.post(ctx, "/v1/chat/completions", body)
		},
		func(ctx context.Context) {
			id := fmt.Sprintf("%026d", rand.Uint64())
			for _, path := range []string{
				"/v1/videos/video_", "/v1/responses/resp_", "/v1/files/file-", "/v1/batches/batch_",
				"/v1beta/operations/",
			} {
				h.send(ctx, http.MethodGet, path+id, nil)
			}
		},
		func(ctx context.Context) {
			h.post(ctx, "/v1/chat/completions", map[string]any{"model": fmt.Sprintf("unknown-%d", rand.Uint64())})
		},
		func(ctx context.Context) {
			h.post(ctx, "/v1/videos", map[string]any{"model": "sora-2-long", "prompt": fmt.Sprint("hostile ", rand.Uint64())})
		},
		h.slowly,
	}
}

// manyCalls is a conversation with n tool calls.
func manyCalls(n int) (messages []any) {
	messages = append(messages, map[string]any{"role": "user", "content": "calls"})
	for i := range n {
		id := fmt.Sprintf("call_%d", i)
		messages = append(messages,
			map[string]any{"role": "assistant", "tool_calls": []any{
				map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "f", "arguments": "{}"}},
			}},
			map[string]any{"role": "tool", "tool_call_id": id, "content": "x"})
	}
	return messages
}

func (h *hostile) post(ctx context.Context, path string, body any) {
	doc, _ := json.Marshal(body) // texts and numbers
	h.send(ctx, http.MethodPost, path, strings.NewReader(string(doc)))
}

func (h *hostile) send(ctx context.Context, method, path string, body io.Reader) {
	req, err := http.NewRequestWithContext(ctx, method, h.g.URL()+path, body)
	if err != nil {
		return
	}
	h.sent.Add(1)
	req.Header.Set("Authorization", "Bearer "+hostileKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, int64(rand.IntN(1<<16)))) // it leaves long answers early
	_ = resp.Body.Close()
}

// slowly leaves a long stream unread, with half of another request after it, until the attack ends or the gateway closes the connection.
func (h *hostile) slowly(ctx context.Context) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", h.g.Address)
	if err != nil {
		return
	}
	defer conn.Close()
	h.sent.Add(1)
	body := `{"model": "` + endless + `", "stream": true, "messages": [{"role": "user", "content": "slow"}]}`
	_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%sPOST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 1000000\r\n\r\n{", hostileKey, len(body),
		body)
	<-ctx.Done()
}
