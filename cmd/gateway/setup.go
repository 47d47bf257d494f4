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
	"modelrelay/api/console/words"
	"modelrelay/cmd/gateway/internal/buildinfo"
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
	texts   words.Texts

	mu    sync.Mutex
	tried map[string]bool // channels that were called within triedWithin
	at    time.Time
}

// newSetup makes what looks at the parts; counter may be nil for connect.
func newSetup(p *parts, counter *tasks.Counter) *setup {
	return &setup{parts: p, counter: counter, usage: ledger.NewReader(p.redis), texts: words.Load()}
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
		return tried(admin.SetupFailed, "gateway channels test "+name, tested), nil
	}
	return tried(admin.SetupOK, "", tested), nil
}

func (s *setup) redis(ctx context.Context) ([]admin.SetupFinding, error) {
	if err := storage.PingRedis(ctx, s.parts.redis); err != nil {
		return s.found(admin.SetupFailed, `redis-cli -u "$REDIS_URL" SET ping 1`, "redis.away", "grace", s.parts.cfg.Relay.RedisGrace, "error", err), nil
	}
	count, err := s.parts.redis.HLen(ctx, storage.Prefix+"tokens").Result()
	if err != nil {
		return nil, storage.RedisError("count tokens", err)
	}
	if count == 0 {
		return s.found(admin.SetupWarning, "gateway token create --name app", "redis.tokenless"), nil
	}
	return s.fine("redis.ok", "n", count), nil
}

