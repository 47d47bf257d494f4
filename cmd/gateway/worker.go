package main

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"modelrelay/activities"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/slots"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

type workerCmd struct{}

// Run works on tasks until ctx ends, then waits for the answers of running submits.
func (workerCmd) Run(ctx context.Context, m *Main, g *cli.Globals) error {
	p, watch, err := m.start(ctx, g)
	if err != nil {
		return err
	}
	defer p.spareCollections(m.Env)()
	tokens := p.openTokens(m)
	server, err := p.server(m, tokens, p.tasks())
	if err != nil {
		return err
	}
	countTasks, closeMetrics, err := p.measure(ctx)
	if err != nil {
		return err
	}
	defer closeMetrics()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { p.attend(ctx, watch, nil, countTasks) })
	p.log.Info("working", "task_queue", p.cfg.Temporal.TaskQueue, "channels", len(p.cfg.Channels))
	runWorker(ctx, p.worker(tokens, server), p.log)
	return nil
}

// runWorker works until ctx ends. It restarts a worker that Temporal refused.
func runWorker(ctx context.Context, worker *workflows.Worker, log *slog.Logger) {
	for {
		err := worker.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		log.Error("worker stopped, it is started again", "error", err, "after", retryAfter.String())
		if storage.Sleep(ctx, retryAfter) != nil {
			return
		}
	}
}

// worker returns the worker. The tokens are for webhooks, and calls serves background calls.
func (p *parts) worker(tokens *tokens.Store, calls activities.Caller) *workflows.Worker {
	return workflows.NewWorker(p.temporal.Client, newActivities(p, tokens, calls), workflows.WorkerOptions{
		Namespace: p.temporal.Namespace, TaskQueue: p.cfg.Temporal.TaskQueue, Retention: p.longestRetention(), Log: p.log,
		CallQueue: p.cfg.Temporal.CallQueue, Calls: p.cfg.Background.MaxCalls, Grace: p.cfg.Relay.Grace,
		Version: p.temporal.Version(p.cfg),
	})
}

// repeatsLost reports whether a background call is sent again if the channel lost its answer. A call that the vendor runs is never sent
// again.
func (p *parts) repeatsLost(runs bool, name string) bool {
	channel, _ := p.router.Channel(name)
	if channel.RunsBackground && runs {
		return false
	}
	return cmp.Or(channel.LostAnswer, p.cfg.Background.LostAnswer) == providers.LostRepeat
}

func newActivities(p *parts, tokens *tokens.Store, calls activities.Caller) *activities.Activities {
	var (
		recorder   = activities.Recorder(p.metrics.Step)
		executions = tasks.NewExecutions(p.temporal, p.cfg.Temporal.Namespace, p.cfg.Temporal.TaskQueue)
		upstreams  = &activities.Upstreams{Channels: p.router, Catalog: p.catalog, Shares: activities.UpstreamShares(), Tracer: p.tracer}
		keeper     = &activities.SlotKeeper{Slots: slots.New(p.redis), Upstreams: upstreams, Log: p.log}
		listing    = &activities.Listing{Index: p.index(), Changes: taskindex.NewChanges(p.redis), Log: p.log}
	)
	poller := &activities.Poller{
		Upstreams: upstreams, SlotKeeper: keeper, Listing: listing, Durations: taskindex.NewDurations(p.redis),
		PollMin: p.cfg.Video.PollMin, PollMax: p.cfg.Video.PollMax, Record: recorder, Log: p.log,
	}
	return &activities.Activities{
		Admitter:  &activities.Admitter{Upstreams: upstreams, SlotKeeper: keeper, Listing: listing, Record: recorder, Log: p.log},
		Submitter: &activities.Submitter{Upstreams: upstreams, SlotKeeper: keeper, Objects: p.archive, Record: recorder, Log: p.log},
		Poller:    poller,
		Copier: &activities.Copier{
			Upstreams: upstreams, Objects: p.archive, Copies: activities.NewCopyLimit(p.cfg.Video.Copies),
			MaxOutputBytes: int64(p.cfg.Video.MaxOutputBytes), Record: recorder, Log: p.log,
		},
		Settler: &activities.Settler{
			SlotKeeper: keeper, Listing: listing, Budgets: p.budgets(), Prices: p.prices, Record: recorder,
		},
		Deliverer: &activities.Deliverer{
			Listing: listing, Webhooks: tokens, Receivers: p.receivers, Shares: activities.DeliveryShares(), Objects: p.archive, Tracer: p.tracer,
			Record: recorder,
			Log:    p.log,
		},
		Remover: &activities.Remover{Upstreams: upstreams, Index: listing.Index, Executions: executions, Objects: p.archive, Log: p.log},
		Relayer: &activities.Relayer{
			Listing: listing, Upstreams: upstreams, Polls: poller, Caller: calls, Objects: p.archive, Events: p.events,
			Budgets: p.budgets(), Slots: activities.CallShares(int64(p.cfg.Background.MaxCalls)), MaxOutput: int64(p.cfg.Background.MaxOutput),
			Answers: activities.AnswerMemory(), Large: activities.LargeCalls(),
			Repeats: p.repeatsLost, Grace: p.cfg.Relay.Grace, Running: new(activities.RunningCalls),
			Record: recorder, Log: p.log,
		},
		Sweeper: &activities.Sweeper{
			Upstreams: upstreams, Objects: p.archive, Executions: executions, Audit: p.audit, TaskAge: p.taskTTL(),
			UploadAge:      p.cfg.Video.ArchiveDeadline,
			AuditRetention: p.cfg.Audit.Retention, CallsRetention: p.cfg.Calls.Retention, Log: p.log,
		},
	}
}
