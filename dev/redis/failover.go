package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"modelrelay/dev/loopback"
	"modelrelay/dev/supervise"
)

// Master is the name that the sentinels have for the primary.
const Master = "main"

// SentinelCount is how many sentinels there are; two of them have to agree that the primary is gone.
const SentinelCount = 3

const (
	quorum = SentinelCount/2 + 1
	// downAfter is how long the primary may be silent. A busy machine keeps a process waiting for a second or two.
	downAfter = 5 * time.Second
	// failoverTimeout bounds each step of a failover.
	failoverTimeout = 15 * time.Second
	// serverPause is when a server that ended comes back: later than the sentinels have put the other one in its place, as after
	// the end of a machine.
	serverPause = 15 * time.Second
)

// FailoverOptions says where Redis with a replica and sentinels listens.
type FailoverOptions struct {
	Options

	// Sentinels are the addresses of the sentinels, SentinelCount of them; port 0 picks one.
	Sentinels []string
	// Unit is called with the name and the id of each process that starts, the first time and again.
	Unit func(name string, pid int)
}

// node is one of the two servers. Which of them is the primary changes, so their folders are named for neither.
type node struct {
	name, dir string
	addr      netip.AddrPort
}

// RunFailover serves a primary, a replica and sentinels, each a process of its own that is started again when it ends, until
// ctx ends. At the start the primary is at the address Listen; after a failover it is where the sentinels say. A failover loses
// what the primary had acknowledged and not yet sent to its replica.
func RunFailover(ctx context.Context, o FailoverOptions) (err error) {
	path := Server()
	if path == "" {
		return ErrMissing
	}
	if len(o.Sentinels) != SentinelCount {
		return fmt.Errorf("%d addresses of sentinels, want %d", len(o.Sentinels), SentinelCount)
	}
	listen, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	other, err := loopback.Address(netip.AddrPortFrom(listen.Addr(), 0).String())
	if err != nil {
		return fmt.Errorf("find a free address: %w", err)
	}
	// The one that was the primary has what counts.
	primary, replica := node{name: "redis-1"}, node{name: "redis-2"}
	if o.promoted(replica.name) {
		primary, replica = replica, primary
	}
	primary.addr, replica.addr = listen, other
	group := supervise.New(ctx, o.Log, o.Unit)
	defer func() {
		if err = errors.Join(err, group.Stop()); ctx.Err() != nil {
			err = nil // asked to end while still starting
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, n := range []node{primary, replica} {
		n.dir = filepath.Join(o.Data, n.name)
		text := fmt.Sprintf("bind %s\nport %d\ndir %q\nappendonly yes\nappendfsync everysec\nsave \"\"\n", n.addr.Addr(), n.addr.Port(), n.dir)
		if n.addr == replica.addr {
			text += fmt.Sprintf("replicaof %s %d\n", primary.addr.Addr(), primary.addr.Port())
		}
		unit, err := configured(path, n.name, n.dir, n.addr, text)
		if err != nil {
			return err
		}
		unit.Pause = serverPause
		if err := group.Start(starting, unit); err != nil {
			return err
		}
	}
	for i, want := range o.Sentinels {
		addr, err := loopback.Address(want)
		if err != nil {
			return fmt.Errorf("address of a sentinel: %w", err)
		}
		name := fmt.Sprintf("sentinel-%d", i+1)
		dir := filepath.Join(o.Data, name)
		text := fmt.Sprintf("bind %s\nport %d\ndir %q\nsentinel monitor %s %s %d %d\nsentinel down-after-milliseconds %s %d\nsentinel failover-timeout %s %d\n",
			addr.Addr(), addr.Port(), dir, Master, primary.addr.Addr(), primary.addr.Port(), quorum,
			Master, downAfter.Milliseconds(), Master, failoverTimeout.Milliseconds())
		unit, err := configured(path, name, dir, addr, text, "--sentinel")
		if err != nil {
			return err
		}
		if err := group.Start(starting, unit); err != nil {
			return err
		}
	}
	if err := synchronous(starting, primary.addr.String(), o.Log); err != nil {
		return err
	}
	o.Ready(listen.String())
	<-ctx.Done()
	return nil
}

// promoted reports whether the sentinels of an earlier run had made the server with that name the primary: they note its port.
func (o FailoverOptions) promoted(name string) bool {
	server, err := os.ReadFile(filepath.Join(o.Data, name, confName)) //nolint:gosec // a name of ours in our folder
	if err != nil {
		return false
	}
	port, ok := word(string(server), "port")
	if !ok {
		return false
	}
	votes := 0
	for i := range SentinelCount {
		text, err := os.ReadFile(filepath.Join(o.Data, fmt.Sprintf("sentinel-%d", i+1), confName))
		if err != nil {
			continue
		}
		if monitored, ok := word(string(text), "sentinel monitor "+Master+" 127.0.0.1"); ok && monitored == port {
			votes++
		}
	}
	return votes >= quorum
}

// word is the word after the beginning of a line.
func word(text, beginning string) (string, bool) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, beginning+" "); ok {
			word, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			return word, true
		}
	}
	return "", false
}

// confName is the file that Redis and the sentinels rewrite when roles change.
const confName = "redis.conf"

// configured is a unit of redis-server with a configuration of its own.
func configured(path, name, dir string, addr netip.AddrPort, text string, more ...string) (supervise.Unit, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return supervise.Unit{}, fmt.Errorf("create a folder: %w", err)
	}
	file := filepath.Join(dir, confName)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return supervise.Unit{}, fmt.Errorf("write the configuration of %s: %w", name, err)
	}
	return supervise.Unit{
		Name: name, Grace: stopGrace,
		Command: func() *exec.Cmd {
			cmd := exec.Command(path, append([]string{file}, more...)...) //nolint:gosec,noctx // the path comes from PATH; the group ends it
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			return cmd
		},
		Ready: func(ctx context.Context) error { return ping(ctx, addr.String()) },
	}, nil
}

// synchronous waits until the replica has all of the primary's data: before that no server can take its place.
func synchronous(ctx context.Context, primary string, log *slog.Logger) error {
	c := goredis.NewClient(&goredis.Options{Addr: primary, MaxRetries: -1})
	defer c.Close() //nolint:errcheck // nothing is pending on it
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		text, err := c.Info(ctx, "replication").Result()
		if err == nil && strings.Contains(text, "state=online") {
			return nil
		}
		select {
		case <-ctx.Done():
			log.Error("the replica does not follow", "replication", text)
			return fmt.Errorf("the replica does not follow: %w", errors.Join(err, ctx.Err()))
		case <-tick.C:
		}
	}
}
