package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"modelrelay/api/admin"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/engine"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/ledger"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	// clockSlack is how far two clocks may differ: windows of limits and sessions are minutes long, and a store refuses
	// requests from a quarter of an hour on.
	clockSlack = 2 * time.Second
	// triedWithin is how far back the ledger is read for channels that were never tried, and triedFor how long that serves.
	triedWithin = 30 * 24 * time.Hour
	triedFor    = time.Minute
	// mostNamed is how many names one finding lists.
	mostNamed = 20
)

// setup looks at what the gateway stands on, for operators.
type setup struct {
	parts   *parts
	counter *tasks.Counter
	usage   *ledger.Reader

	mu    sync.Mutex
	tried map[string]bool // channels that were called within triedWithin
	at    time.Time
}

// newSetup makes what looks at the parts; counter may be nil for connect.
func newSetup(p *parts, counter *tasks.Counter) *setup {
	return &setup{parts: p, counter: counter, usage: ledger.NewReader(p.redis)}
}

// checks are those of GET /admin/setup.
func (s *setup) checks() []admin.SetupCheck {
	return slices.Concat(s.services(), []admin.SetupCheck{
		{Name: "workers", Check: s.workers},
		{Name: "configuration", Check: s.configuration},
		{Name: "models", Check: s.models},
		{Name: "channels", Check: s.channels},
		{Name: "clocks", Check: s.clocks},
		{Name: "versions", Check: s.versions},
		{Name: "console", Check: s.console},
	})
}

// services are the checks of what every process needs.
func (s *setup) services() []admin.SetupCheck {
	return []admin.SetupCheck{
		{Name: "redis", Check: s.redis},
		{Name: "temporal", Check: s.temporal},
		{Name: "store", Check: s.store},
	}
}

// connect are those of gateway config check --connect: what must be well before a process is started, and so
// nothing of processes that run. The channels come one by one.
func (s *setup) connect() []admin.SetupCheck {
	checks := slices.Concat(s.services(), []admin.SetupCheck{
		{Name: "rights in the bucket", Check: s.rights},
		{Name: "clock of redis", Check: s.clocks},
		{Name: "clock of the store", Check: s.storeClock},
		{Name: "console", Check: s.console},
	})
	desk := s.parts.desk(s.parts.cfg, s.parts.log)
	for _, channel := range s.parts.cfg.Channels {
		if !channel.Disabled {
			checks = append(checks, admin.SetupCheck{Name: "channel " + channel.Name, Check: func(ctx context.Context) ([]admin.SetupFinding, error) {
				return tryChannel(ctx, desk, channel.Name)
			}})
		}
	}
	return checks
}

// tryChannel asks a channel's vendor something free.
func tryChannel(ctx context.Context, desk admin.ChannelDesk, name string) ([]admin.SetupFinding, error) {
	tested, err := desk.Try(ctx, admin.ChannelTrial{Channel: name})
	switch {
	case err != nil:
		return nil, err
	case !tested.OK:
		return finding(admin.SetupFailed, "gateway channels test "+name, "%s", tested.Verdict), nil
	case len(tested.Lacks) > 0:
		return finding(admin.SetupWarning, "gateway channels test "+name, "%s The key may not use: %s.", tested.Verdict, some(tested.Lacks)), nil
	}
	return fine("%s", tested.Verdict), nil
}

func fine(format string, args ...any) []admin.SetupFinding {
	return []admin.SetupFinding{{Status: admin.SetupOK, Message: fmt.Sprintf(format, args...)}}
}

func finding(status admin.SetupStatus, mend, format string, args ...any) []admin.SetupFinding {
	return []admin.SetupFinding{{Status: status, Message: fmt.Sprintf(format, args...), Mend: mend}}
}

