package e2e_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
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
	stack.Full(t)
	s := stack.Shared(t)
	c, hook := stack.NewCollector(t), stack.NewReceiver(t, nil)
	s.SendSpans(c)
	options := stack.WithReceiver(hook.URL + "/secret-path")
	options.Channels = s.Channel("first", "sk-upstream-first", "    priority: 10\n") + s.Channel("second", "sk-upstream-second", "")
	options.Args = []string{"serve", "--worker=false"}
	front := s.StartGateway(options)
	options.Args = []string{"worker"}
	s.StartGateway(options)
	hooked := option.WithAPIKey(stack.HookToken)

	unseen := front.Create(t.Context(), "sora-2-fast", secretPrompt+" unseen", hooked, traceparent(unsampledTrace, "00"))
	hook.AwaitVerified(t, 1, unseen.ID)
	video := front.Create(t.Context(), "sora-2-fast", secretPrompt, hooked, traceparent(sampledTrace, "01"))
	hook.AwaitVerified(t, 2, video.ID)

	t.Run("task", func(t *testing.T) {
		trace := c.Await(t, sampledTrace, "POST /v1/videos", "RunWorkflow:Video", "RunWorkflow:Notify", "RunActivity:Settle")
		t.Logf("the trace of %s:\n%s", video.ID, stack.Tree(trace))
		const task = "serve POST /v1/videos > serve StartWorkflow:Video > worker RunWorkflow:Video"
		for name, want := range map[string]string{
			"RunActivity:Admit":  task + " > worker RunActivity:Admit",
			"submit sora-2-fast": task + " > worker RunActivity:Submit > worker submit sora-2-fast",
			"poll sora-2-fast":   task + " > worker RunActivity:Poll > worker poll sora-2-fast",
			"open sora-2-fast":   task + " > worker RunActivity:Archive > worker open sora-2-fast",
			"RunActivity:Settle": task + " > worker RunActivity:Settle",
			"POST webhook":       task + " > worker RunWorkflow:Notify > worker RunActivity:Deliver > worker POST webhook",
		} {
			if got := stack.PathTo(trace, name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		for _, one := range trace {
			parent := fmt.Sprintf("%x", one.GetParentSpanId())
			if one.GetName() == "POST /v1/videos" && parent != above {
				t.Errorf("the request's parent is %s, want the client's span %s", parent, above)
			}
			if one.GetName() != "POST webhook" && one.GetName() != "RunWorkflow:Notify" && one.GetName() != "RunActivity:Deliver" &&
				strings.HasPrefix(one.GetName(), "Run") &&
				stack.Attribute(one.GetAttributes(), "gateway.task") != video.ID {
				t.Errorf("%s names task %q", one.GetName(), stack.Attribute(one.GetAttributes(), "gateway.task"))
			}
		}
	})
	t.Run("same history", func(t *testing.T) {
		temporal := s.TemporalClient()
		with, without := stack.History(t.Context(), t, temporal, video.ID), stack.History(t.Context(), t, temporal, unseen.ID)
		if got, want := len(with.GetEvents()), len(without.GetEvents()); got != want {
			t.Errorf("a traced task has %d history events, another %d", got, want)
		}
		for _, event := range without.GetEvents() {
			if bytes.Contains([]byte(event.String()), []byte("_tracer-data")) {
				t.Errorf("a task outside of a trace carries one: %v", event)
			}
		}
		record(s, "traced", video.ID)
	})
	t.Run("fail-over", func(t *testing.T) {
		s.Control.AddRule(map[string]any{"operation": "chat", "key": "sk-upstream-first", "action": "status", "status": 500, "times": 1})
		sdk := front.SDK(option.WithMaxRetries(0))
		_, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(secretPrompt)},
		}, traceparent(callTrace, "01"))
		if err != nil {
			t.Fatal(err)
		}
		trace := c.Await(t, callTrace, "POST /v1/chat/completions")
		t.Logf("the trace of a call:\n%s", stack.Tree(trace))
		var got []string
		for _, one := range trace {
			if one.GetName() == "chat gpt-4o" {
				got = append(got, fmt.Sprint(stack.Attribute(one.GetAttributes(), "gateway.attempt"), " ",
					stack.Attribute(one.GetAttributes(), "gateway.channel"), " ",
					stack.Attribute(one.GetAttributes(), "http.response.status_code"), " ", len(one.GetEvents()), " ", stack.PathTo(trace, one.GetName())))
			}
		}
		const within = "serve POST /v1/chat/completions > serve chat gpt-4o"
		if want := []string{"1 first 500 0 " + within, "2 second 200 1 " + within}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got attempts %q, want %q", got, want)
		}
	})

	if trace := c.Trace(unsampledTrace); len(trace) != 0 { // both processes have sent later spans by now
		t.Errorf("the client did not want its trace, it came:\n%s", stack.Tree(trace))
	}
	raw := c.Exports()
	for _, secret := range []string{
		secretPrompt, stack.HookToken, stack.Token, "sk-upstream", stack.HookSecret, "secret-path",
		stack.AccessKey + "-", stack.SecretKey,
	} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("%q stands in the exported spans", secret)
		}
	}
	for _, request := range hook.Requests() {
		if request.Header.Get("Traceparent") != "" {
			t.Errorf("the receiver got %v", request.Header)
		}
	}
}