func (s *setup) temporal(ctx context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.cfg
	if err := s.parts.temporal.Reach(ctx); err != nil {
		if engine.Misconfigured(err) {
			return finding(admin.SetupFailed, "gateway config check", err.Error()), nil
		}
		return s.found(admin.SetupFailed, "temporal operator cluster health "+s.parts.temporal.CLI, "temporal.away", "error", err), nil
	}
	err := s.parts.temporal.Namespace.Check(ctx, cfg.Video.Retention)
	if lacks := (*workflows.LackError)(nil); errors.As(err, &lacks) {
		var found []admin.SetupFinding
		for _, lack := range lacks.Lacks {
			found = append(found, admin.SetupFinding{Status: admin.SetupFailed, Message: lack.What, Code: "temporal." + lack.Code, Values: lack.Values, Mend: lack.Run})
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	if version := s.parts.temporal.Version(cfg); version.Deployment != "" {
		// An error has its own place: the log of the workers.
		if current, err := version.Current(ctx, s.parts.temporal); err == nil && !current {
			return s.found(admin.SetupWarning, version.Promote(), "temporal.version", "deployment", version.Deployment, "build", version.BuildID), nil
		}
	}
	return s.fine("temporal.ok", "namespace", cfg.Temporal.Namespace), nil
}

func (s *setup) store(ctx context.Context) ([]admin.SetupFinding, error) {
	if err := s.parts.archive.Ping(ctx); err != nil {
		return s.found(admin.SetupFailed, fmt.Sprintf("archive: {endpoint: …, bucket: %s, access_key: …, secret_key: …}", s.parts.cfg.Archive.Bucket),
			"store.away", "time", s.parts.cfg.Video.ArchiveDeadline, "error", err), nil
	}
	return s.fine("store.ok", "bucket", s.parts.cfg.Archive.Bucket), nil
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
		return s.found(admin.SetupFailed, "gateway worker", "workers.none", "queue", s.parts.cfg.Temporal.TaskQueue, "n", unfinished), nil
	case census.Stuck > 0:
		return s.found(admin.SetupWarning, "gateway video list --stuck", "workers.stuck", "workers", census.Workers, "stuck", census.Stuck, "n", unfinished), nil
	}
	return s.fine("workers.ok", "workers", census.Workers, "n", unfinished), nil
}

// configuration is what gateway config check warns of, keys that can be guessed among it.
func (s *setup) configuration(context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.current()
	found := warned(cfg.Warnings(s.parts.catalog), "gateway config check")
	if len(cfg.Channels) == 0 {
		found = append(found, s.found(admin.SetupFailed, "channels:\n  - {name: main, vendor: openai, keys: [\"${OPENAI_API_KEY}\"], models: {gpt-4o: }}", "config.channelless")...)
	}
	if len(found) == 0 {
		return s.fine("config.ok", "channels", len(cfg.Channels), "tokens", len(cfg.Tokens)), nil
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
		found = append(found, s.found(admin.SetupWarning, "channels: [{models: {"+unserved[0]+": }}]", "models.unserved", "models", some(unserved))...)
	}
	switch {
	case len(unpriced) > 0 && len(cfg.Prices) > 0:
		found = append(found, s.found(admin.SetupWarning, "prices: {"+unpriced[0]+": {input: …, output: …}}", "models.unpriced", "models", some(unpriced))...)
	case len(unpriced) > 0:
		found = append(found, s.fine("models.priceless")...)
	}
	if found == nil {
		return s.fine("models.ok", "n", len(listed)), nil
	}
	return found, nil
}

// some lists names, but not without end.
func some(names []string) string {
	if len(names) > mostNamed {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" … (+%d)", len(names)-mostNamed)
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
		found = append(found, s.found(admin.SetupWarning, "gateway channels", "channels.resting", "channels", some(resting))...)
	}
	if len(never) > 0 {
		found = append(found, s.found(admin.SetupWarning, "gateway channels test "+never[0], "channels.untried", "channels", some(never))...)
	}
	if found == nil {
		return s.fine("channels.ok", "n", len(states)), nil
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
	return s.clock("Redis", before, theirs, time.Now()), nil
}

// rights tries everything that the archive does with its bucket.
func (s *setup) rights(ctx context.Context) ([]admin.SetupFinding, error) {
	bucket := s.parts.cfg.Archive.Bucket
	err := s.parts.archive.CheckRights(ctx)
	switch {
	case errors.Is(err, archive.ErrNotHeeded):
		return s.found(admin.SetupWarning, "archive: {endpoint: …} of a store with conditional writes", "store.unconditional"), nil
	case err != nil:
		return s.found(admin.SetupFailed, "give the key this right for "+bucket+" and "+bucket+"/*", "store.rightless", "bucket", bucket, "error", err), nil
	}
	return s.found(admin.SetupOK, "", "store.rights", "bucket", bucket), nil
}

// storeClock compares this process's clock with the store's, by which signatures hold.
func (s *setup) storeClock(ctx context.Context) ([]admin.SetupFinding, error) {
	before := time.Now()
	theirs, err := s.parts.archive.Clock(ctx)
	if err != nil {
		return nil, err
	}
	// The store writes whole seconds.
	return s.clock("the store", before.Add(-time.Second), theirs, time.Now()), nil
}

// clock is how a clock that was read between two times of this process's own stands to it.
func (s *setup) clock(whose string, before, theirs, after time.Time) []admin.SetupFinding {
	off := time.Duration(0)
	switch {
	case theirs.Before(before):
		off = before.Sub(theirs)
	case theirs.After(after):
		off = theirs.Sub(after)
	}
	if off > clockSlack {
		return s.found(admin.SetupWarning, "timedatectl set-ntp true", "clocks.differ", "whose", whose, "time", off.Round(time.Millisecond))
	}
	return s.fine("clocks.ok", "whose", whose, "time", max(off, after.Sub(before)).Round(time.Millisecond))
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
	build := buildinfo.Read()
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
		versions = append(versions, version+": "+some(on))
	}
	slices.Sort(versions)
	if len(versions) > 1 {
		return s.found(admin.SetupWarning, "gateway version", "versions.several", "versions", strings.Join(versions, "; ")), nil
	}
	return s.fine("versions.ok", "n", processes, "version", strings.Join(versions, "")), nil
}

// console looks at where people sign in.
func (s *setup) console(context.Context) ([]admin.SetupFinding, error) {
	cfg := s.parts.cfg
	switch at := cfg.ConsoleURL(); {
	case !cfg.Console.Enabled:
		return s.fine("console.off"), nil
	case at == nil:
		return s.found(admin.SetupWarning, "console: {url: https://gateway.example.com}", "console.local"), nil
	case at.Scheme != "https":
		return s.found(admin.SetupWarning, "console: {url: https://"+at.Host+"}", "console.plain"), nil
	case len(cfg.AllOperators()) == 0:
		return s.found(admin.SetupWarning, "operators:\n  - {name: anna, key: ${ANNA_KEY}, role: operator}", "console.nobody"), nil
	}
	return s.fine("console.ok", "address", cfg.Console.URL), nil
}
