package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/api/admin"
	"modelrelay/api/edge"
	"modelrelay/api/videos"
	"modelrelay/cmd/gateway/docs"
	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/engine"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/audit"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/responses"
	"modelrelay/storage/signatures"
	"modelrelay/storage/stickiness"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// parts are the components of the program for one configuration. None requires Redis, Temporal or the archive at the start.
type parts struct {
	cfg      config.Config
	loaded   atomic.Pointer[config.Config] // cfg with the changes of the last reload
	log      *slog.Logger
	tracer   trace.Tracer // nil: no traces
	redis    redis.UniversalClient
	temporal *engine.Engine
	operator *tasks.Operator
	archive  *archive.Store
	events   *eventlog.Log
	*upstreams
	// operators may use /admin.
	operators *admin.Operators
	audit     *audit.Log
	metrics   *metrics.Metrics
	// receivers are the clients of webhook receivers.
	receivers *activities.Receivers
}

// buffersPerCopy is the number of the archive's buffers for a copy: one is filled while the other is sent. There are enough for all copies
// of a worker, so that no copy waits for the source of another.
const buffersPerCopy = 2

// vendorTable returns the table of vendors for commands that send no requests.
func vendorTable() providers.Catalog { return vendors.New(upstream.NewClient(nil)) }

// wire makes the components that API and worker share. Main's Close releases them.
func (m *Main) wire(cfg config.Config) (*parts, error) {
	p := &parts{cfg: cfg, log: newLogger(m.Stderr, cfg.Log), tracer: m.tracer}
	p.loaded.Store(&cfg)
	var err error
	if p.redis, err = storage.OpenRedis(cfg.Redis.URL.Reveal(), cfg.Redis.Options()); err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	m.onClose(p.redis.Close)
	build := buildinfo.Read()
	options := metrics.Options{Version: build.Version, Commit: build.Commit, GoVersion: build.Go, Models: cfg.Metrics.Models, Log: p.log}
	if p.metrics, err = metrics.New(options); err != nil {
		return nil, err
	}
	if p.temporal, err = engine.Open(cfg.Temporal, &engine.Options{Log: p.log, Counts: p.metrics.Temporal(), Tracer: p.tracer}); err != nil {
		return nil, err
	}
	m.onClose(func() error { p.temporal.Close(); return nil })
	p.operator = tasks.NewOperator(p.temporal, cfg.Temporal.Namespace, cfg.Temporal.TaskQueue)
	p.operator.Charges, p.operator.Changes = p.budgets(), taskindex.NewChanges(p.redis)
	if p.archive, err = archive.New(cfg.Archive.Store(buffersPerCopy * cfg.Video.Copies)); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	p.events = p.eventLog()
	p.upstreams = m.openUpstreams(cfg, p.redis, p.log)
	p.metrics.Learn(cfg.Routes(), cfg.Named(), p.catalog)
	p.receivers = activities.NewReceivers(activities.ReceiversOptions{
		Agent:        buildinfo.Read().Agent(),
		AllowPrivate: cfg.Webhooks.AllowPrivateNetworks,
	})
	m.onClose(func() error { p.receivers.Close(); return nil })
	p.audit = audit.New(p.redis, p.log)
	p.operators = admin.NewOperators(operatorKeys(cfg))
	return p, nil
}

// current returns the last loaded configuration.
func (p *parts) current() config.Config { return *p.loaded.Load() }

// openTokens opens the token store with the tokens in Redis. Main's Close stops it.
func (p *parts) openTokens(m *Main) *tokens.Store {
	tokens := tokens.New(p.redis, &tokens.Options{Grace: p.cfg.Relay.RedisGrace, Log: p.log})
	tokens.SetGroups(p.cfg.GroupLimits())
	m.onClose(func() error { tokens.Close(); return nil })
	return tokens
}

// seedTokens opens the token store and stores the file's tokens in it. Main's Close stops it.
func (p *parts) seedTokens(ctx context.Context, m *Main) (*tokens.Store, error) {
	tokens := p.openTokens(m)
	if err := tokens.Seed(ctx, p.cfg.Seeds()); err != nil {
		return nil, fmt.Errorf("put the file's tokens into redis: %w", err)
	}
	return tokens, nil
}

