package e2e_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	// sampledTrace, callTrace and unsampledTrace are a client's; above is its own span.
	sampledTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	callTrace      = "5bf92f3577b34da6a3ce929d0e0e4737"
	unsampledTrace = "6bf92f3577b34da6a3ce929d0e0e4738"
	above          = "00f067aa0ba902b7"
	secretPrompt   = "the prompt that nobody else may read"
)

// traceparent puts a request into a client's trace.
func traceparent(trace, flags string) option.RequestOption {
	return option.WithHeader("Traceparent", "00-"+trace+"-"+above+"-"+flags)
}

// TestTrace follows a video task from the create to the webhook, through a gateway, a worker, upstream and receiver, in
// the one trace of the client.
func TestTrace(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	c, hook := newCollector(t), newHook(t, nil)
	s.traced(c)
	options := hooks(hook.URL + "/secret-path")
	options.channels = s.channel("first", "sk-upstream-first", "    priority: 10\n") + s.channel("second", "sk-upstream-second", "")
	options.args = []string{"serve", "--worker=false"}
	front := s.gateway(options)
	options.args = []string{"worker"}
	s.gateway(options)
	hooked := option.WithAPIKey(hookToken)

	unseen := front.create(t.Context(), "sora-2-fast", secretPrompt+" unseen", hooked, traceparent(unsampledTrace, "00"))
	hook.verified(t, 1, unseen.ID)
	video := front.create(t.Context(), "sora-2-fast", secretPrompt, hooked, traceparent(sampledTrace, "01"))
	hook.verified(t, 2, video.ID)

	t.Run("task", func(t *testing.T) {
		trace := c.awaits(t, sampledTrace, "POST /v1/videos", "RunWorkflow:Video", "RunWorkflow:Notify", "RunActivity:Settle")
		t.Logf("the trace of %s:\n%s", video.ID, tree(trace))
		const task = "serve POST /v1/videos > serve StartWorkflow:Video > worker RunWorkflow:Video"
		for name, want := range map[string]string{
			"RunActivity:Admit":  task + " > worker RunActivity:Admit",
			"submit sora-2-fast": task + " > worker RunActivity:SubmitClaimed > worker submit sora-2-fast",
			"poll sora-2-fast":   task + " > worker RunActivity:Poll > worker poll sora-2-fast",
			"open sora-2-fast":   task + " > worker RunActivity:Archive > worker open sora-2-fast",
			"RunActivity:Settle": task + " > worker RunActivity:Settle",
			"POST webhook":       task + " > worker RunWorkflow:Notify > worker RunActivity:Deliver > worker POST webhook",
		} {
			if got := path(trace, name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		for _, one := range trace {
			parent := fmt.Sprintf("%x", one.GetParentSpanId())
			if one.GetName() == "POST /v1/videos" && parent != above {
				t.Errorf("the request's parent is %s, want the client's span %s", parent, above)
			}
			if one.GetName() != "POST webhook" && one.GetName() != "RunWorkflow:Notify" && one.GetName() != "RunActivity:Deliver" && strings.HasPrefix(one.GetName(), "Run") &&
				text(one.GetAttributes(), "gateway.task") != video.ID {
				t.Errorf("%s names task %q", one.GetName(), text(one.GetAttributes(), "gateway.task"))
			}
		}
	})
	t.Run("same history", func(t *testing.T) {
		temporal := s.temporalClient()
		with, without := history(t.Context(), t, temporal, video.ID), history(t.Context(), t, temporal, unseen.ID)
		if got, want := len(with.GetEvents()), len(without.GetEvents()); got != want {
			t.Errorf("a traced task has %d history events, another %d", got, want)
		}
		for _, event := range without.GetEvents() {
			if bytes.Contains([]byte(event.String()), []byte("_tracer-data")) {
				t.Errorf("a task outside of a trace carries one: %v", event)
			}
		}
		s.record("traced", video.ID)
	})
	t.Run("fail-over", func(t *testing.T) {
		s.control.rule(map[string]any{"operation": "chat", "key": "sk-upstream-first", "action": "status", "status": 500, "times": 1})
		sdk := front.sdk(option.WithMaxRetries(0))
		_, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(secretPrompt)},
		}, traceparent(callTrace, "01"))
		if err != nil {
			t.Fatal(err)
		}
		trace := c.awaits(t, callTrace, "POST /v1/chat/completions")
		t.Logf("the trace of a call:\n%s", tree(trace))
		var got []string
		for _, one := range trace {
			if one.GetName() == "chat gpt-4o" {
				got = append(got, fmt.Sprint(text(one.GetAttributes(), "gateway.attempt"), " ", text(one.GetAttributes(), "gateway.channel"), " ",
					text(one.GetAttributes(), "http.response.status_code"), " ", len(one.GetEvents()), " ", path(trace, one.GetName())))
			}
		}
		const within = "serve POST /v1/chat/completions > serve chat gpt-4o"
		if want := []string{"1 first 500 0 " + within, "2 second 200 1 " + within}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got attempts %q, want %q", got, want)
		}
	})

	if trace := c.trace(unsampledTrace); len(trace) != 0 { // both processes have sent later spans by now
		t.Errorf("the client did not want its trace, it came:\n%s", tree(trace))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, secret := range []string{secretPrompt, hookToken, token, "sk-upstream", hookSecret, "secret-path", accessKey + "-", secretKey} {
		if bytes.Contains(c.raw.Bytes(), []byte(secret)) {
			t.Errorf("%q stands in the exported spans", secret)
		}
	}
	for _, request := range hook.requests() {
		if request.header.Get("Traceparent") != "" {
			t.Errorf("the receiver got %v", request.header)
		}
	}
}

