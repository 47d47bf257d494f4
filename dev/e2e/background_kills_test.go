package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/archive"
	"modelrelay/storage/testwait"
)

// newCallSplit is stack.NewSplit with members of the background section, channels in place of the usual ones, and a grace of one second.
func newCallSplit(on *stack.Stack, section string, channels ...string) *stack.Split {
	return splitOf(on, stack.GatewayOptions{More: "background: {" + section + "}\n", Relay: "grace: 1s", Channels: strings.Join(channels, "")})
}

// splitOf is stack.NewSplit with options.
func splitOf(on *stack.Stack, o stack.GatewayOptions) *stack.Split {
	s := &stack.Split{Stack: on, ToTemporal: stack.NewLink(on.T, on.TemporalAt)}
	o.Args = []string{"serve", "--worker=false"}
	s.Front = s.StartGateway(o)
	o.Args, o.TemporalAt = []string{"worker"}, s.ToTemporal.Addr()
	s.Worker = s.StartGateway(o)
	return s
}

// held starts a call whose upstream has taken it and does not answer.
func held(s *stack.Split, prompt string) background {
	s.T.Helper()
	s.Control.AddRule(map[string]any{"operation": "chat", "action": "hang", "accept": true})
	task := startBackground(s.T, s.Front, chatIn(prompt))
	s.Control.Await("chat", "gpt-4o", "accepted", 1)
	return task
}

// answered reports whether the archive has the answer of a call.
func answered(t *testing.T, archive *archive.Store, id string) bool {
	t.Helper()
	for object, err := range archive.List(t.Context(), "outputs/") {
		if err == nil && strings.Contains(object.Key, id+"/answer-") {
			return true
		}
	}
	return false
}

// wantSent checks how often a prompt was sent.
func wantSent(t *testing.T, s *stack.Stack, prompt string, times int) {
	t.Helper()
	if sent := len(promptsSent(s, prompt)); sent != times {
		t.Errorf("%q was sent %d times, want %d", prompt, sent, times)
	}
}

// TestKillWorkerDuringCall: the answer died with the worker. The rule says what becomes of the call.
func TestKillWorkerDuringCall(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{"killed", "stopped"} {
		for rule, want := range map[string]struct {
			status, code string
			sent         int
		}{"repeat": {"completed", "", 2}, "fail": {"failed", "upstream_unknown", 1}} {
			t.Run(stop+", "+rule, func(t *testing.T) {
				t.Parallel()
				s := newCallSplit(stack.Shared(t), "lost_answer: "+rule)
				task := held(s, "lost answer")
				if stop == "killed" {
					s.Worker.Kill()
				} else {
					s.Worker.Stop(t)
				}
				s.Control.Clear()
				if stop == "stopped" && rule == "fail" { // it ends at once, without another worker's look
					s.Control.AddRule(map[string]any{"operation": "chat", "action": "status", "status": 500})
				}
				s.RestartWorker()
				ended := awaitBackground(t, s.Front, "", task.ID)
				if code := ended.Error; ended.Status != want.status || (code == nil) != (want.code == "") || code != nil && code.Code != want.code {
					t.Errorf("ended as %+v with %+v, want %s %s", ended, code, want.status, want.code)
				}
				wantSent(t, s.Stack, "lost answer", want.sent)
				record(s.Stack, "call-"+stop+"-"+rule, task.ID)
				result := s.Front.Call(t, stack.Request{Path: "/v1/tasks/" + task.ID + "/result"})
				if status := map[string]int{"completed": http.StatusOK, "failed": http.StatusBadGateway}[want.status]; result.Status != status {
					t.Errorf("the result is %d %s, want %d", result.Status, result.Body, status)
				}
			})
		}
	}
}

