package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/redis"
)

const (
	bucket    = "videos"
	accessKey = "bench"
	secretKey = "bench-secret"
	// hookSecret signs the webhooks.
	hookSecret = "whsec_YmVuY2hiZW5jaGJlbmNoYmVuY2hiZW5jaA==" //nolint:gosec // of the bench's own receiver

	// embedded and production are the kinds of services, as the flag of the parts names them.
	embedded   = "embedded"
	production = "production"
)

// setting describes a deployment.
type setting struct {
	parts         string // embedded or production
	apis, workers int    // processes of the gateway
	places        int    // jobs that the one channel takes at the same time; 0: no limit
	webhook       string // URL that receives the end of every task; "": none
	vendor        string // URL of the upstream; "": the stage's own
	calls         int    // background calls that a worker runs at the same time; 0: the default
}

// deployment is a gateway with its services. Each process is measured separately.
type deployment struct {
	set                    setting
	temporal, redis, store *stage.Child
	apis, workers          []*stage.Child
	sentinels              []string
	temporalData           string
	made                   int64 // tasks, by all herds
}

// deploy starts a deployment. It ends with the load.
func (b *Bench) deploy(ctx context.Context, set setting) (*deployment, error) {
	d := &deployment{set: set}
	var sentinels []string
	if set.parts == production {
		for range redis.SentinelCount {
			addr, err := stage.FreeAddress()
			if err != nil {
				return nil, err
			}
			d.sentinels = append(d.sentinels, addr)
			sentinels = append(sentinels, "--sentinels", addr)
		}
	}
	d.temporalData = b.NewFolder("temporal")
	for _, part := range []struct {
		into *(*stage.Child)
		name string
		data string
		more []string
	}{
		{&d.temporal, "temporal", d.temporalData, []string{"--ui", ""}},
		{&d.redis, "redis", b.NewFolder("redis"), sentinels},
		{&d.store, "s3", b.NewFolder("s3"), []string{"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket}},
	} {
		addr, err := stage.FreeAddress()
		if err != nil {
			return nil, err
		}
		args := append([]string{part.name, "--parts", set.parts, "--listen", addr, "--data", part.data}, part.more...)
		c := &stage.Child{Name: part.name, Addr: addr}
		if *part.into, err = b.Start(ctx, c, func(context.Context, string) error { return c.Printed("ready ") }, b.StackBinary(),
			args...); err != nil {
			return nil, err
		}
	}
	// Workers first: they give Temporal the search attributes that creates use.
	for i := range set.workers {
		c, err := b.gateway(ctx, d, fmt.Sprintf("worker-%d", i+1), stage.Runs, "worker")
		if err != nil {
			return nil, err
		}
		d.workers = append(d.workers, c)
	}
	for i := range set.apis {
		c, err := b.gateway(ctx, d, fmt.Sprintf("api-%d", i+1), b.Answers("/readyz?for=video"), "serve", "--worker=false")
		if err != nil {
			return nil, err
		}
		d.apis = append(d.apis, c)
	}
	return d, nil
}

// gateway starts a process of the gateway.
func (b *Bench) gateway(
	ctx context.Context, d *deployment, name string, ready func(context.Context, string) error, args ...string,
) (*stage.Child, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	config, err := b.WriteConfig(name+".yaml", d.config(addr, cmp.Or(d.set.vendor, "http://"+b.Upstream.Addr+"/openai/v1")))
	if err != nil {
		return nil, err
	}
	return b.Start(ctx, &stage.Child{Name: name, Addr: addr}, ready, b.GatewayBinary(), append(args, "--config", config)...)
}

func (d *deployment) config(listen, upstream string) []byte {
	sentinel, webhook := "", ""
	if len(d.sentinels) > 0 {
		sentinel = fmt.Sprintf(", sentinel: {master: %s, addresses: [%s]}", redis.Master, strings.Join(d.sentinels, ", "))
	}
	if d.set.webhook != "" {
		webhook = fmt.Sprintf(", webhook_url: %q, webhook_secret: %s", d.set.webhook, hookSecret)
	}
	return fmt.Appendf(nil, `listen: %s
metrics: {listen: 127.0.0.1:0}
log: {level: info, format: json}
redis: {url: redis://%s/0%s}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: %s, access_key: %s, secret_key: %s}
webhooks: {allow_private_networks: true}
background: {max_calls: %d, max_queued: 40000}
tokens:
  - {name: other, key: %s, requests_per_minute: 1000000000, reads_per_minute: -1}
  - {name: bench, key: %s, requests_per_minute: 1000000000, reads_per_minute: -1%s}
channels:
  - {name: bench, vendor: openai, base_url: %q, keys: [%s], models: {"*": }, max_jobs: %d}
`, listen, d.redis.Addr, sentinel, d.temporal.Addr, d.store.Addr, bucket, accessKey, secretKey, cmp.Or(d.set.calls, heldCalls), otherKey, stage.ClientKey, webhook, upstream, stage.UpstreamKey, d.set.places)
}

// groups are the groups of processes whose costs are added up, in the order of the report.
func groups() []string {
	return []string{
		"postgres", "history", "matching", "frontend", "temporal-worker", "temporal", "redis", "store", "api", "worker",
		"upstream",
	}
}

// costs are the CPU times of the deployment's processes so far, by group. PostgreSQL's contain those of its connections.
func (b *Bench) costs(d *deployment) (map[string]time.Duration, error) {
	sum := make(map[string]time.Duration)
	var errs []error
	add := func(group string, took time.Duration, err error) {
		sum[group] += took
		errs = append(errs, err)
	}
	one := func(group string, c *stage.Child) {
		took, err := kernel.CPUTime(c.PID())
		add(group, took, err)
	}
	for _, part := range []struct {
		*stage.Child
		group string
	}{{d.temporal, "temporal"}, {d.redis, "redis"}, {d.store, "store"}} {
		units, err := part.Units()
		errs = append(errs, err)
		if len(units) == 0 {
			one(part.group, part.Child)
		}
		for name, pid := range units {
			group := part.group
			if group == "temporal" {
				group, _, _ = strings.Cut(name, "-") // history-1 and history-2 are one group
			}
			if name == "worker" {
				group = "temporal-worker"
			}
			took, err := kernel.TreeTime(pid)
			add(group, took, err)
		}
	}
	for _, c := range d.apis {
		one("api", c)
	}
	for _, c := range d.workers {
		one("worker", c)
	}
	one("upstream", b.Upstream)
	return sum, errors.Join(errs...)
}

// since are the costs after earlier ones were taken.
func since(now, earlier map[string]time.Duration) map[string]time.Duration {
	rest := maps.Clone(now)
	for group, took := range earlier {
		rest[group] -= took
	}
	return rest
}

// memories are the peaks of the API process and of the worker process with the most memory, in bytes.
func (d *deployment) memories() (api, worker int64, err error) {
	most := func(of []*stage.Child) (most int64) {
		for _, c := range of {
			_, peak, wrong := kernel.Resident(c.PID())
			most, err = max(most, peak), errors.Join(err, wrong)
		}
		return most
	}
	return most(d.apis), most(d.workers), err
}

// addr is the API that serves the i-th request.
func (d *deployment) addr(i int) string { return d.apis[i%len(d.apis)].Addr }
