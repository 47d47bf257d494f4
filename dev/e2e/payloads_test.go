package e2e_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// payloadKey is one of the list, whose secret is 32 times the letter.
func payloadKey(id, letter string) string {
	return fmt.Sprintf("{id: %s, key: %s}", id, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32))))
}

// setPayloadKeys writes other keys into a gateway's configuration, which a reload takes.
func setPayloadKeys(t *testing.T, g *stack.Gateway, keys ...string) {
	t.Helper()
	text, err := os.ReadFile(g.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "payload_keys: [")
	_, after, _ := strings.Cut(rest, "]")
	if !found {
		t.Fatalf("no keys in %s", text)
	}
	loads := strings.Count(g.Out.Text(), `"configuration loaded"`)
	next := filepath.Join(filepath.Dir(g.ConfigFile), "."+filepath.Base(g.ConfigFile))
	if err := os.WriteFile(next, []byte(before+"payload_keys: ["+strings.Join(keys, ", ")+"]"+after), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, g.ConfigFile); err != nil {
		t.Fatal(err)
	}
	testwait.Eventually(t, "the keys are loaded", stack.ReadyTimeout,
		func() bool { return strings.Count(g.Out.Text(), `"configuration loaded"`) > loads })
}

// TestPayloadKeysRotate: tasks from before encryption, and of each key, are read as long as their keys are there; where one is missing
// they wait, and say for which.
func TestPayloadKeysRotate(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Temporal: ", payload_keys: []"})
	create := func(prompt string) string { t.Helper(); return g.Create(t.Context(), "sora-2-manual", prompt).ID }
	finish := func(id, prompt string) {
		t.Helper()
		s.Control.Drive(s.Control.Job(prompt).ID, "completed", 100)
		g.AwaitCompleted(id, stack.CrashTimeout)
	}
	keyIDs := func(id string) map[string]bool {
		t.Helper()
		found := make(map[string]bool)
		for _, event := range stack.History(t.Context(), t, s.TemporalClient(), id).GetEvents() {
			for _, payload := range payloadsOf(event.GetWorkflowExecutionStartedEventAttributes().GetInput(),
				event.GetActivityTaskScheduledEventAttributes().GetInput()) {
				found[string(payload.GetMetadata()["encryption-key-id"])] = true
			}
		}
		return found
	}
	plain := create("from before")
	s.Control.Await("video.create", "sora-2-manual", "accepted", 1)
	setPayloadKeys(t, g, payloadKey("first", "a"))
	first := create("of the first")
	s.Control.Await("video.create", "sora-2-manual", "accepted", 2)
	setPayloadKeys(t, g, payloadKey("second", "b"), payloadKey("first", "a"))
	second := create("of the second")
	finish(plain, "from before")
	if ids := keyIDs(plain); !ids[""] || !ids["second"] {
		t.Errorf("the task from before has payloads of %v", ids)
	}
	if ids := keyIDs(second); ids[""] || ids["first"] {
		t.Errorf("the newest task has payloads of %v", ids)
	}

	// The old key goes too early.
	s.Control.Await("video.create", "sora-2-manual", "accepted", 3)
	setPayloadKeys(t, g, payloadKey("second", "b"))
	finish(second, "of the second")
	answer := g.Call(t, stack.Request{Path: "/v1/videos/" + first})
	if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a task that cannot be read: %d %s", answer.Status, answer.Body)
	}
	if _, stderr, err := g.Command(t.Context(), "video", "show", first); err == nil ||
		!strings.Contains(stderr, `encrypted with the key \"first\", which temporal.payload_keys does not have`) {
		t.Errorf("an operator reads: %v %s", err, stderr)
	}
	s.Control.Drive(s.Control.Job("of the first").ID, "completed", 100)
	testwait.Eventually(t, "the log names the key", stack.CrashTimeout, func() bool {
		return strings.Contains(g.Out.Text(), "key_id=first")
	})
	if status := s.TemporalStatus(first); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("without its key the task is %s", status)
	}
	setPayloadKeys(t, g, payloadKey("second", "b"), payloadKey("first", "a"))
	g.AwaitCompleted(first, stack.CrashTimeout)

	// A worker that begins without the key refuses a task's step with the reason, which Temporal keeps.
	last := create("without a worker")
	s.Control.Await("video.create", "sora-2-manual", "accepted", 4)
	setPayloadKeys(t, g, payloadKey("third", "c"), payloadKey("second", "b"))
	g.Stop(t)
	without := s.StartGateway(stack.GatewayOptions{Temporal: ", payload_keys: [" + payloadKey("third", "c") + "]"})
	if err := s.TemporalClient().SignalWorkflow(t.Context(), last, "", "nudge", nil); err != nil { // another step
		t.Fatal(err)
	}
	testwait.Eventually(t, "the history names the key", stack.CrashTimeout, func() bool {
		for _, event := range stack.History(t.Context(), t, s.TemporalClient(), last).GetEvents() {
			if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil {
				return strings.Contains(failed.GetFailure().GetMessage(), `encrypted with the key "second"`)
			}
		}
		return false
	})
	setPayloadKeys(t, without, payloadKey("third", "c"), payloadKey("second", "b"))
	s.Control.Drive(s.Control.Job("without a worker").ID, "completed", 100)
	without.AwaitCompleted(last, stack.CrashTimeout)
	s.WantSubmittedOnce(4)
}

// payloadsOf are those of the lists.
func payloadsOf(lists ...*commonpb.Payloads) (all []*commonpb.Payload) {
	for _, list := range lists {
		all = append(all, list.GetPayloads()...)
	}
	return all
}
