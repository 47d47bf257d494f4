package upstream_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// TestContentPlays decodes what a job ends in, where ffmpeg is installed.
func TestContentPlays(t *testing.T) {
	t.Parallel()
	ffprobe, err := exec.LookPath("ffprobe")
	if err != nil {
		t.Skip("ffprobe is not installed")
	}
	f := start(t, upstream.Options{})
	f.rule(t, `{"operation":"video.create","action":"progress","state":"completed"}`)
	f.rule(t, `{"operation":"video.create","contains":"large","action":"size","bytes":10000000}`)
	for _, prompt := range []string{"small", "large"} {
		id := f.createVideo(t, `{"model":"sora-2","prompt":"`+prompt+`"}`)
		path := filepath.Join(t.TempDir(), "video.mp4")
		if err := os.WriteFile(path, f.do(t, "GET", "/openai/v1/videos/"+id+"/content", "").body, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), ffprobe, "-v", "error", "-count_frames",
			"-show_entries", "stream=codec_name,pix_fmt,nb_read_frames", "-of", "csv=p=0", path).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != "h264,yuv420p,72" {
			t.Errorf("%s: got %q, %v", prompt, got, err)
		}
	}
}
