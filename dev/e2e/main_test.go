package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"modelrelay/dev/e2e/stack"
)

// recordHistories writes the histories of the tasks that TestHistories plays to workflows/testdata/histories.
var recordHistories = flag.Bool("record-histories", false, "write the workflow histories that replay_test.go replays")

// moneyCalls and moneyTasks are how much TestMoneyAddsUp does, by default little enough for every day; the whole is 5000 and 500.
var (
	moneyCalls = flag.Int("money-calls", 500, "calls of TestMoneyAddsUp")
	moneyTasks = flag.Int("money-tasks", 30, "video tasks of TestMoneyAddsUp")
	moneySeed  = flag.Uint64("money-seed", 1, "what TestMoneyAddsUp asks for; 0: something else each time")
)

// removals is how many tasks TestManyRemovals removes at once, twice, by default enough for every day; the whole is 1000.
var removals = flag.Int("removals", 30, "video tasks that TestManyRemovals removes at once")

// previous is the gateway that TestTakeover takes over from.
var previous = flag.String("previous", "", "path of a gateway binary of the version before, for TestTakeover")

// drive makes this binary the load driver of TestStreamsOnOneCore, a process of its own.
var drive = flag.String("drive-streams", "", "open streams at this address instead of testing, and check them")

const (
	// buildTimeout leaves room for the first compile of the Temporal server.
	buildTimeout = 25 * time.Minute
	repo         = "../.."
	// atOnce is how many tests run together on a machine with fewer processors. Crash tests wait for timeouts most of the time.
	atOnce = 8
)

func TestMain(m *testing.M) {
	flag.Parse()
	if *drive != "" {
		os.Exit(driveStreams(context.Background(), *drive))
	}
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "end-to-end tests left out: -short")
		os.Exit(0)
	}
	if *recordHistories { // some are of tests of the full set
		_ = os.Setenv(stack.FullKey, "1")
	}
	if err := together(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// together raises how many tests run at once, unless the command line says it.
func together() error {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said || runtime.GOMAXPROCS(0) >= atOnce {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(atOnce))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "modelrelay-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	if err := stack.Build(ctx, repo, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	documented, err := stack.NewOpenAPICheck(stack.Bin.Gateway, http.DefaultTransport)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	http.DefaultTransport = documented
	defer stack.EndShared()
	code := m.Run()
	if !documented.Verdict() && code == 0 {
		code = 1
	}
	return code
}
