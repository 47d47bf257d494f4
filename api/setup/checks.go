package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/ledger"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	// clockTolerance is the maximum difference of two clocks. Windows of limits are a minute long, and a store refuses requests at a quarter
	// of an hour.
	clockTolerance = 2 * time.Second
	// calledDays is how many days of the ledger are searched for channels without calls, and calledTTL how long the result is reused.
	calledDays = 30
	calledTTL  = time.Minute
	// mostNamed is the maximum number of names in one finding.
	mostNamed = 20
)

// Config has the configuration that the checks read.
type Config struct {
	RedisGrace, ArchiveDeadline  time.Duration
	Bucket, Namespace, TaskQueue string
	// Channels are the names of the enabled channels. Tokens is the number of tokens in the file.
	Channels []string
	Tokens   int
	// Models are the models in prices and aliases. Priced: some model has a price.
	Models []string
	Priced bool
	// Warnings are the warnings about the file.
	Warnings []Finding
	// Console: people may sign in to the console, at ConsoleURL if it is not nil. Operators: there are operators.
	Console    bool
	ConsoleURL *url.URL
	Operators  bool
}

// Temporal has the functions of the checks of Temporal.
type Temporal struct {
	Reach func(context.Context) error
	// Misconfigured reports whether an error of Reach names a key of the configuration.
	Misconfigured func(error) bool
	// Namespace checks the namespace; its error may be a *workflows.MissingError.
	Namespace func(context.Context) error
	// Version is the version of the workers. Current reports whether it is the current one of its deployment.
	Version workflows.Version
	Current func(context.Context) (bool, error)
}

// About has what a process reports about itself to operators.
type About struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
}

// Setup checks what the gateway depends on.
type Setup struct {
	// Config returns the current configuration.
	Config    func() Config
	Redis     redis.UniversalClient
	Temporal  Temporal
	Archive   *archive.Store
	Tasks     *tasks.Operator
	Usage     *ledger.Reader
	Router    *router.Router
	Prices    *pricing.List
	Processes *health.Sharer
	Channels  channeltest.Tester

	mu     sync.Mutex
	called map[string]bool // channels with calls within the last days
	days   int             // that were searched, the newest first
	at     time.Time       // when the search began
}

// Running returns the checks of a running installation.
func (s *Setup) Running() []Check {
	return append(s.services(),
		Check{"workers", s.workers}, Check{"configuration", s.configuration}, Check{"models", s.models}, Check{"channels", s.channels},
		Check{"clocks", s.clocks}, Check{"versions", s.versions}, Check{"console", s.console},
	)
}

// Before returns the checks before a process is started: without running processes, and each channel separately.
func (s *Setup) Before() []Check {
	checks := append(s.services(),
		Check{"rights in the bucket", s.rights}, Check{"clock of redis", s.clocks}, Check{"clock of the store", s.storeClock},
		Check{"configuration", s.configuration}, Check{"models", s.models}, Check{"console", s.console},
	)
	for _, name := range s.Config().Channels {
		checks = append(checks, Check{"channel " + name, func(ctx context.Context) ([]Finding, error) { return s.channel(ctx, name) }})
	}
	return checks
}

func (s *Setup) services() []Check {
	return []Check{{"redis", s.redis}, {"temporal", s.temporal}, {"store", s.store}}
}

func (s *Setup) channel(ctx context.Context, name string) ([]Finding, error) {
	tested, err := s.Channels.Test(ctx, name, "")
	if err != nil {
		return nil, err
	}
	finding := Finding{Status: OK, Code: tested.Code, Values: tested.Values}
	if !tested.OK {
		finding.Status, finding.Fix = Failed, "gateway channels test "+name
	}
	return []Finding{finding}, nil
}

func (s *Setup) redis(ctx context.Context) ([]Finding, error) {
	if err := storage.PingRedis(ctx, s.Redis); err != nil {
		return found(Failed, `redis-cli -u "$REDIS_URL" SET ping 1`, "redis.away", "grace", s.Config().RedisGrace, "error", err), nil
	}
	count, err := s.Redis.HLen(ctx, storage.Prefix+"tokens").Result()
	if err != nil {
		return nil, storage.RedisError("count tokens", err)
	}
	count = max(count, int64(s.Config().Tokens)) // before the first start, Redis has no tokens of the file
	if count == 0 {
		return found(Warning, "gateway token create --name app", "redis.tokenless"), nil
	}
	return fine("redis.ok", "n", count), nil
}