// TestTraceOutlivesWorker: a task that another worker takes over has one span, which those of both workers are within.
func TestTraceOutlivesWorker(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	c := stack.NewCollector(t)
	s.SendSpans(c)
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	video := front.Create(t.Context(), "sora-2-manual", "survivor", traceparent(sampledTrace, "01"))
	c.Await(t, sampledTrace, "submit sora-2-manual", "poll sora-2-manual")
	worker.Kill()
	s.Control.Drive(s.Control.Job("survivor").ID, "completed", 100)
	worker.Start()
	front.AwaitCompleted(video.ID, stack.CrashTimeout)
	trace := c.Await(t, sampledTrace, "RunWorkflow:Video")
	t.Logf("the trace of %s:\n%s", video.ID, stack.Tree(trace))
	const task = "serve POST /v1/videos > serve StartWorkflow:Video > worker RunWorkflow:Video > worker "
	for name, want := range map[string]string{
		"submit sora-2-manual": task + "RunActivity:Submit > worker submit sora-2-manual",
		"open sora-2-manual":   task + "RunActivity:Archive > worker open sora-2-manual",
	} {
		if got := stack.PathTo(trace, name); got != want {
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

// TestCollectorAway: nothing waits for a collector that is not there, neither a call nor the end of the process.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	s.SendSpans(&stack.Collector{Server: &httptest.Server{URL: "http://" + stack.Nowhere}})
	g := s.StartGateway(stack.GatewayOptions{})
	sdk := g.SDK(option.WithMaxRetries(0))
	answer, err := sdk.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")},
	})
	if err != nil || answer.Choices[0].Message.Content == "" {
		t.Fatalf("%v, %+v", err, answer)
	}
	g.Stop(t)
	if log := g.Out.Text(); !strings.Contains(log, "collector accepts no spans") || !strings.Contains(log, "trace_id=") {
		t.Errorf("the log tells nothing of it:\n%s", log)
	}
}

// TestTraceGoesOn: a task of a gateway whose upstream is a gateway is one trace, the other's part within its own submit.
func TestTraceGoesOn(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	c := stack.NewCollector(t)
	s.SendSpans(c)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.Channel("main", "sk-upstream-main", "") + `  - name: itself
    vendor: generic
    base_url: http://{self}/v1
    keys: [` + stack.Token + `]
    models: {chain: sora-2-fast}
    groups: [default]
`})
	video := g.Create(t.Context(), "chain", "through two gateways", traceparent(sampledTrace, "01"))
	g.AwaitCompleted(video.ID, stack.TaskTimeout)
	const want = "serve POST /v1/videos > serve StartWorkflow:Video > serve RunWorkflow:Video > serve RunActivity:Submit > serve submit sora-2-fast" +
		" > serve POST /v1/video/generations"
	var trace []stack.Span
	testwait.Eventually(t, "trace has "+want, stack.ExportTimeout, func() bool {
		trace = c.Trace(sampledTrace)
		return stack.PathTo(trace, "POST /v1/video/generations") == want
	})
	t.Logf("the trace of %s:\n%s", video.ID, stack.Tree(trace))
}
