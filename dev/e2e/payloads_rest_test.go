package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// atRest is everything that Temporal shows of executions to a client without keys: histories, memos, heartbeats, failures.
func atRest(t *testing.T, s *stack.Stack) map[string]string {
	t.Helper()
	c := s.TemporalClient()
	all := make(map[string]string)
	for id, history := range stack.Histories(t.Context(), t, c) {
		described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range []proto.Message{history, described} {
			doc, err := protojson.Marshal(message)
			if err != nil {
				t.Fatal(err)
			}
			all[id] += string(doc)
		}
	}
	return all
}

// forms are the ways in which a text may be in what protojson writes: as it is, and in base64 at each of three offsets.
func forms(text string) []string {
	all := []string{text}
	for offset := range 3 {
		coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", offset) + text))
		all = append(all, coded[(offset*8+5)/6:len(coded)-4])
	}
	return all
}

// TestPayloadsAreEncrypted: of clients' texts, and of upstreams' answers, nothing is in the clear at Temporal, wherever it
// may stand there; the gateway, its operators and /codec/decode read all of it.
func TestPayloadsAreEncrypted(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	hook := stack.NewReceiver(t, nil)
	o := stack.WithReceiver(hook.URL + "/all?canary=webhook")
	o.AdminKey, o.Temporal = stack.AdminKey, ", ui_origin: https://ui.example.com, payload_keys: ["+payloadKey("first", "a")+"]"
	g := s.StartGateway(o)
	const canary = "a canary that sings"
	create := func(model, prompt string) string {
		t.Helper()
		var video struct {
			ID string `json:"id"`
		}
		g.CallJSON(t, stack.Request{Method: http.MethodPost, Path: "/v1/videos", Token: stack.HookToken, Body: map[string]any{
			"model": model, "prompt": prompt, "metadata": map[string]string{"note": canary}, "user": canary,
		}}, &video)
		return video.ID
	}
	s.Control.AddRule(map[string]any{
		"operation": "video.create", "contains": "refuse", "action": "status", "status": 400,
		"body": `{"error": {"message": "` + canary + `", "code": "bad"}}`,
	})
	done, failing, refused := create("sora-2-fast", canary), create("sora-2-fast-fail", canary), create("sora-2-fast", canary+" refuse")
	long := create("sora-2-fast", strings.Repeat(canary+" ", 200))
	running, ended := create("sora-2-manual", canary+" on"), create("sora-2-manual", canary+" off")
	s.Control.Await("video.get", "sora-2-manual", "", 2)
	g.Run("video", "fail", ended, "--reason", canary) // a signal
	testwait.Eventually(t, "five deliveries", stack.DeliveryTimeout, func() bool { return len(hook.Requests()) == 5 })

	var rest map[string]string
	testwait.Eventually(t, "Temporal lists six tasks and five deliveries", stack.DeliveryTimeout, func() bool {
		rest = atRest(t, s)
		return len(rest) >= 6+5
	})
	for id, text := range rest {
		for _, canary := range []string{canary, "canary=webhook"} {
			for _, form := range forms(canary) {
				if strings.Contains(text, form) {
					t.Errorf("%q can be read of %s", form, id)
				}
			}
		}
	}
	if text := rest[running]; !strings.Contains(text, "heartbeatDetails") || !strings.Contains(text, "TaskModel") ||
		strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("json/plain"))+`"},"data":"eyJ`) {
		t.Errorf("the task that runs: %s", text)
	}

	// What the gateway shows is clear.
	var read struct {
		Prompt string `json:"prompt"`
	}
	g.CallJSON(t, stack.Request{Path: "/v1/videos/" + done, Token: stack.HookToken}, &read)
	if read.Prompt != canary {
		t.Errorf("a client reads %q", read.Prompt)
	}
	// An operator reads summaries of steps, and why tasks failed.
	for id, want := range map[string]string{
		done: "main · attempt 1", running: "main · attempt 1", failing: "main · attempt 1", long: "main · attempt 1", ended: canary,
		refused: canary,
	} {
		if shown := g.Run("video", "show", id); !strings.Contains(shown, want) {
			t.Errorf("an operator reads of %s:\n%s", id, shown)
		}
	}
	codecAnswers(t, s, g, done, canary)
}

// codecAnswers asks /codec/decode as Temporal's UI and CLI do.
func codecAnswers(t *testing.T, s *stack.Stack, g *stack.Gateway, id, canary string) {
	t.Helper()
	input := stack.History(t.Context(), t, s.TemporalClient(), id).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput()
	body, err := protojson.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	ui := map[string]string{"Origin": "https://ui.example.com", "X-Namespace": s.Namespace}
	for name, header := range map[string]map[string]string{"the CLI": nil, "the UI": ui} {
		answer := g.Call(t, stack.Request{
			Method: http.MethodPost, Path: "/codec/decode", Token: stack.AdminKey, Body: string(body),
			Header: header,
		})
		var clear struct {
			Payloads []struct {
				Data []byte `json:"data"`
			} `json:"payloads"`
		}
		if err := json.Unmarshal(answer.Body, &clear); err != nil || len(clear.Payloads) != 1 ||
			!strings.Contains(string(clear.Payloads[0].Data), canary) {
			t.Errorf("%s: %v %d %s", name, err, answer.Status, answer.Body)
		}
		if shared := answer.Header.Get("Access-Control-Allow-Origin"); shared != header["Origin"] {
			t.Errorf("%s: shared with %q", name, shared)
		}
	}
}
