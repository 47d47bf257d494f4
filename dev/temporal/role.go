package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"go.temporal.io/server/common/config"
	postgresplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/temporal"
	"go.temporal.io/server/tools/sql"

	"modelrelay/dev/loopback"
	"modelrelay/dev/postgres"
)

const (
	database           = "temporal"
	visibilityDatabase = "temporal_visibility"
	// shards is how many parts the history processes share. It is fixed when a database is made. Each costs some memory, some
	// connections and some work when idle: 8 are enough for a machine, a cluster has 512 or more.
	shards = 8
	// mainConns and visibilityConns are the most connections of a process to each database.
	mainConns, visibilityConns = 30, 10
	connLifetime               = time.Hour
	// joinTimeout bounds how long a process looks for the others.
	joinTimeout = 30 * time.Second
)

// RoleOptions says what one process of a Temporal server does.
type RoleOptions struct {
	// Role is frontend, history, matching or worker.
	Role string
	// Listen is where it serves gRPC, Membership where the processes find each other.
	Listen, Membership string
	// Frontend is the address of the frontend.
	Frontend string
	// Store is the address of PostgreSQL, whose schema must be there.
	Store string
	// Ready is called once, with the address, when it has started.
	Ready func(addr string)
	// Log receives the server's own words.
	Log *slog.Logger
}

// RunRole serves one role until ctx ends, then leaves the other processes in order and returns nil.
func RunRole(ctx context.Context, o RoleOptions) error {
	if !slices.Contains(temporal.DefaultServices, o.Role) {
		return fmt.Errorf("there is no role %q, but %v", o.Role, temporal.DefaultServices)
	}
	listen, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	membership, err := loopback.Address(o.Membership)
	if err != nil {
		return fmt.Errorf("membership address: %w", err)
	}
	cfg := baseConfig(o.Frontend, database, visibilityDatabase, shards, map[string]config.DataStore{
		database:           {SQL: postgresStore(o.Store, database, mainConns)},
		visibilityDatabase: {SQL: postgresStore(o.Store, visibilityDatabase, visibilityConns)},
	})
	cfg.Global.Membership = config.Membership{MaxJoinDuration: joinTimeout, BroadcastAddress: membership.Addr().String()}
	// Every process has to know the names of all roles. Where the others listen they tell each other.
	for _, name := range temporal.DefaultServices {
		cfg.Services[name] = config.Service{RPC: roleRPC(listen, membership)}
	}
	server, err := assemble(cfg, o.Log, temporal.ForServices([]string{o.Role}))
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return fmt.Errorf("start the %s role: %w", o.Role, err)
	}
	o.Ready(listen.String())
	<-ctx.Done()
	if err := server.Stop(); err != nil {
		o.Log.Error("the role did not stop cleanly", "role", o.Role, "error", err)
	}
	return nil
}

func roleRPC(listen, membership netip.AddrPort) config.RPC {
	return config.RPC{GRPCPort: int(listen.Port()), MembershipPort: int(membership.Port()), BindOnIP: listen.Addr().String()}
}

// postgresStore describes a database.
func postgresStore(addr, name string, connections int) *config.SQL {
	return &config.SQL{
		PluginName: postgresplugin.PluginNamePGX, DatabaseName: name,
		ConnectAddr: addr, ConnectProtocol: "tcp", User: postgres.User,
		MaxConns: connections, MaxIdleConns: connections, MaxConnLifetime: connLifetime,
	}
}

// Schema brings both databases at addr to the version of this server, by the server's own tool. Where there is nothing to do it
// does nothing. The tool ends the process with status 1 when it fails.
func Schema(addr string) error {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return fmt.Errorf("address of PostgreSQL: %w", err)
	}
	for _, one := range []struct{ database, versions string }{
		{database, "postgresql/v12/temporal"}, {visibilityDatabase, "postgresql/v12/visibility"},
	} {
		for _, step := range [][]string{
			{"create-database"}, {"setup-schema", "--version", "0.0"}, {"update-schema", "--schema-name", one.versions},
		} {
			args := append([]string{
				"temporal-sql-tool", "--plugin", postgresplugin.PluginNamePGX, "--endpoint", at.Addr().String(), "--port", fmt.Sprint(at.Port()),
				"--user", postgres.User, "--database", one.database,
			}, step...)
			if err := sql.RunTool(args); err != nil {
				return fmt.Errorf("%s of %s: %w", step[0], one.database, err)
			}
		}
	}
	return nil
}