// flushTimeout bounds the last writes to Redis at the end.
const flushTimeout = 5 * time.Second

// server returns the HTTP server. Main's Close writes the remaining data of limits and usage.
func (p *parts) server(m *Main, tokens *tokens.Store, tasks *tasks.Client) (*api.Server, error) {
	limits := limits.New(p.redis, &limits.Options{Log: p.log})
	m.onClose(p.flush("limits", limits.Close))
	usage := ledger.NewUsage(p.redis, &ledger.UsageOptions{Log: p.log})
	m.onClose(p.flush("usage", usage.Close))
	origins := stickiness.New(p.redis, p.log)
	m.onClose(func() error { origins.Close(); return nil })
	signatureStore := signatures.New(p.redis, p.log)
	m.onClose(func() error { signatureStore.Close(); return nil })
	stored := responses.New(p.redis, p.log)
	watched := metrics.Stores{Tokens: tokens, Limits: limits, Usage: usage}
	called := p.writeCalls(m, &watched)
	var links videos.Links
	if p.cfg.Video.PresignedURLs {
		links = p.archive
	}
	calls := relay.New(p.router, p.catalog, &relay.Options{
		MaxAttempts: p.cfg.Relay.MaxAttempts, FirstByte: p.cfg.Relay.FirstByteTimeout, Idle: p.cfg.Relay.IdleTimeout, Log: p.log,
		Translator: &translate.Translator{
			Signatures: signatureCache{signatureStore}, Responses: newResponseStore(stored, p.cfg.Responses.Retention),
		},
		Origins: stickyResponses{origins}, Tried: p.metrics.Tried, Tracer: p.tracer,
	})
	if err := p.metrics.WatchChannels(p.router.Health, calls.Waiting); err != nil {
		return nil, err
	}
	operators := p.admin(tokens)
	server := api.New(api.Options{
		Relay:  calls,
		Router: p.router,
		Tasks:  tasks,
		Operator: api.Operator{
			Admin: operators, AdminApart: p.cfg.Admin.Listen != "",
			Console: p.console(tokens, operators.Service), ConsoleApart: p.cfg.Console.Listen != "",
			Codec: api.Codec{Decode: p.temporal.DecodeJSON, Origin: p.cfg.Temporal.UIOrigin},
		},
		Options: edge.Options{
			Tokens: tokens, Proxies: p.cfg.Proxies(), Origins: p.cfg.CORS.Origins, PublicURL: strings.TrimRight(p.cfg.PublicURL, "/"),
			MaxBody: int64(p.cfg.Relay.MaxBody), BodyMemory: p.cfg.Relay.BodyMemory(memoryLimit(debug.SetMemoryLimit(-1))),
			Log: p.log, Seen: p.metrics.Seen, Called: called, Tracer: p.tracer,
		},
		Manual:    docs.Pages,
		Events:    p.events,
		CallTTL:   p.cfg.Background.Deadline + p.callRetention(),
		TokenByID: (&people{parts: p, tokens: tokens}).find,
		Stores: api.Stores{
			Limits: limits, Ledger: usage, Archive: p.archive, Links: links, Responses: stored,
			SaveResponse: saveResponse(newResponseStore(stored, p.callRetention())),
		},
		Prices:  p.prices,
		Forbids: func(group string) []string { return p.current().Forbids(group) },
		Priced:  p.catalog.Priced(),
		Health:  p.checks(tokens),
		Defaults: api.Defaults{
			DefaultVideoModel: p.cfg.Video.DefaultModel, DefaultModerationModel: p.cfg.Relay.ModerationModel,
			DefaultRealtimeModel: p.cfg.Relay.RealtimeModel,
		},
		Version: buildinfo.Read().Version,
	})
	return server, p.metrics.WatchServer(server, watched)
}