func (s *setup) redis(ctx context.Context) ([]admin.SetupFinding, error) {
	if err := storage.PingRedis(ctx, s.parts.redis); err != nil {
		return finding(admin.SetupFailed, `redis-cli -u "$REDIS_URL" SET ping 1`,
			"Redis does not take writes: known tokens go on for relay.redis_grace (%s), video tasks need an Idempotency-Key, limits are each process's own (%v).", s.parts.cfg.Relay.RedisGrace, err), nil
	}
	count, err := s.parts.redis.HLen(ctx, storage.Prefix+"tokens").Result()
	if err != nil {
		return nil, storage.RedisError("count tokens", err)
	}
	if count == 0 {
		return finding(admin.SetupWarning, "gateway token create --name app", "Redis answers. There is no token yet, so nobody can call."), nil
	}
	return fine("It answers and takes writes; it has %s.", cli.Counted(int(count), "token")), nil
}

func (s *setup) temporal(ctx context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.cfg
	if err := s.parts.temporal.Reach(ctx); err != nil {
		if engine.Misconfigured(err) {
			return finding(admin.SetupFailed, "gateway config check", "%v", err), nil
		}
		return finding(admin.SetupFailed, "temporal operator cluster health --address "+cfg.Temporal.Address,
			"Temporal does not answer: video tasks wait, new ones are refused with 503, relayed calls go on (%v).", err), nil
	}
	err := s.parts.temporal.Namespace.Check(ctx, cfg.Video.Retention)
	if lacks := (*workflows.LackError)(nil); errors.As(err, &lacks) {
		var found []admin.SetupFinding
		for _, lack := range lacks.Lacks {
			found = append(found, finding(admin.SetupFailed, lack.Run, "%s", lack.What)...)
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return fine("It answers, and the namespace %q keeps tasks long enough.", cfg.Temporal.Namespace), nil
}

func (s *setup) store(ctx context.Context) ([]admin.SetupFinding, error) {
	if err := s.parts.archive.Ping(ctx); err != nil {
		return finding(admin.SetupFailed, fmt.Sprintf("archive: {endpoint: …, bucket: %s, access_key: …, secret_key: …}", s.parts.cfg.Archive.Bucket),
			"The store does not answer, or refuses: finished videos are tried again for %s, creates with media are refused (%v).", s.parts.cfg.Video.ArchiveDeadline, err), nil
	}
	return fine("It answers; the bucket is %q.", s.parts.cfg.Archive.Bucket), nil
}

func (s *setup) workers(ctx context.Context) ([]admin.SetupFinding, error) {
	census, err := s.counter.Census(ctx)
	if err != nil {
		return nil, err
	}
	var unfinished int64
	for _, n := range census.Phases {
		unfinished += n
	}
	switch {
	case census.Workers == 0:
		return finding(admin.SetupFailed, "gateway worker", "No process works on video tasks of the task queue %q; unfinished: %d.", s.parts.cfg.Temporal.TaskQueue, unfinished), nil
	case census.Stuck > 0:
		return finding(admin.SetupWarning, "gateway video list --stuck", "At work: %s. In their state for longer than usual: %d of %s.", cli.Counted(int(census.Workers), "process"), census.Stuck, cli.Counted(int(unfinished), "unfinished task")), nil
	}
	return fine("At work: %s, on %s.", cli.Counted(int(census.Workers), "process"), cli.Counted(int(unfinished), "unfinished task")), nil
}

// configuration is what gateway config check warns of, keys that can be guessed among it.
func (s *setup) configuration(context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.current()
	var found []admin.SetupFinding
	for _, warning := range cfg.Warnings(s.parts.catalog) {
		found = append(found, finding(admin.SetupWarning, "gateway config check", "%s", warning.String())...)
	}
	if len(cfg.Channels) == 0 {
		found = append(found, finding(admin.SetupFailed, "channels:\n  - {name: main, vendor: openai, keys: [\"${OPENAI_API_KEY}\"], models: {gpt-4o: }}",
			"There is no channel, so there is no model to call.")...)
	}
	if found == nil {
		return fine("The file has %s, %s and nothing to warn of.", cli.Counted(len(cfg.Channels), "channel"), cli.Counted(len(cfg.Tokens), "token")), nil
	}
	return found, nil
}

// models are those that the file names and no channel serves, and those that have no price.
func (s *setup) models(context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.current()
	listed, open := s.parts.router.Catalogue()
	served := make(map[string]bool, len(listed))
	var unpriced, unserved []string
	for _, model := range listed {
		served[model.ID] = true
		if _, priced := s.parts.prices.Of(model.Public); !priced && model.Public == model.ID {
			unpriced = append(unpriced, model.ID)
		}
	}
	for model := range cfg.Named() {
		if !served[model] && len(open) == 0 && !slices.Contains(unserved, model) {
			unserved = append(unserved, model)
		}
	}
	slices.Sort(unserved)
	var found []admin.SetupFinding
	if len(unserved) > 0 {
		found = append(found, finding(admin.SetupWarning, "channels: [{models: {"+unserved[0]+": }}]", "No channel serves: %s.", some(unserved))...)
	}
	switch {
	case len(unpriced) > 0 && len(cfg.Prices) > 0:
		found = append(found, finding(admin.SetupWarning, "prices: {"+unpriced[0]+": {input: …, output: …}}", "Without a price, and so free of charge: %s.", some(unpriced))...)
	case len(unpriced) > 0:
		found = append(found, fine("No model has a price: nothing is charged, and budgets hold nobody.")...)
	}
	if found == nil {
		return fine("Models with a channel and a price: %d of %d.", len(listed), len(listed)), nil
	}
	return found, nil
}

// some lists names, but not without end.
func some(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// channels are those that rest, and those that nobody has tried.
func (s *setup) channels(ctx context.Context) ([]admin.SetupFinding, error) {
	states, err := s.parts.health.States(ctx)
	if err != nil {
		return nil, err
	}
	tried, err := s.triedChannels(ctx)
	if err != nil {
		return nil, err
	}
	var resting, never []string
	for _, state := range states {
		switch {
		case state.State == "open" || state.State == "half-open":
			resting = append(resting, state.Name)
		case state.State != "disabled" && !tried[state.Name] && state.LastFault == nil && state.CallsPerMinute == 0:
			never = append(never, state.Name)
		}
	}
	var found []admin.SetupFinding
	if len(resting) > 0 {
		found = append(found, finding(admin.SetupWarning, "gateway channels", "Resting after failures: %s.", some(resting))...)
	}
	if len(never) > 0 {
		found = append(found, finding(admin.SetupWarning, "gateway channels test "+never[0], "Not tried within 30 days: %s.", some(never))...)
	}
	if found == nil {
		return fine("%s, each of them tried.", cli.Counted(len(states), "channel")), nil
	}
	return found, nil
}

// triedChannels are those that the ledger has calls or tasks of.
func (s *setup) triedChannels(ctx context.Context) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Sub(s.at) < triedFor {
		return s.tried, nil
	}
	rows, err := s.usage.Read(ctx, now.Add(-triedWithin), now, "")
	if err != nil {
		return nil, err
	}
	tried := make(map[string]bool)
	for _, row := range rows {
		tried[row.Channel] = true
	}
	s.tried, s.at = tried, now
	return tried, nil
}

// clocks compares this process's with Redis's, by which all processes count.
func (s *setup) clocks(ctx context.Context) ([]admin.SetupFinding, error) {
	before := time.Now()
	theirs, err := s.parts.redis.Time(ctx).Result()
	if err != nil {
		return nil, storage.RedisError("read the clock", err)
	}
	return clockFinding("Redis", before, theirs, time.Now()), nil
}

// rights tries everything that the archive does with its bucket.
func (s *setup) rights(ctx context.Context) ([]admin.SetupFinding, error) {
	bucket := s.parts.cfg.Archive.Bucket
	err := s.parts.archive.CheckRights(ctx)
	switch {
	case errors.Is(err, archive.ErrNotHeeded):
		return finding(admin.SetupWarning, "archive: {endpoint: …} of a store with conditional writes",
			"The store passes over If-None-Match: two workers that begin one submit in the same moment are told apart by Temporal alone."), nil
	case err != nil:
		return finding(admin.SetupFailed, "give the key this right for "+bucket+" and "+bucket+"/*", "archive.access_key may not do all it needs in the bucket %q: %v.", bucket, err), nil
	}
	return fine("The key may write, read, list and delete in the bucket %q.", bucket), nil
}

// storeClock compares this process's clock with the store's, by which signatures hold.
func (s *setup) storeClock(ctx context.Context) ([]admin.SetupFinding, error) {
	before := time.Now()
	theirs, err := s.parts.archive.Clock(ctx)
	if err != nil {
		return nil, err
	}
	// The store writes whole seconds.
	return clockFinding("the store", before.Add(-time.Second), theirs, time.Now()), nil
}

// clockFinding is how a clock that was read between two times of this process's own stands to it.
func clockFinding(whose string, before, theirs, after time.Time) []admin.SetupFinding {
	off := time.Duration(0)
	switch {
	case theirs.Before(before):
		off = before.Sub(theirs)
	case theirs.After(after):
		off = theirs.Sub(after)
	}
	if off > clockSlack {
		return finding(admin.SetupWarning, "timedatectl set-ntp true", "The clocks of this machine and of %s differ by %s: limits, sessions and signatures go wrong.", whose, off.Round(time.Millisecond))
	}
	return fine("The clocks of this machine and of %s agree within %s.", whose, max(off, after.Sub(before)).Round(time.Millisecond))
}

// about is what a process says of itself to operators.
type about struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
}

// introduce is this process's about.
func introduce() []byte {
	build := cli.ThisBuild()
	host, _ := os.Hostname() // one that cannot be told is ""
	text, _ := json.Marshal(about{Version: build.Version, Commit: build.Commit, Host: host, PID: os.Getpid()})
	return text
}

// versions are those of all processes, which should be one.
func (s *setup) versions(ctx context.Context) ([]admin.SetupFinding, error) {
	texts, err := s.parts.health.store.Abouts(ctx)
	if err != nil {
		return nil, err
	}
	hosts := make(map[string][]string)
	for _, text := range texts {
		var a about
		if json.Unmarshal(text, &a) == nil {
			version := strings.TrimSpace(a.Version + " " + a.Commit)
			hosts[version] = append(hosts[version], fmt.Sprintf("%s (%d)", a.Host, a.PID))
		}
	}
	var versions []string
	processes := 0
	for version, on := range hosts {
		slices.Sort(on)
		processes += len(on)
		versions = append(versions, version+" on "+some(on))
	}
	slices.Sort(versions)
	if len(versions) > 1 {
		return finding(admin.SetupWarning, "gateway version", "Processes have several versions: %s.", strings.Join(versions, "; ")), nil
	}
	return fine("%s: %s.", cli.Counted(processes, "process"), strings.Join(versions, "")), nil
}

// console looks at where people sign in.
func (s *setup) console(context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.cfg
	switch at := cfg.ConsoleURL(); {
	case !cfg.Console.Enabled:
		return fine("It is switched off (console.enabled)."), nil
	case at == nil:
		return finding(admin.SetupWarning, "console: {url: https://gateway.example.com}", "console.url is not set: people sign in on this machine alone."), nil
	case at.Scheme != "https":
		return finding(admin.SetupWarning, "console: {url: https://"+at.Host+"}", "console.url has no https: keys and sessions can be read on the way."), nil
	case len(cfg.AllOperators()) == 0:
		return finding(admin.SetupWarning, "operators:\n  - {name: anna, key: ${ANNA_KEY}, role: operator}", "There is no operator who could sign in."), nil
	}
	return fine("People sign in at %s.", cfg.Console.URL), nil
}