// TestKillWorkerDuringInteraction: an interaction whose answer died with its worker is sent once more, and its client reads it under the id
// of the create. What the vendor stores of it is deleted with it.
func TestKillWorkerDuringInteraction(t *testing.T) {
	t.Parallel()
	on := stack.Shared(t)
	s := newCallSplit(on, "lost_answer: repeat", fmt.Sprintf(
		"  - {name: gemini, vendor: gemini, base_url: \"http://%s/gemini\", keys: [sk-upstream-gemini], groups: [default], models: {gemini-2.5-flash: }}\n", on.UpstreamAt))
	s.Control.AddRule(map[string]any{"operation": "interactions", "action": "hang", "accept": true})
	var interaction struct{ ID, Status string }
	created := s.Front.Call(t, stack.Request{
		Method: http.MethodPost, Path: "/v1beta/interactions", Body: `{"model":"gemini-2.5-flash","input":"lost interaction","background":true}`,
	})
	if err := json.Unmarshal(created.Body, &interaction); err != nil || created.Status != http.StatusOK ||
		interaction.Status != "in_progress" {
		t.Fatalf("created %d %s, %v", created.Status, created.Body, err)
	}
	s.Control.Await("interactions", "gemini-2.5-flash", "accepted", 1)
	s.Worker.Kill()
	s.Control.Clear()
	s.RestartWorker()
	ended := awaitBackground(t, s.Front, "", interaction.ID)
	path := "/v1/interactions/" + interaction.ID
	read := s.Front.Call(t, stack.Request{Path: path})
	if ended.Status != "completed" || ended.Operation != "POST /v1beta/interactions" || read.Status != http.StatusOK ||
		!bytes.Contains(read.Body, []byte("lost interaction")) ||
		json.Unmarshal(read.Body, &interaction) != nil || interaction.ID != ended.ID || interaction.Status != "completed" {
		t.Errorf("ended as %+v with %+v: %d %s", ended, ended.Error, read.Status, read.Body)
	}
	s.Control.Await("interactions", "gemini-2.5-flash", "accepted", 2)
	if deleted := s.Front.Call(t, stack.Request{Method: http.MethodDelete, Path: path}); deleted.Status != http.StatusOK ||
		strings.TrimSpace(string(deleted.Body)) != "{}" {
		t.Errorf("deleted %d %s", deleted.Status, deleted.Body)
	}
	s.Control.Await("interactions.delete", "", "accepted", 1)
}

// TestKillWorkerDuringAgent: the vendor runs an agent. After the death of the worker another one reads its interaction to the end, and
// nothing is sent again.
func TestKillWorkerDuringAgent(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprintf("stream %t", stream), func(t *testing.T) {
			t.Parallel()
			on := stack.Shared(t)
			s := newCallSplit(on, "lost_answer: repeat", fmt.Sprintf(
				"  - {name: gemini, vendor: gemini, base_url: \"http://%s/gemini\", keys: [sk-upstream-gemini], groups: [default], models: {deep-research: }}\n", on.UpstreamAt))
			rule := map[string]any{"operation": "interactions.get", "action": "hang"}
			if stream {
				rule = map[string]any{"operation": "interactions", "action": "stall", "chunks": 5, "times": 1}
			}
			s.Control.AddRule(rule)
			answer := make(chan *stack.Answer, 1)
			go func() {
				got, err := s.Front.Send(t.Context(), stack.Request{Method: http.MethodPost, Path: "/v1beta/interactions", Body: map[string]any{
					"agent": "deep-research", "input": "a lighthouse", "background": true, "stream": stream,
				}})
				if err != nil {
					t.Error(err)
				}
				answer <- got
			}()
			testwait.Eventually(t, "the ticket is in the archive", stack.TaskTimeout, func() bool {
				for _, err := range s.Archive().List(t.Context(), "tickets/") {
					return err == nil
				}
				return false
			})
			s.Worker.Kill()
			s.Control.Clear()
			s.RestartWorker()
			var list struct{ Data []background }
			listed := s.Front.Call(t, stack.Request{Path: "/v1/tasks"})
			if err := json.Unmarshal(listed.Body, &list); err != nil || len(list.Data) != 1 {
				t.Fatalf("tasks: %s, %v", listed.Body, err)
			}
			ended := awaitBackground(t, s.Front, "", list.Data[0].ID)
			read := s.Front.Call(t, stack.Request{Path: "/v1beta/interactions/" + ended.ID})
			if ended.Status != "completed" || ended.Attempts != 1 || !bytes.Contains(read.Body, []byte("You said: a lighthouse")) ||
				!bytes.Contains(read.Body, []byte(ended.ID)) {
				t.Errorf("ended as %+v with %+v: %s", ended, ended.Error, read.Body)
			}
			if sent := len(requestsTo(s.Stack, "interactions")); sent != 1 {
				t.Errorf("sent %d times", sent)
			}
			if got := <-answer; stream && (bytes.Count(got.Body, []byte(`"event_type":"interaction.completed"`)) != 1 ||
				!bytes.HasSuffix(got.Body, []byte("data: [DONE]\n\n"))) {
				t.Errorf("the create's stream: %s", got.Body)
			}
		})
	}
}

