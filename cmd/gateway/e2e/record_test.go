package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"modelrelay/workflows"
)

// identity is a process's name in a history; it holds the machine's.
var identity = regexp.MustCompile(`"identity": *"[^"]*"`)

// TestHistories plays the lives of tasks whose histories are committed. With -record-histories it writes them to
// workflows/testdata/histories, where replay_test.go replays them against the workflow's code.
func TestHistories(t *testing.T) {
	t.Parallel()
	lives := map[string]struct {
		channels func(*stack) string
		video    string // members of the video section
		play     func(t *testing.T, s *stack, front, worker *gateway) string
		code     string // how it fails, "" when it completes
		others   int    // tasks made besides
	}{
		"completed": {play: func(t *testing.T, _ *stack, front, _ *gateway) string {
			return front.create(t.Context(), "sora-2-fast", "happy").ID
		}},
		"fell-over": {
			channels: func(s *stack) string {
				return s.channel("busy", "sk-upstream-busy", "    priority: 10\n") + s.channel("free", "sk-upstream-free", "")
			},
			play: func(t *testing.T, s *stack, front, _ *gateway) string {
				s.control.rule(map[string]any{"operation": "video.create", "key": "sk-upstream-busy", "action": "status", "status": 429, "headers": map[string]string{"Retry-After": "1"}})
				return front.create(t.Context(), "sora-2-fast", "elsewhere").ID
			},
		},
		"upstream-failed": {code: "*", play: func(t *testing.T, _ *stack, front, _ *gateway) string {
			return front.create(t.Context(), "sora-2-fast-fail", "doomed").ID
		}},
		"deadline": {code: workflows.CodeDeadlineExceeded, video: "poll_min: 200ms, poll_max: 1s, deadline: 5s", play: func(t *testing.T, _ *stack, front, _ *gateway) string {
			return front.create(t.Context(), "sora-2-manual", "too slow").ID
		}},
		"cancelled": {code: workflows.CodeCancelled, play: func(t *testing.T, s *stack, front, _ *gateway) string {
			id := front.create(t.Context(), "sora-2-manual", "unwanted").ID
			s.control.wait("video.get", "sora-2-manual", "", 1)
			sdk := front.sdk()
			if err := sdk.Post(t.Context(), "videos/"+id+"/cancel", nil, nil); err != nil {
				t.Fatal(err)
			}
			return id
		}},
		"worker-restarted": {play: func(t *testing.T, s *stack, front, worker *gateway) string {
			id := front.create(t.Context(), "sora-2-manual", "survivor").ID
			s.control.wait("video.get", "sora-2-manual", "", 1)
			worker.kill()
			s.control.drive(s.control.job("survivor").ID, "completed", 100)
			worker.start()
			return id
		}},
		"unknown-submit": {code: workflows.CodeUpstreamUnknown, play: func(t *testing.T, s *stack, front, _ *gateway) string {
			s.control.rule(map[string]any{"operation": "video.create", "action": "drop", "accept": true})
			return front.create(t.Context(), "sora-2-fast", "dropped").ID
		}},
		"stood-in-line": {
			others:   1,
			channels: func(s *stack) string { return s.channel("main", "sk-upstream-main", "    max_jobs: 1\n") },
			play: func(t *testing.T, s *stack, front, _ *gateway) string {
				front.create(t.Context(), "sora-2-manual", "before")
				s.control.wait("video.create", "sora-2-manual", "accepted", 1)
				id := front.create(t.Context(), "sora-2-fast", "after").ID
				inLine(t, s.temporalClient(), id)
				s.control.drive(s.control.job("before").ID, "completed", 100)
				return id
			},
		},
	}
	for name, life := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			var channels string
			if life.channels != nil {
				channels = life.channels(s)
			}
			front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, channels: channels, video: life.video})
			worker := s.gateway(gatewayOptions{args: []string{"worker"}, channels: channels, video: life.video})
			id := life.play(t, s, front, worker)
			if life.code == "" {
				front.completed(id, crashTimeout)
			} else if ended := front.end(id, crashTimeout); ended.Error.Code != life.code && life.code != "*" || ended.Error.Code == "" {
				t.Fatalf("ended as %s %s, want failed %s", ended.Status, ended.Error.Code, life.code)
			}
			s.submittedOnce(1 + life.others)
			s.record(name, id)
		})
	}
}

// record writes the history of an execution to workflows/testdata/histories where that was asked for.
func (s *stack) record(name, id string) {
	s.t.Helper()
	if !*record {
		return
	}
	events := history(s.t.Context(), s.t, s.temporalClient(), id)
	doc, err := protojson.MarshalOptions{Multiline: true, Indent: " "}.Marshal(events)
	if err != nil {
		s.t.Fatal(err)
	}
	doc = identity.ReplaceAll(doc, []byte(`"identity": "recorded"`))
	file := filepath.Join(repo, "workflows", "testdata", "histories", name+".json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, append(doc, '\n'), 0o644); err != nil {
		s.t.Fatal(err)
	}
}
