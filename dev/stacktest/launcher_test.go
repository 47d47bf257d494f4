package stacktest_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLauncher starts the stack by `go run` from another folder: a relative path starts there, and the stack ends with the go
// command, which passes no SIGTERM on.
func TestLauncher(t *testing.T) {
	t.Parallel()
	program(t)
	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder, programs := t.TempDir(), t.TempDir()
	run := func(args ...string) *exec.Cmd {
		cmd := exec.Command("go", append([]string{"run", "-C", module, "."}, args...)...)
		cmd.Dir = folder
		// The launcher keeps the stack in the user's cache: here in a folder that ends with the test.
		cmd.Env = append(os.Environ(), "PWD="+folder, "XDG_CACHE_HOME="+programs, "GOCACHE="+strings.TrimSpace(string(cache)))
		return cmd
	}
	if out, err := run("--help").CombinedOutput(); err != nil || !strings.Contains(string(out), "Usage: dev") {
		t.Fatalf("--help: got %v\n%s", err, out)
	}

	launched := startCommand(t, run(append([]string{"--services", "--data", "here"}, freePorts()...)...))
	if _, err := os.Stat(filepath.Join(folder, "here", "redis")); err != nil {
		t.Errorf("--data here: %v, want it in the folder of the caller", err)
	}
	temporal := regexp.MustCompile(`(?m)^temporal\s+(\S+)$`).FindStringSubmatch(launched.stdout.String())
	if temporal == nil {
		t.Fatalf("no address of Temporal in\n%s", launched.stdout)
	}
	launched.kill(t)
	eventually(t, "the end of the stack", func() error {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", temporal[1])
		if err != nil {
			return nil //nolint:nilerr // nothing listens there: the stack has ended
		}
		return errors.Join(errors.New("temporal still listens"), conn.Close())
	})
}