func (p *parts) tasks() *tasks.Client {
	return tasks.NewClient(p.temporal, tasks.ClientOptions{
		TaskQueue: p.cfg.Temporal.TaskQueue, CallQueue: p.cfg.Temporal.CallQueue, MaxCalls: p.cfg.Background.MaxQueued,
		CallLimits: workflows.Limits{
			Deadline: activities.Duration(p.cfg.Background.Deadline), Retention: activities.Duration(p.callRetention()),
		},
		Namespace: p.cfg.Temporal.Namespace,
		Objects:   p.archive, Repeats: taskindex.NewRepeats(p.redis), Index: p.index(), Changes: taskindex.NewChanges(p.redis),
		Budgets: p.budgets(), Prices: p.prices,
		Catalog: p.catalog, Footage: p.router.Footage,
		Limits: workflows.Limits{
			Queue:     activities.Duration(p.cfg.Video.QueueLimit),
			Deadline:  activities.Duration(p.cfg.Video.Deadline),
			Archive:   activities.Duration(p.cfg.Video.ArchiveDeadline),
			Retention: activities.Duration(p.cfg.Video.Retention),
			Jobs:      p.cfg.Video.JobAttempts,
		},
		PrivateWebhooks: p.cfg.Webhooks.AllowPrivateNetworks,
		Created:         p.metrics.Created,
		Log:             p.log,
	})
}

// index returns the list of tasks. It stores a task as long as Temporal surely has it.
func (p *parts) index() *taskindex.Index {
	return taskindex.New(p.redis, p.taskTTL())
}

// callRetention is how long a background call is kept after its end.
func (p *parts) callRetention() time.Duration {
	return cmp.Or(p.cfg.Background.Retention, p.cfg.Video.Retention)
}

// longestRetention is the longest retention of all kinds of tasks.
func (p *parts) longestRetention() time.Duration {
	return max(p.callRetention(), p.cfg.Video.Retention)
}

// taskTTL is the longest time from a task's creation to its removal, with the shortest permitted retention of the namespace.
func (p *parts) taskTTL() time.Duration {
	v := p.cfg.Video
	return v.QueueLimit + v.Deadline + v.ArchiveDeadline + workflows.RequiredRetention(p.longestRetention())
}

// budgets manages the money of tokens. It stores the end of a task as long as an operator may retry its archiving.
func (p *parts) budgets() *ledger.Budgets {
	return ledger.NewBudgets(p.redis, workflows.RequiredRetention(p.longestRetention()))
}

// checks are the checks of /readyz. Its answer is public, so it names a service that does not answer without its address. Relayed calls
// require only a check of keys. While Redis does not answer, the token store's memory suffices for relay.redis_grace.
func (p *parts) checks(tokens *tokens.Store) []api.Check {
	return []api.Check{
		{Name: "tokens", For: api.RelayPart, Check: func(context.Context) error {
			if !tokens.Ready() {
				return errAway
			}
			return nil
		}},
		{Name: "redis", For: api.VideoPart, Check: func(ctx context.Context) error { return away(storage.PingRedis(ctx, p.redis)) }},
		{Name: "temporal", For: api.VideoPart, Check: func(ctx context.Context) error { return p.checkTemporal(ctx) }},
		{Name: "archive", For: api.VideoPart, Check: func(ctx context.Context) error { return away(p.archive.Ping(ctx)) }},
	}
}

// errAway is what unauthenticated clients learn about a service that does not answer.
var errAway = errors.New("unavailable")

func away(err error) error {
	if err == nil {
		return nil
	}
	return errAway
}

// checkTemporal names the commands that fix a misconfigured namespace.
func (p *parts) checkTemporal(ctx context.Context) error {
	if p.temporal.Reach(ctx) != nil {
		return errAway
	}
	err := p.temporal.Namespace.Check(ctx, p.longestRetention())
	if lackErr := (*workflows.MissingError)(nil); errors.As(err, &lackErr) {
		return lackErr
	}
	return away(err)
}

// flush closes a component that may have unwritten data. If Redis does not answer, this is not an error of the process.
func (p *parts) flush(part string, end func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := end(ctx); err != nil {
			p.log.Warn("some numbers were lost", "part", part, "error", err)
		}
		return nil
	}
}