// TestTraceOutlivesWorker: a task that another worker takes over has one span, which those of both workers are within.
func TestTraceOutlivesWorker(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	c := newCollector(t)
	s.traced(c)
	front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}})
	worker := s.gateway(gatewayOptions{args: []string{"worker"}})
	video := front.create(t.Context(), "sora-2-manual", "survivor", traceparent(sampledTrace, "01"))
	c.awaits(t, sampledTrace, "submit sora-2-manual", "poll sora-2-manual")
	worker.kill()
	s.control.drive(s.control.job("survivor").ID, "completed", 100)
	worker.start()
	front.completed(video.ID, crashTimeout)
	trace := c.awaits(t, sampledTrace, "RunWorkflow:Video")
	t.Logf("the trace of %s:\n%s", video.ID, tree(trace))
	const task = "serve POST /v1/videos > serve StartWorkflow:Video > worker RunWorkflow:Video > worker "
	for name, want := range map[string]string{
		"submit sora-2-manual": task + "RunActivity:SubmitClaimed > worker submit sora-2-manual", "open sora-2-manual": task + "RunActivity:Archive > worker open sora-2-manual",
	} {
		if got := path(trace, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	runs := make(map[string]bool)
	for _, one := range trace {
		if one.GetName() == "RunWorkflow:Video" {
			runs[string(one.GetSpanId())] = true
		}
	}
	if len(runs) != 1 {
		t.Errorf("got %d spans of the workflow, want 1", len(runs))
	}
}

// TestCollectorAway: nobody waits for a collector that is not there, neither a call nor the end of the process.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	s := newRelayStack(t, nil)
	s.traced(&collector{Server: &httptest.Server{URL: "http://" + nowhere}})
	g := s.gateway(gatewayOptions{})
	sdk := g.sdk(option.WithMaxRetries(0))
	answer, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	if err != nil || answer.Choices[0].Message.Content == "" {
		t.Fatalf("%v, %+v", err, answer)
	}
	g.stop(t)
	if log := g.out.text(); !strings.Contains(log, "collector takes no spans") || !strings.Contains(log, "trace_id=") {
		t.Errorf("the log tells nothing of it:\n%s", log)
	}
}

// TestTraceGoesOn: a task of a gateway whose upstream is a gateway is one trace, the other's part within its own submit.
func TestTraceGoesOn(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	c := newCollector(t)
	s.traced(c)
	g := s.gateway(gatewayOptions{channels: s.channel("main", "sk-upstream-main", "") + `  - name: itself
    vendor: generic
    base_url: http://{self}/v1
    keys: [` + token + `]
    models: {chain: sora-2-fast}
    groups: [default]
`})
	video := g.create(t.Context(), "chain", "through two gateways", traceparent(sampledTrace, "01"))
	g.completed(video.ID, taskTimeout)
	const want = "serve POST /v1/videos > serve StartWorkflow:Video > serve RunWorkflow:Video > serve RunActivity:SubmitClaimed > serve submit sora-2-fast" +
		" > serve POST /v1/video/generations"
	var trace []span
	eventually(t, "trace has "+want, exportTimeout, func() bool {
		trace = c.trace(sampledTrace)
		return path(trace, "POST /v1/video/generations") == want
	})
	t.Logf("the trace of %s:\n%s", video.ID, tree(trace))
}

// TestTraceOverGRPC: a collector that speaks gRPC gets the spans as well.
func TestTraceOverGRPC(t *testing.T) {
	t.Parallel()
	s := newRelayStack(t, nil)
	c := newGRPCCollector(t)
	s.traced(c, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	g := s.gateway(gatewayOptions{})
	sdk := g.sdk(option.WithMaxRetries(0))
	if _, err := sdk.Models.List(t.Context(), traceparent(callTrace, "01")); err != nil {
		t.Fatal(err)
	}
	c.awaits(t, callTrace, "GET /v1/models")
}