func (s *Setup) temporal(ctx context.Context) ([]Finding, error) {
	t := s.Temporal
	if err := t.Reach(ctx); err != nil {
		if t.Misconfigured(err) {
			return found(Failed, "gateway config check", "temporal.misconfigured", "error", err), nil
		}
		return found(Failed, "temporal operator cluster health "+t.Version.CLI, "temporal.away", "error", err), nil
	}
	err := t.Namespace(ctx)
	if lackErr := (*workflows.MissingError)(nil); errors.As(err, &lackErr) {
		var all []Finding
		for _, lack := range lackErr.Missing {
			all = append(all, Finding{Status: Failed, Code: "temporal." + lack.Code, Values: lack.Values, Fix: lack.Run})
		}
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	if t.Version.Deployment != "" {
		// The workers log the error of this request.
		if current, err := t.Current(ctx); err == nil && !current {
			return found(Warning, t.Version.Promote(), "temporal.version", "deployment", t.Version.Deployment, "build", t.Version.BuildID), nil
		}
	}
	return fine("temporal.ok", "namespace", s.Config().Namespace), nil
}

func (s *Setup) store(ctx context.Context) ([]Finding, error) {
	cfg := s.Config()
	if err := s.Archive.Ping(ctx); err != nil {
		fix := fmt.Sprintf("archive: {endpoint: …, bucket: %s, access_key: …, secret_key: …}", cfg.Bucket)
		return found(Failed, fix, "store.away", "time", cfg.ArchiveDeadline, "error", err), nil
	}
	return fine("store.ok", "bucket", cfg.Bucket), nil
}

// rights tries every kind of request that the archive sends to its bucket.
func (s *Setup) rights(ctx context.Context) ([]Finding, error) {
	bucket := s.Config().Bucket
	err := s.Archive.CheckRights(ctx)
	switch {
	case errors.Is(err, archive.ErrNoConditions):
		return found(Warning, "archive: {endpoint: …} of a store with conditional writes", "store.unconditional"), nil
	case err != nil:
		return found(Failed, "give the key this right for "+bucket+" and "+bucket+"/*", "store.rightless", "bucket", bucket, "error", err), nil
	}
	return fine("store.rights", "bucket", bucket), nil
}

func (s *Setup) workers(ctx context.Context) ([]Finding, error) {
	counts, err := s.Tasks.Counts(ctx)
	if err != nil {
		return nil, err
	}
	var unfinished int64
	for _, n := range counts.Phases {
		unfinished += n
	}
	switch {
	case counts.Workers == 0:
		return found(Failed, "gateway worker", "workers.none", "queue", s.Config().TaskQueue, "n", unfinished), nil
	case counts.Stuck > 0:
		return found(Warning, "gateway task list --stuck", "workers.stuck", "workers", counts.Workers, "stuck", counts.Stuck, "n", unfinished), nil
	}
	return fine("workers.ok", "workers", counts.Workers, "n", unfinished), nil
}

// configuration reports the warnings of gateway config check, for example weak keys.
func (s *Setup) configuration(context.Context) ([]Finding, error) {
	cfg := s.Config()
	all := cfg.Warnings
	if len(cfg.Channels) == 0 {
		all = append(all, found(Warning, "channels:\n  - {name: main, vendor: openai, keys: [\"${OPENAI_API_KEY}\"], models: {gpt-4o: }}",
			"config.channelless")...)
	}
	if len(all) == 0 {
		return fine("config.ok", "channels", len(cfg.Channels), "tokens", cfg.Tokens), nil
	}
	return all, nil
}

// models reports models of the file that no channel serves, and models without a price.
func (s *Setup) models(context.Context) ([]Finding, error) {
	cfg := s.Config()
	listed, open := s.Router.ModelNames(), s.Router.OpenChannels()
	var unpriced, unserved []string
	for _, model := range listed {
		if _, priced := s.Prices.Of(model); !priced && s.Router.Public(model) == model {
			unpriced = append(unpriced, model)
		}
	}
	for _, model := range cfg.Models {
		if _, served := slices.BinarySearch(listed, model); !served && len(open) == 0 {
			unserved = append(unserved, model)
		}
	}
	slices.Sort(unserved)
	unserved = slices.Compact(unserved)
	var all []Finding
	if len(unserved) > 0 {
		all = append(all, found(Warning, "channels: [{models: {"+unserved[0]+": }}]", "models.unserved", "models", some(unserved))...)
	}
	switch {
	case len(unpriced) > 0 && cfg.Priced:
		all = append(all, found(Warning, "prices: {"+unpriced[0]+": {input: …, output: …}}", "models.unpriced", "models", some(unpriced))...)
	case len(unpriced) > 0:
		all = append(all, fine("models.priceless")...)
	}
	if all == nil {
		return fine("models.ok", "n", len(listed)), nil
	}
	return all, nil
}

// some lists at most mostNamed names.
func some(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" … (+%d)", len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// channels reports channels that cool down, and channels without calls.
func (s *Setup) channels(ctx context.Context) ([]Finding, error) {
	states, err := s.Processes.States(ctx, s.Router.ChannelNames())
	if err != nil {
		return nil, err
	}
	var cooling, idle []string
	for _, state := range states {
		switch {
		case state.State == health.StateOpen || state.State == health.StateHalfOpen:
			cooling = append(cooling, state.Name)
		case state.State != health.StateDisabled && state.LastFault == nil && state.CallsPerMinute == 0:
			idle = append(idle, state.Name)
		}
	}
	never, err := s.uncalled(ctx, idle)
	if err != nil {
		return nil, err
	}
	var all []Finding
	if len(cooling) > 0 {
		all = append(all, found(Warning, "gateway channels", "channels.resting", "channels", some(cooling))...)
	}
	if len(never) > 0 {
		all = append(all, found(Warning, "gateway channels test "+never[0], "channels.untried", "channels", some(never))...)
	}
	if all == nil {
		return fine("channels.ok", "n", len(states)), nil
	}
	return all, nil
}

// uncalled returns the channels of idle without calls and tasks in the ledger. It reads day by day, the newest first, until each channel
// has a call. It reads no day twice within calledTTL.
func (s *Setup) uncalled(ctx context.Context, idle []string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.at) >= calledTTL {
		s.called, s.days, s.at = make(map[string]bool), 0, now
	}
	known := func(name string) bool { return s.called[name] }
	idle = slices.DeleteFunc(idle, known)
	for ; len(idle) > 0 && s.days < calledDays; s.days++ {
		day := s.at.AddDate(0, 0, -s.days)
		sums, _, err := s.Usage.Sums(ctx, ledger.Query{From: day, To: day, By: []string{ledger.ByChannel}})
		if err != nil {
			return nil, err
		}
		for _, sum := range sums {
			s.called[sum.Channel] = true
		}
		idle = slices.DeleteFunc(idle, known)
	}
	return idle, nil
}

// clocks compares this process's clock with that of Redis, which all processes use.
func (s *Setup) clocks(ctx context.Context) ([]Finding, error) {
	before := time.Now()
	remote, err := s.Redis.Time(ctx).Result()
	if err != nil {
		return nil, storage.RedisError("read the clock", err)
	}
	return clock("Redis", before, remote, time.Now()), nil
}

// storeClock compares this process's clock with that of the store, which checks signatures by it.
func (s *Setup) storeClock(ctx context.Context) ([]Finding, error) {
	before := time.Now()
	remote, err := s.Archive.Clock(ctx)
	if err != nil {
		return nil, err
	}
	// The store reports whole seconds.
	return clock("the store", before.Add(-time.Second), remote, time.Now()), nil
}

// clock compares a clock that was read between two times of this process's clock.
func clock(name string, before, remote, after time.Time) []Finding {
	off := time.Duration(0)
	switch {
	case remote.Before(before):
		off = before.Sub(remote)
	case remote.After(after):
		off = remote.Sub(after)
	}
	if off > clockTolerance {
		return found(Warning, "timedatectl set-ntp true", "clocks.differ", "whose", name, "time", off.Round(time.Millisecond))
	}
	return fine("clocks.ok", "whose", name, "time", max(off, after.Sub(before)).Round(time.Millisecond))
}

func (s *Setup) versions(ctx context.Context) ([]Finding, error) {
	texts, err := s.Processes.Abouts(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make(map[string][]string)
	processes := 0
	for _, text := range texts {
		var a About
		if json.Unmarshal(text, &a) == nil {
			version := strings.TrimSpace(a.Version + " " + a.Commit)
			hosts[version] = append(hosts[version], fmt.Sprintf("%s (%d)", a.Host, a.PID))
			processes++
		}
	}
	var versions []string
	for version, on := range hosts {
		slices.Sort(on)
		versions = append(versions, version+": "+some(on))
	}
	slices.Sort(versions)
	if len(versions) > 1 {
		return found(Warning, "gateway version", "versions.several", "versions", strings.Join(versions, "; ")), nil
	}
	return fine("versions.ok", "n", processes, "version", strings.Join(versions, "")), nil
}

func (s *Setup) console(context.Context) ([]Finding, error) {
	cfg := s.Config()
	switch at := cfg.ConsoleURL; {
	case !cfg.Console:
		return fine("console.off"), nil
	case at == nil:
		return found(Warning, "console: {url: https://gateway.example.com}", "console.local"), nil
	case at.Scheme != "https":
		return found(Warning, "console: {url: https://"+at.Host+"}", "console.plain"), nil
	case !cfg.Operators:
		return found(Warning, "operators:\n  - {name: anna, key: ${ANNA_KEY}, role: operator}", "console.nobody"), nil
	}
	return fine("console.ok", "address", cfg.ConsoleURL), nil
}
