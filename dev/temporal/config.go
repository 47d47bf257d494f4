package temporal

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"modelrelay/dev/loopback"
	"modelrelay/dev/settings"
)

const (
	clusterName = "active"
	storeName   = "sqlite"
	fileName    = "temporal.db"
)

// newServer prepares the database below data and assembles the four services around it. Only the frontend has a
// fixed address; the others find each other through a static list.
func newServer(frontend netip.AddrPort, data string, logger *slog.Logger) (temporal.Server, error) {
	store, err := openStore(filepath.Join(data, fileName))
	if err != nil {
		return nil, err
	}
	cfg := baseConfig(frontend.String(), storeName, storeName, 1, map[string]config.DataStore{storeName: {SQL: store}})
	hosts := map[primitives.ServiceName]static.Hosts{}
	for _, name := range temporal.DefaultServices {
		addr := frontend
		if name != string(primitives.FrontendService) {
			if addr, err = loopback.Address(netip.AddrPortFrom(frontend.Addr(), 0).String()); err != nil {
				return nil, fmt.Errorf("find a port for the %s service: %w", name, err)
			}
		}
		cfg.Services[name] = config.Service{RPC: config.RPC{GRPCPort: int(addr.Port()), BindOnIP: addr.Addr().String()}}
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(addr.String())
	}

	return assemble(cfg, logger, temporal.ForServices(temporal.DefaultServices), temporal.WithStaticHosts(hosts))
}

// baseConfig is what every server is configured with, whatever its store and its processes. frontend is where its own clients
// find it.
func baseConfig(frontend, store, visibility string, shards int32, stores map[string]config.DataStore) *config.Config {
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore:     store,
			VisibilityStore:  visibility,
			NumHistoryShards: shards,
			DataStores:       stores,
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
	cfg.NamespaceDefaults.Archival.History.State = config.ArchivalDisabled
	cfg.NamespaceDefaults.Archival.Visibility.State = config.ArchivalDisabled
	return cfg
}

// assemble makes the server of a configuration; more says which services it has.
func assemble(cfg *config.Config, logger *slog.Logger, more ...temporal.ServerOption) (temporal.Server, error) {
	words := serverLog{log: logger}
	authorizer, err := authorization.GetAuthorizerFromConfig(&cfg.Global.Authorization)
	if err != nil {
		return nil, fmt.Errorf("make the authorizer: %w", err)
	}
	claims, err := authorization.GetClaimMapperFromConfig(&cfg.Global.Authorization, words)
	if err != nil {
		return nil, fmt.Errorf("make the claim mapper: %w", err)
	}
	dynamic := dynamicconfig.StaticClient{}
	for key, value := range settings.DynamicConfig() {
		dynamic[dynamicconfig.MakeKey(key)] = value
	}
	server, err := temporal.NewServer(append(more,
		temporal.WithConfig(cfg),
		temporal.WithLogger(words),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamic),
	)...)
	if err != nil {
		return nil, fmt.Errorf("assemble the server: %w", err)
	}
	return server, nil
}

// openStore returns the settings of the database at file, which it first creates where there is none. The schema
// goes into a file of another name that is renamed when it is whole, so a kill in between leaves nothing half made.
func openStore(file string) (*config.SQL, error) {
	if _, err := os.Stat(file); os.IsNotExist(err) {
		fresh := file + ".new"
		if err := os.RemoveAll(fresh); err != nil {
			return nil, fmt.Errorf("remove an unfinished database: %w", err)
		}
		if err := sqlite.SetupSchema(sqlStore(fresh, "delete")); err != nil {
			return nil, fmt.Errorf("create the database: %w", err)
		}
		if err := os.Rename(fresh, file); err != nil {
			return nil, fmt.Errorf("put the database in place: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("look for the database: %w", err)
	}
	store := sqlStore(file, "wal")
	if err := trim(store); err != nil {
		return nil, fmt.Errorf("trim the database: %w", err)
	}
	attributes := map[string]enums.IndexedValueType{}
	for _, name := range settings.SearchAttributes() {
		attributes[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	namespace, err := sqlite.NewNamespaceConfig(clusterName, settings.Namespace, false, attributes)
	if err != nil {
		return nil, fmt.Errorf("describe the namespace: %w", err)
	}
	namespace.Detail.Config.Retention = durationpb.New(settings.Retention)
	// An existing namespace is left as it is; ensureNamespace brings it up to date.
	if err := sqlite.CreateNamespaces(store, namespace); err != nil {
		return nil, fmt.Errorf("create the namespace: %w", err)
	}
	return store, nil
}

// sqlStore describes one SQLite file. One connection: more make it slower and fail with "database is locked".
// synchronous=1 with a write-ahead log survives the death of the process at any moment; only the machine's own may
// take the last transactions along. 64 MB of pages stay in memory, where the default of 2 MB reads a database of some thousand
// tasks again and again, and the log is copied into the file by 32 MB, so that a page which every task writes is copied less often.
func sqlStore(file, journal string) *config.SQL {
	return &config.SQL{
		PluginName:   sqliteplugin.PluginName,
		DatabaseName: file,
		MaxConns:     1,
		MaxIdleConns: 1,
		ConnectAttributes: map[string]string{
			"mode": "rwc", "journal_mode": journal, "synchronous": "1", "cache_size": "-65536", "wal_autocheckpoint": "8000", "temp_store": "memory",
		},
	}
}