// TestStopWorkerDuringCall: a stopping worker lets a call end that ends within the grace.
func TestStopWorkerDuringCall(t *testing.T) {
	t.Parallel()
	on := stack.Shared(t)
	s := &stack.Split{Stack: on, ToTemporal: stack.NewLink(on.T, on.TemporalAt)}
	s.Front = s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	s.Worker = s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}, TemporalAt: s.ToTemporal.Addr()})
	task := held(s, "within the grace")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Worker.Stop(t)
	}()
	testwait.Eventually(t, "the worker stops", stack.ReadyTimeout, func() bool {
		return strings.Contains(s.Worker.Out.Text(), "Stopped Worker") || strings.Contains(s.Worker.Out.Text(), "stopp")
	})
	s.Control.Clear()
	<-stopped
	s.RestartWorker()
	if ended := awaitBackground(t, s.Front, "", task.ID); ended.Status != "completed" {
		t.Errorf("ended as %+v with %+v", ended, ended.Error)
	}
	wantSent(t, s.Stack, "within the grace", 1)
}

// TestKillWorkerBeforeCall: nothing was sent, so the call is sent.
func TestKillWorkerBeforeCall(t *testing.T) {
	t.Parallel()
	s := newCallSplit(stack.Shared(t).OwnS3(), "lost_answer: fail")
	s.Worker.Kill()
	task := startBackground(t, s.Front, chatIn("never begun"))
	s.S3.Pause() // the worker gets as far as the archive
	s.RestartWorker()
	testwait.Eventually(t, "the worker has the call", stack.TaskTimeout, func() bool {
		return bytes.Contains([]byte(stack.History(t.Context(), t, s.TemporalClient(), task.ID).String()), []byte("ACTIVITY_TASK_SCHEDULED"))
	})
	s.Worker.Kill()
	s.S3.Resume()
	s.RestartWorker()
	if ended := awaitBackground(t, s.Front, "", task.ID); ended.Status != "completed" {
		t.Errorf("ended as %+v with %+v", ended, ended.Error)
	}
	wantSent(t, s.Stack, "never begun", 1)
}

// TestKillWorkerAfterCall: the worker dies after it has archived the answer, before it reports to Temporal.
func TestKillWorkerAfterCall(t *testing.T) {
	t.Parallel()
	s := newCallSplit(stack.Shared(t), "lost_answer: fail")
	task := held(s, "found answer")
	s.ToTemporal.Hold(stack.Towards)
	s.Control.Clear()
	archive := s.Archive()
	testwait.Eventually(t, "the answer is in the archive", stack.ReadyTimeout, func() bool { return answered(t, archive, task.ID) })
	s.Worker.Kill()
	s.RestartWorker()
	if ended := awaitBackground(t, s.Front, "", task.ID); ended.Status != "completed" || ended.Result == nil || ended.Cost != nil &&
		*ended.Cost != 0 {
		t.Errorf("ended as %+v with %+v", ended, ended.Error)
	}
	wantSent(t, s.Stack, "found answer", 1)
}

