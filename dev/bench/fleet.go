package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/redis"
)

// fleet is a deployment on one machine: services of a kind, several gateways without a worker, several workers. Each process is
// measured apart.
type fleet struct {
	temporal, redis, store *child
	apis, workers          []*child
	sentinels              []string
}

// fleet starts one. It ends with the stage.
func (s *stage) fleet(ctx context.Context, o ScaleOptions) (*fleet, error) {
	f := new(fleet)
	if o.Parts == productionParts {
		for range redis.SentinelCount {
			addr, err := freeAddress()
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
		into *(*child)
		name string
		more []string
	}{
		{&f.temporal, "temporal", []string{"--ui", ""}},
		{&f.redis, "redis", sentinelArgs},
		{&f.store, "s3", []string{"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket}},
	} {
		addr, err := freeAddress()
		if err != nil {
			return nil, err
		}
		args := append([]string{part.name, "--parts", o.Parts, "--listen", addr, "--data", filepath.Join(s.options.Data, "fleet-"+part.name)}, part.more...)
		c := &child{name: part.name, addr: addr}
		if *part.into, err = s.start(ctx, c, func(context.Context, string) error { return c.said("ready ") }, s.options.Program, args...); err != nil {
			return nil, err
		}
		s.fresh = append(s.fresh, *part.into)
	}
	for i := range o.Workers {
		c, err := s.member(ctx, f, fmt.Sprintf("worker-%d", i+1), nil, "worker")
		if err != nil {
			return nil, err
		}
		f.workers = append(f.workers, c)
	}
	for i := range o.APIs {
		c, err := s.member(ctx, f, fmt.Sprintf("api-%d", i+1), s.answers("/readyz?for=video"), "serve", "--worker=false")
		if err != nil {
			return nil, err
		}
		f.apis = append(f.apis, c)
	}
	return f, nil
}

// said fails until the process has written a line that begins so.
func (c *child) said(beginning string) error {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(text), beginning) || strings.Contains(string(text), "\n"+beginning) {
		return nil
	}
	return fmt.Errorf("has not said %q", beginning)
}

// member starts a gateway process; a nil ready: it is not waited for.
func (s *stage) member(ctx context.Context, f *fleet, name string, ready func(context.Context, string) error, args ...string) (*child, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(s.options.Data, name+".yaml")
	if err := os.WriteFile(config, s.fleetConfig(f, addr), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	if ready == nil {
		ready = func(context.Context, string) error { return nil }
	}
	c, err := s.start(ctx, &child{name: name, addr: addr}, ready, s.gatewayBinary(), append(args, "--config", config)...)
	if err != nil {
		return nil, err
	}
	s.fresh = append(s.fresh, c)
	return c, nil
}

func (s *stage) fleetConfig(f *fleet, listen string) []byte {
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
`, listen, f.redis.addr, sentinel, f.temporal.addr, f.store.addr, bucket, accessKey, secretKey, clientKey, s.upstream.addr, upstreamKey)
}

// groups name the processes whose costs are told together, in the order of the report.
func groups() []string {
	return []string{"postgres", "history", "matching", "frontend", "temporal-worker", "temporal", "redis", "store", "api", "worker", "upstream"}
}

// costs are the CPU times of the fleet's processes so far, by group. PostgreSQL's are with those of its connections.
func (s *stage) costs(f *fleet) (map[string]time.Duration, error) {
	sum := make(map[string]time.Duration)
	var errs []error
	add := func(group string, pid int) {
		took, err := treeTime(pid)
		sum[group] += took
		errs = append(errs, err)
	}
	for _, part := range []struct {
		*child
		group string
	}{{f.temporal, "temporal"}, {f.redis, "redis"}, {f.store, "store"}} {
		units, err := part.units()
		errs = append(errs, err)
		if len(units) == 0 { // one process is all of it
			add(part.group, part.process.Pid())
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
		add("api", c.process.Pid())
	}
	for _, c := range f.workers {
		add("worker", c.process.Pid())
	}
	add("upstream", s.upstream.process.Pid())
	return sum, errors.Join(errs...)
}

// units are the ids of the processes that a part has now, by name; none for a part that is one process.
func (c *child) units() (map[string]int, error) {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return nil, err
	}
	units := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "unit" {
			continue
		}
		if pid, err := strconv.Atoi(words[2]); err == nil {
			units[words[1]] = pid
		}
	}
	return units, nil
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
		_, peak, wrong := resident(c.process.Pid())
		err = errors.Join(err, wrong)
		if slices.Contains(f.apis, c) {
			api = max(api, peak)
		} else {
			worker = max(worker, peak)
		}
	}
	return api, worker, err
}
