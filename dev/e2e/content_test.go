package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestVideoContent: an operator's command fetches the video of any token from the archive, whole and by ranges, and says why it cannot;
// what is not there leaves no file.
func TestVideoContent(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	id := g.Create(t.Context(), "sora-2-fast", "for the operator").ID
	g.AwaitCompleted(id, stack.TaskTimeout)
	folder := t.TempDir()
	whole := filepath.Join(folder, "whole.mp4")
	var told struct {
		File   string `json:"file"`
		Size   int64  `json:"size"`
		SHA256 string `json:"sha256"`
	}
	testwait.Eventually(t, "the task is known as finished", stack.TaskTimeout, func() bool {
		stdout, stderr, err := g.Command(t.Context(), "video", "content", id, "--output", whole, "--json")
		if err != nil {
			t.Logf("not yet: %s", stderr)
			return false
		}
		return json.Unmarshal([]byte(stdout), &told) == nil
	})
	video, err := os.ReadFile(whole)
	if err != nil || int64(len(video)) != told.Size || told.File != whole || len(told.SHA256) != 64 || told.Size < 1000 {
		t.Fatalf("fetched %+v, %v", told, err)
	}
	for text, want := range map[string][]byte{"0-99": video[:100], "100-": video[100:], "-7": video[len(video)-7:]} {
		if got := g.Run("video", "content", id, "--range="+text, "--output", "-"); !bytes.Equal([]byte(got), want) {
			t.Errorf("--range %s: got %d bytes, want %d", text, len(got), len(want))
		}
	}
	for _, test := range []struct {
		args []string
		say  string
	}{
		{[]string{"video_none", "--output", filepath.Join(folder, "none")}, "video_none"},
		{[]string{id, "--index", "7", "--output", filepath.Join(folder, "none")}, "does not exist"},
		{[]string{id, "--range", "99999999-", "--output", filepath.Join(folder, "none")}, "range"},
		{[]string{id, "--range", "0-1,5-6"}, "--range"},
		{[]string{id, "--output", filepath.Join(folder, "no", "folder")}, "open the output"},
	} {
		if _, stderr, err := g.Command(t.Context(), append([]string{"video", "content"}, test.args...)...); err == nil ||
			!strings.Contains(stderr, test.say) {
			t.Errorf("%v: %v %s, want one that says %q", test.args, err, stderr, test.say)
		}
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, want the whole one (%v)", len(left), err)
	}
}
