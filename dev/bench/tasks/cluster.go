package tasks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	bucket    = "videos"
	accessKey = "bench"
	secretKey = "bench-secret"
	// metricsAt is the variable of the environment that says where a process tells its metrics.
	metricsAt = "BENCH_METRICS"
	// driveLook is the wait between two looks for a job.
	driveLook = 100 * time.Millisecond
)

// cluster is a gateway for tasks with each of its processes apart, so that each one's cost is its own: a front without
// a worker, a worker, Temporal and a store.
type cluster struct {
	temporal, store, front, worker *stage.Child
	base                           string // of the front
	metrics                        string // address of the front's
}

// setting is how a cluster is set up.
type setting struct {
	places  int    // for jobs at the one channel; 0: no limit
	webhook string // hears of every task's end; "": nobody does
	admin   string // opens /admin and the console; "": nothing does
	polls   string // members of the video section, each with a comma before it
}

// cluster starts Temporal, a store, a front and a worker. They end with the load.
func (b *Bench) cluster(ctx context.Context, set setting) (*cluster, error) {
	c := new(cluster)
	for _, part := range []struct {
		into *(*stage.Child)
		name string
		more []string
	}{
		{&c.temporal, "temporal", []string{"--ui", ""}},
		{&c.store, "s3", []string{"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket}},
	} {
		addr, err := stage.FreeAddress()
		if err != nil {
			return nil, err
		}
		args := append([]string{part.name, "--listen", addr, "--data", b.NewFolder(part.name)}, part.more...)
		if *part.into, err = b.Start(ctx, &stage.Child{Name: part.name, Addr: addr}, stage.Connects, b.Options.Program, args...); err != nil {
			return nil, err
		}
	}
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	config, err := b.WriteConfig("cluster.yaml", b.clusterConfig(c, addr, set))
	if err != nil {
		return nil, err
	}
	if c.metrics, err = stage.FreeAddress(); err != nil {
		return nil, err
	}
	// The worker first: it gives Temporal what the front's tasks need.
	if c.worker, err = b.Start(ctx, &stage.Child{Name: "worker", Env: []string{metricsAt + "=127.0.0.1:0"}}, stage.Runs, b.GatewayBinary(), "worker", "--config", config); err != nil {
		return nil, err
	}
	if c.front, err = b.Start(ctx, &stage.Child{Name: "front", Addr: addr, Env: []string{metricsAt + "=" + c.metrics}}, b.Answers("/readyz?for=video"), b.GatewayBinary(), "serve", "--worker=false", "--config", config); err != nil {
		return nil, err
	}
	c.base = "http://" + addr
	return c, nil
}

// Watched is a gateway whose tasks are watched: its process, and the address of its metrics.
type Watched struct {
	Front   *stage.Child
	Metrics string
}

// Watched starts a gateway with an admin key and a worker that asks for each job every 0.2 s. They end with the load.
func (b *Bench) Watched(ctx context.Context, admin string) (Watched, error) {
	c, err := b.cluster(ctx, setting{admin: admin, polls: ", poll_min: 200ms, poll_max: 200ms"})
	if err != nil {
		return Watched{}, err
	}
	return Watched{Front: c.front, Metrics: c.metrics}, nil
}

// MakeDriven creates a task whose job waits to be driven. job waits for it and returns its id at the upstream.
func (b *Bench) MakeDriven(ctx context.Context, base, model string) (id string, job func(context.Context) (string, error), err error) {
	prompt := "driven " + rand.Text()
	id, err = b.createTask(ctx, base, stage.ClientKey, model, prompt)
	return id, func(ctx context.Context) (string, error) {
		for began := time.Now(); time.Since(began) < taskDeadline; {
			found, err := b.jobs(ctx, "http://"+b.Upstream.Addr, prompt)
			if err != nil {
				return "", err
			}
			if len(found) > 0 && found[0].Polls > 0 {
				return found[0].ID, nil
			}
			if err := stage.Pause(ctx, driveLook); err != nil {
				return "", err
			}
		}
		return "", fmt.Errorf("%w: task %s has no job that is polled", stage.ErrBroken, id)
	}, err
}

func (b *Bench) clusterConfig(c *cluster, listen string, set setting) []byte {
	webhook := ""
	if set.webhook != "" {
		webhook = ", webhook_url: \"" + set.webhook + "\", webhook_secret: " + hookSecret
	}
	return fmt.Appendf(nil, `listen: %s
metrics: {listen: "${%s}"}
log: {level: info, format: json}
admin_key: %q
redis: {url: redis://%s/1}
temporal: {address: %s}
archive: {endpoint: http://%s, bucket: %s, access_key: %s, secret_key: %s}
video: {max_output_bytes: 8GiB%s}
webhooks: {allow_private_networks: true}
tokens:
  - {name: bench, key: %s, requests_per_minute: 1000000000, reads_per_minute: -1%s}
channels:
  - {name: bench, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {"*": }, max_jobs: %d}
`, listen, metricsAt, set.admin, b.Redis.Addr, c.temporal.Addr, c.store.Addr, bucket, accessKey, secretKey, set.polls, stage.ClientKey, webhook, b.Upstream.Addr, stage.UpstreamKey, set.places)
}

// spent is the CPU time of the cluster's processes.
type spent struct{ temporal, front, worker time.Duration }

func (c *cluster) spent() (sum spent, err error) {
	for _, p := range []struct {
		child *stage.Child
		into  *time.Duration
	}{{c.temporal, &sum.temporal}, {c.front, &sum.front}, {c.worker, &sum.worker}} {
		one, wrong := kernel.CPUTime(p.child.PID())
		*p.into, err = one, errors.Join(err, wrong)
	}
	return sum, err
}

func (s spent) less(other spent) spent {
	return spent{s.temporal - other.temporal, s.front - other.front, s.worker - other.worker}
}

func (s spent) plus(other spent) spent {
	return spent{s.temporal + other.temporal, s.front + other.front, s.worker + other.worker}
}
