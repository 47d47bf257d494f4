package temporal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"go.temporal.io/server/common/primitives"

	"modelrelay/dev/loopback"
	"modelrelay/dev/postgres"
	"modelrelay/dev/supervise"
)

// PostgresUnit is the name of the database among the processes of a production server. The others are named for their roles,
// with a number where there are two.
const PostgresUnit = "postgres"

const (
	// roleGrace is what a role gets to hand over what it does, postgresGrace what PostgreSQL gets to write its files out.
	roleGrace     = 10 * time.Second
	postgresGrace = 20 * time.Second
	schemaTimeout = time.Minute
	// passable lets PostgreSQL, which may run as another user, reach its folder, and see nothing else.
	passable = 0o711
)

// Production says what else a server of separate processes needs.
type Production struct {
	Options

	// Program is this program, whose sub-commands temporal-role and temporal-schema the processes are.
	Program string
	// LogLevel is that of the roles' own words.
	LogLevel slog.Level
	// Unit is called with the name and the id of each process that starts, the first time and again.
	Unit func(name string, pid int)
}

// role is one process of the server.
type role struct {
	name, unit string
}

func roles() []role {
	frontend, history := string(primitives.FrontendService), string(primitives.HistoryService)
	matching, worker := string(primitives.MatchingService), string(primitives.WorkerService)
	return []role{{history, "history-1"}, {history, "history-2"}, {matching, matching}, {frontend, frontend}, {worker, worker}}
}

// RunProduction is Run with PostgreSQL and each role as a process of its own: any of them may be killed, is started again after
// a pause, and nothing that was acknowledged is lost.
func RunProduction(ctx context.Context, o Production) (err error) {
	frontend, page, err := o.addresses()
	if err != nil {
		return err
	}
	store, err := free(frontend.Addr())
	if err != nil {
		return err
	}
	if err := os.Chmod(o.Data, passable); err != nil {
		return fmt.Errorf("open the folder of the data: %w", err)
	}
	server, err := postgres.New(ctx, filepath.Join(o.Data, "postgres"), store)
	if err != nil {
		return err
	}
	group := supervise.New(ctx, o.Log, o.Unit)
	defer func() {
		if err = errors.Join(err, group.Stop()); ctx.Err() != nil {
			err = nil // asked to end while still starting
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := group.Start(starting, supervise.Unit{
		Name: PostgresUnit, Command: server.Command, Ready: server.Ready, Ask: syscall.SIGINT, Grace: postgresGrace,
	}); err != nil {
		return err
	}
	if err := o.schema(starting, server.Addr()); err != nil {
		return err
	}
	for _, r := range roles() {
		unit, err := o.role(r, frontend, server.Addr())
		if err != nil {
			return err
		}
		if err := group.Start(starting, unit); err != nil {
			return err
		}
	}
	return serve(ctx, o.Options, frontend, page)
}

// schema runs the tool in a process of its own, which it ends when it fails.
func (o Production) schema(ctx context.Context, store string) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Program, "temporal-schema", "--store", store) //nolint:gosec // this program
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the schema: %w\n%s", err, out)
	}
	return nil
}

// role is the unit of a role. Only the frontend has a fixed address.
func (o Production) role(r role, frontend netip.AddrPort, store string) (supervise.Unit, error) {
	membership, err := free(frontend.Addr())
	if err != nil {
		return supervise.Unit{}, err
	}
	listen := frontend
	if r.name != string(primitives.FrontendService) {
		if listen, err = free(frontend.Addr()); err != nil {
			return supervise.Unit{}, err
		}
	}
	return supervise.Unit{
		Name: r.unit, Grace: roleGrace,
		Command: func() *exec.Cmd {
			cmd := exec.Command(o.Program, "temporal-role", "--log-level", o.LogLevel.String(), "--role", r.name, "--listen", listen.String(), //nolint:gosec,noctx // this program; the group ends it
				"--membership", membership.String(), "--frontend", frontend.String(), "--store", store,
				"--data", filepath.Join(o.Data, "roles", r.unit))
			cmd.Stderr = os.Stderr
			return cmd
		},
		Ready: func(ctx context.Context) error {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", listen.String())
			if err != nil {
				return err
			}
			return conn.Close()
		},
	}, nil
}

// free is an address that is not in use.
func free(at netip.Addr) (netip.AddrPort, error) {
	addr, err := loopback.Address(netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return addr, fmt.Errorf("find a free address: %w", err)
	}
	return addr, nil
}
