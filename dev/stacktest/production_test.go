package stacktest_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"go.yaml.in/yaml/v4"
)

// TestInstallNames: what the parts of production lack is named with the command that installs it.
func TestInstallNames(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(program(t), "install")
	cmd.Env = []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"not installed: ", "redis-server", "apt-get install -y --no-install-recommends "} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got %s, want %q in it", out, want)
		}
	}
	if err == nil {
		t.Error("install succeeded")
	}
}

// TestProduction: the stack on the parts of production prints a configuration whose sentinels know the primary of Redis, and
// finds its state again at the next start.
func TestProduction(t *testing.T) {
	t.Parallel()
	if os.Getenv("MODELRELAY_TEST_PARTS") != "production" {
		t.Skip("starts the parts of production: MODELRELAY_TEST_PARTS=production")
	}
	data := t.TempDir()
	for _, dir := range []string{data, filepath.Dir(data)} { // PostgreSQL may run as another user
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	args := append([]string{"--services", "--parts", "production", "--data", data}, freePorts()...)
	for round, want := range []error{goredis.Nil, nil} {
		stack := start(t, args...)
		_, pasted, _ := strings.Cut(stack.stdout.String(), "For a gateway.yaml:\n\n")
		pasted, _, _ = strings.Cut(pasted, "\nready ")
		var sections struct {
			Redis struct {
				Sentinel struct {
					Master    string
					Addresses []string
				}
			}
		}
		if err := yaml.Unmarshal([]byte(pasted), &sections); err != nil {
			t.Fatalf("the sections to paste: %v\n%s", err, pasted)
		}
		about := sections.Redis.Sentinel
		if len(about.Addresses) != 3 {
			t.Fatalf("got sentinels %v in\n%s", about, pasted)
		}
		c := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: about.Master, SentinelAddrs: about.Addresses})
		_, err := c.Get(t.Context(), "kept").Result()
		if !errors.Is(err, want) {
			t.Errorf("start %d: got %v, want %v", round+1, err, want)
		}
		if err := c.Set(t.Context(), "kept", "1", 0).Err(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if status := stack.stop(); status != 0 {
			t.Errorf("start %d: ended with status %d", round+1, status)
		}
	}
}