// TestKillWorkerDuringStream: readers have seen events, so the call is not repeated: it ends with the error event.
func TestKillWorkerDuringStream(t *testing.T) {
	t.Parallel()
	s := newCallSplit(stack.Shared(t), "lost_answer: repeat")
	s.Control.AddRule(map[string]any{"operation": "chat", "action": "stall", "chunks": 3, "times": 1})
	r := chatIn("streamed")
	r.Body = strings.Replace(r.Body.(string), "{", `{"stream":true,`, 1)
	task := startBackground(t, s.Front, r)
	s.Control.Await("chat", "gpt-4o", "", 1)
	testwait.Eventually(t, "events are in the archive", stack.TaskTimeout, func() bool { return archivedEvents(s.Stack, task.ID) > 0 })
	s.Worker.Kill()
	s.Control.Clear()
	s.RestartWorker()
	ended := awaitBackground(t, s.Front, "", task.ID)
	result := s.Front.Call(t, stack.Request{Path: "/v1/tasks/" + task.ID + "/result"})
	if ended.Status != "failed" || ended.Error == nil || ended.Error.Code != "upstream_unknown" || result.Status != http.StatusOK ||
		!bytes.Contains(result.Body, []byte("error")) {
		t.Errorf("ended as %+v with %+v: %d %s", ended, ended.Error, result.Status, result.Body)
	}
	wantSent(t, s.Stack, "streamed", 1)
}

// TestKillDuringCall kills what the gateway stands on while a call runs.
func TestKillDuringCall(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(s *stack.Split){
		"the gateway": func(s *stack.Split) {
			s.Front.Kill()
			s.Control.Clear()
			s.Front.Start()
		},
		"Redis": func(s *stack.Split) {
			s.Redis.Kill()
			s.Control.Clear()
			s.StartRedis()
			s.Redis.AwaitReady(s.T)
		},
		"the store": func(s *stack.Split) {
			s.S3.Kill()
			s.Control.Clear()
			testwait.Eventually(s.T, "the answer waits for the store", stack.TaskTimeout,
				func() bool { return strings.Contains(s.Worker.Out.Text(), "answer of a call not stored") })
			s.StartS3()
			s.S3.AwaitReady(s.T)
		},
		"the link to Temporal": func(s *stack.Split) {
			s.ToTemporal.Cut()
			s.Control.Clear()
			s.ToTemporal.Restore()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCallSplit(stack.Shared(t).OwnRedis().OwnS3(), "lost_answer: fail")
			task := held(s, "survives")
			kill(s)
			if ended := awaitBackground(t, s.Front, "", task.ID); ended.Status != "completed" {
				t.Errorf("ended as %+v with %+v", ended, ended.Error)
			}
			wantSent(t, s.Stack, "survives", 1)
		})
	}
}

// TestKillTemporalDuringCall: the answer is kept while the server is away.
func TestKillTemporalDuringCall(t *testing.T) {
	t.Parallel()
	s := newCallSplit(stack.New(t), "lost_answer: fail")
	task := held(s, "survives the server")
	s.Temporal.Kill()
	s.Control.Clear()
	archive := s.Archive()
	testwait.Eventually(t, "the answer is in the archive", stack.ReadyTimeout, func() bool { return answered(t, archive, task.ID) })
	s.StartTemporal()
	s.Temporal.AwaitReady(t)
	if ended := awaitBackground(t, s.Front, "", task.ID); ended.Status != "completed" {
		t.Errorf("ended as %+v with %+v", ended, ended.Error)
	}
	wantSent(t, s.Stack, "survives the server", 1)
}
