package storagetest_test

import (
	"os"
	"os/exec"
	"testing"

	"modelrelay/storage/storagetest"
)

// TestRealRedis runs the tests of storage on a real Redis, and on a Redis Cluster.
func TestRealRedis(t *testing.T) {
	t.Parallel()
	storagetest.Full(t)
	for name, start := range map[string]func(t *testing.T) string{
		"server": func(t *testing.T) string {
			t.Helper()
			return "redis://" + storagetest.StartProcess(t, `save ""`).Address
		},
		"cluster": func(t *testing.T) string {
			t.Helper()
			return "cluster://" + storagetest.StartCluster(t, false)[0].Address
		},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: each uses all processors
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "../...")
			cmd.Env = append(os.Environ(), "MODELRELAY_TEST_REDIS="+start(t), "MODELRELAY_TEST_FULL=")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
