package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"modelrelay/dev/checkout"
	"modelrelay/dev/process"
)

// chaosCommand makes every service fail at random while tasks run, and checks their ends. It starts TestChaos of dev/e2e.
type chaosCommand struct {
	Parts   kinds  `enum:"embedded,production" default:"production" help:"The kind of services: embedded or production."`
	Tasks   int    `default:"300" help:"How many tasks clients ask for; 5000 is a load for a machine of eight cores."`
	Minutes int    `default:"3" help:"How long processes are killed and stopped, and links cut; tasks come during the first two thirds of it."`
	Workers int    `default:"3" help:"Worker processes beside the two gateways, one of which has a worker too."`
	Seed    uint64 `default:"0" help:"The same troubles in the same order; 0: a random seed, which is printed."`
}

const (
	maxChaosTasks   = 20_000
	maxChaosMinutes = 120
	maxChaosWorkers = 16
	// chaosBuild and chaosJudging are what the build of everything, and the end of all tasks with the verdict, may take next to the
	// troubles.
	chaosBuild, chaosJudging = 30 * time.Minute, time.Hour
	chaosGrace               = time.Minute
)

// Run fails when a task is lost, paid twice, has the wrong bytes, or does not end.
func (c *chaosCommand) Run(e environment) error {
	switch {
	case c.Tasks < 1 || c.Tasks > maxChaosTasks:
		return fmt.Errorf("--tasks %d is not between 1 and %d", c.Tasks, maxChaosTasks)
	case c.Minutes < 1 || c.Minutes > maxChaosMinutes:
		return fmt.Errorf("--minutes %d is not between 1 and %d", c.Minutes, maxChaosMinutes)
	case c.Workers < 1 || c.Workers > maxChaosWorkers:
		return fmt.Errorf("--workers %d is not between 1 and %d", c.Workers, maxChaosWorkers)
	}
	root, err := checkout.Root(e.home)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if e.goRun {
		var release context.CancelFunc
		ctx, release = process.FollowParent(ctx)
		defer release()
	}
	if c.Parts == production {
		if err := prepareProduction(ctx, e.stderr); err != nil {
			return err
		}
	}
	trouble := time.Duration(c.Minutes) * time.Minute
	cmd := exec.Command("go", "test", "-count=1", "-v", "-run", "^TestChaos$", "-timeout", (chaosBuild + trouble + chaosJudging).String(), ".", //nolint:gosec,noctx // numbers; Stop ends it in order
		"-chaos-tasks", fmt.Sprint(c.Tasks), "-chaos-for", trouble.String(), "-chaos-seed", fmt.Sprint(c.Seed), "-chaos-workers",
		fmt.Sprint(c.Workers))
	cmd.Dir = filepath.Join(root, "dev", "e2e")
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+cmd.Dir, "MODELRELAY_TEST_FULL=1", "MODELRELAY_TEST_PARTS="+string(c.Parts))
	cmd.Stdout, cmd.Stderr = e.stdout, e.stderr
	child, err := process.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return fmt.Errorf("start the test: %w", err)
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		return child.Stop(chaosGrace)
	}
	if err := child.Err(); err != nil {
		return fmt.Errorf("what went wrong stands above, and in the summary at the end: %w", err)
	}
	return nil
}
