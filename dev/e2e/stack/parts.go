package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelrelay/storage/testport"
	"modelrelay/storage/testwait"
)

// PartKind is a kind of the services that stacks have.
type PartKind string

// The kinds. Embedded parts are one process each. Of Production's, Temporal is a process for each role on PostgreSQL, Redis a
// primary with a replica and sentinels, and the store MinIO; each of those processes is started again when it ends.
const (
	Embedded   PartKind = "embedded"
	Production PartKind = "production"
)

// partsKey is the environment variable that says which kind of parts stacks have.
const partsKey = "MODELRELAY_TEST_PARTS"

// Parts is the kind that stacks have: Embedded unless MODELRELAY_TEST_PARTS says "production".
func Parts() PartKind {
	if kind := PartKind(os.Getenv(partsKey)); kind != "" {
		return kind
	}
	return Embedded
}

// NeedProduction skips a test where stacks have other parts.
func NeedProduction(t *testing.T) {
	t.Helper()
	if Parts() != Production {
		t.Skipf("of parts of production: %s=%s", partsKey, Production)
	}
}

// FullKey is the environment variable that asks for all tests.
const FullKey = "MODELRELAY_TEST_FULL"

// IsFull reports whether all tests run: MODELRELAY_TEST_FULL is set, or the parts are Production's, which only the full set has.
func IsFull() bool { return os.Getenv(FullKey) != "" || Parts() == Production }

// Full skips a test that the gate leaves out.
func Full(t *testing.T) {
	t.Helper()
	if !IsFull() {
		t.Skipf("part of the full set: %s=1", FullKey)
	}
}

// prepareParts makes sure that the machine has what the parts need.
func prepareParts(ctx context.Context) error {
	switch Parts() {
	case Embedded:
		return nil
	case Production:
		if out, err := exec.CommandContext(ctx, Bin.Dev, "install").CombinedOutput(); err != nil {
			return fmt.Errorf("prepare the parts of production: %w\n%s", err, out)
		}
		return nil
	default:
		return fmt.Errorf("%s is neither %s nor %s: %s", partsKey, Embedded, Production, Parts())
	}
}

// passable are the rights of a folder with data: PostgreSQL runs as a user of its own where this one is root.
const passable = 0o711

// dataFolder is a folder for one stack.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, one := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(one, passable); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sentinelCount is how many sentinels the development stack has, redisMaster their name for the primary.
const (
	sentinelCount = 3
	redisMaster   = "main"
)

func (s *Stack) claimSentinels() {
	if Parts() != Production {
		return
	}
	for range sentinelCount {
		s.Sentinels = append(s.Sentinels, testport.Address(s.T))
	}
}

// sentinel is a further member of the section redis of a configuration; "" where the stack has only one Redis.
func (s *Stack) sentinel() string {
	if len(s.Sentinels) == 0 {
		return ""
	}
	return fmt.Sprintf(", sentinel: {master: %s, addresses: [%s]}", redisMaster, strings.Join(s.Sentinels, ", "))
}

// Unit is the id of the process of a part of production that has the name now: "postgres", "history-1" and so on of Temporal,
// "redis-1", "redis-2" and "sentinel-1" to 3 of Redis, "minio" of the store.
func (p *Process) Unit(t *testing.T, name string) int {
	t.Helper()
	pid := 0
	for line := range strings.Lines(p.Out.Text()) {
		if rest, ok := strings.CutPrefix(line, "unit "+name+" "); ok {
			pid, _ = strconv.Atoi(strings.TrimSpace(rest)) // 0 for a line that is not whole
		}
	}
	if pid == 0 {
		t.Fatalf("%s has no process %s:\n%s", p.Name, name, p.Out.Tail(ShownLines))
	}
	return pid
}

// KillUnit ends a process of a part of production with SIGKILL. It is started again by the part.
func (p *Process) KillUnit(t *testing.T, name string) {
	t.Helper()
	if err := syscall.Kill(p.Unit(t, name), syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s of %s: %v", name, p.Name, err)
	}
}

// AwaitUnit returns when another process than the one with the id has the name: the part has started it again.
func (p *Process) AwaitUnit(t *testing.T, name string, before int) {
	t.Helper()
	testwait.Eventually(t, name+" is started again", ReadyTimeout, func() bool { return p.Unit(t, name) != before })
}

// Pause stops the process and all below it, as SIGSTOP does, until Resume.
func (p *Process) Pause() { signalTree(p.Cmd.Process.Pid, syscall.SIGSTOP) }

// Resume lets them go on.
func (p *Process) Resume() { signalTree(p.Cmd.Process.Pid, syscall.SIGCONT) }

// PauseUnit and ResumeUnit are Pause and Resume for one process of a part of production, by its id.
func PauseUnit(pid int) { signalTree(pid, syscall.SIGSTOP) }

// ResumeUnit ends PauseUnit.
func ResumeUnit(pid int) { signalTree(pid, syscall.SIGCONT) }

// signalTree sends a signal to a process and all below it, parents first. Those that have ended meanwhile are passed over.
func signalTree(pid int, signal syscall.Signal) {
	_ = syscall.Kill(pid, signal)
	for _, child := range children(pid) {
		signalTree(child, signal)
	}
}

// descendants are the processes below one, parents first.
func descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(append(all, child), descendants(child)...)
	}
	return all
}

// goneTries and goneInterval bound the wait for the end of a process that was killed and is no child of ours.
const (
	goneTries    = 2000
	goneInterval = 5 * time.Millisecond
)

// awaitGone returns when a process that was killed has ended: it is no more, or waits for its parent to ask how it ended.
func awaitGone(pid int) {
	tick := time.NewTicker(goneInterval)
	defer tick.Stop()
	for range goneTries {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		_, state, _ := strings.Cut(string(text), ") ") // behind the name, which is in brackets
		if strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X") {
			return
		}
		<-tick.C
	}
}

// children are the processes that a process has started and that are still there.
func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	var all []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil && !slices.Contains(all, child) {
				all = append(all, child)
			}
		}
	}
	return all
}
