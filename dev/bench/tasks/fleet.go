package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/redis"
)

// fleet is a deployment on one machine: services of a kind, several gateways without a worker, several workers. Each process is
// measured apart.
type fleet struct {
	temporal, redis, store *stage.Child
	apis, workers          []*stage.Child
	sentinels              []string
}

// fleet starts one. It ends with the stage.
func (b *Bench) fleet(ctx context.Context, o ScaleOptions) (*fleet, error) {
	f := new(fleet)
	if o.Parts == productionParts {
		for range redis.SentinelCount {
			addr, err := stage.FreeAddress()
			if err != nil {
				return nil, err
			}
			f.sentinels = append(f.sentinels, addr)
		}
	}
	sentinelArgs := []string{}
	for _, addr := range f.sentinels {
		sentinelArgs = append(sentinelArgs, "--sentinels", addr)
	}
	for _, part := range []struct {
		into *(*stage.Child)
		name string
		more []string
	}{
		{&f.temporal, "temporal", []string{"--ui", ""}},
		{&f.redis, "redis", sentinelArgs},
		{&f.store, "s3", []string{"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket}},
	} {
		addr, err := stage.FreeAddress()
		if err != nil {
			return nil, err
		}
		args := append([]string{part.name, "--parts", o.Parts, "--listen", addr, "--data", filepath.Join(b.Options.Data, "fleet-"+part.name)}, part.more...)
		c := &stage.Child{Name: part.name, Addr: addr}
		if *part.into, err = b.Start(ctx, c, func(context.Context, string) error { return c.Said("ready ") }, b.Options.Program, args...); err != nil {
			return nil, err
		}
	}
	for i := range o.Workers {
		c, err := b.member(ctx, f, fmt.Sprintf("worker-%d", i+1), stage.Runs, "worker")
		if err != nil {
			return nil, err
		}
		f.workers = append(f.workers, c)
	}
	for i := range o.APIs {
		c, err := b.member(ctx, f, fmt.Sprintf("api-%d", i+1), b.Answers("/readyz?for=video"), "serve", "--worker=false")
		if err != nil {
			return nil, err
		}
		f.apis = append(f.apis, c)
	}
	return f, nil
}

// member starts a gateway process.
func (b *Bench) member(ctx context.Context, f *fleet, name string, ready func(context.Context, string) error, args ...string) (*stage.Child, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	config, err := b.WriteConfig(name+".yaml", b.fleetConfig(f, addr))
	if err != nil {
		return nil, err
	}
	return b.Start(ctx, &stage.Child{Name: name, Addr: addr}, ready, b.GatewayBinary(), append(args, "--config", config)...)
}

func (b *Bench) fleetConfig(f *fleet, listen string) []byte {
	sentinel := ""
	if len(f.sentinels) > 0 {
		sentinel = fmt.Sprintf(", sentinel: {master: %s, addresses: [%s]}", redis.Master, strings.Join(f.sentinels, ", "))
	}
	return fmt.Appendf(nil, `listen: %s
metrics: {listen: 127.0.0.1:0}
log: {level: info, format: json}
redis: {url: redis://%s/0%s}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: %s, access_key: %s, secret_key: %s}
tokens:
  - {name: bench, key: %s, requests_per_minute: 1000000000, reads_per_minute: -1}
channels:
  - {name: bench, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {"*": }}
`, listen, f.redis.Addr, sentinel, f.temporal.Addr, f.store.Addr, bucket, accessKey, secretKey, stage.ClientKey, b.Upstream.Addr, stage.UpstreamKey)
}

// groups name the processes whose costs are told together, in the order of the report.
func groups() []string {
	return []string{"postgres", "history", "matching", "frontend", "temporal-worker", "temporal", "redis", "store", "api", "worker", "upstream"}
}

// costs are the CPU times of the fleet's processes so far, by group. PostgreSQL's are with those of its connections.
func (b *Bench) costs(f *fleet) (map[string]time.Duration, error) {
	sum := make(map[string]time.Duration)
	var errs []error
	add := func(group string, pid int) {
		took, err := kernel.TreeTime(pid)
		sum[group] += took
		errs = append(errs, err)
	}
	for _, part := range []struct {
		*stage.Child
		group string
	}{{f.temporal, "temporal"}, {f.redis, "redis"}, {f.store, "store"}} {
		units, err := part.Units()
		errs = append(errs, err)
		if len(units) == 0 { // one process is all of it
			add(part.group, part.PID())
		}
		for name, pid := range units {
			group := part.group
			if group == "temporal" {
				group, _, _ = strings.Cut(name, "-") // history-1 and history-2 are one
			}
			if name == "worker" {
				group = "temporal-worker"
			}
			add(group, pid)
		}
	}
	for _, c := range f.apis {
		add("api", c.PID())
	}
	for _, c := range f.workers {
		add("worker", c.PID())
	}
	add("upstream", b.Upstream.PID())
	return sum, errors.Join(errs...)
}

// less are the costs since others were taken.
func less(now, before map[string]time.Duration) map[string]time.Duration {
	since := maps.Clone(now)
	for group, took := range before {
		since[group] -= took
	}
	return since
}

// memories are the most bytes that any one process of each kind of the gateway's had.
func (f *fleet) memories() (api, worker int64, err error) {
	for _, c := range slices.Concat(f.apis, f.workers) {
		_, peak, wrong := kernel.Resident(c.PID())
		err = errors.Join(err, wrong)
		if slices.Contains(f.apis, c) {
			api = max(api, peak)
		} else {
			worker = max(worker, peak)
		}
	}
	return api, worker, err
}
