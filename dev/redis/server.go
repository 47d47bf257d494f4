package redis

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"modelrelay/dev/loopback"
	"modelrelay/dev/process"
)

// stopGrace is what redis-server gets to write its file out.
const stopGrace = 10 * time.Second

// runServer owns one redis-server: the child ends with this process, whatever ends it.
func runServer(ctx context.Context, path string, o Options) error {
	addr, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	cmd := exec.Command(path, //nolint:gosec,noctx // the path comes from PATH; Stop ends it, not a context
		"--bind", addr.Addr().String(), "--port", strconv.Itoa(int(addr.Port())), "--dir", o.Data,
		"--appendonly", "yes", "--appendfsync", "everysec", "--save", "",
		"--daemonize", "no")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	child, err := process.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return fmt.Errorf("start redis-server: %w", err)
	}
	ready := make(chan error, 1)
	asking, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	go func() { ready <- ping(asking, addr.String()) }()
	for {
		select {
		case err := <-ready:
			if ctx.Err() != nil {
				ready = nil
				continue
			}
			if err != nil {
				_ = child.Stop(stopGrace) // the failed start is the news
				return err
			}
			ready = nil
			o.Ready(addr.String())
		case <-child.Done():
			return fmt.Errorf("redis-server ended: %v", child.Err()) //nolint:errorlint // nil after status 0
		case <-ctx.Done():
			if err := child.Stop(stopGrace); err != nil {
				return fmt.Errorf("stop redis-server: %w", err)
			}
			return nil
		}
	}
}
