// Package config parses the configuration file into a Config, with defaults, validation and the table of its keys. It owns the file's
// syntax and the messages about its problems. It must not know what is made from a Config: listeners, HTTP servers or commands.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/calllog"
)

// Config is the whole configuration file. The doc tags are the texts of reference/config.md. `live:"true"` marks what a reload applies
// without a restart. An absent key has the value of Default, and null is absent.
type Config struct {
	Listen string `yaml:"listen" doc:"address of the API; port 0: the process takes a free port and logs it"`
	Front
	Egress
	// PublicURL is the gateway's address for clients.
	PublicURL string           `yaml:"public_url" doc:"address at which clients reach the gateway, such as https://gateway.example.com, for the links in answers; empty: the host in each request"`
	AdminKey  providers.Secret `yaml:"admin_key" live:"true" doc:"bearer key of /admin for the operator named admin; if it is empty and operators too, /admin answers 404"`
	Admin     Admin            `yaml:"admin"`
	// Operators have their own keys.
	Operators []Operator `yaml:"operators" live:"true"`
	Audit     Audit      `yaml:"audit"`
	// TrustedProxies are networks: addresses or ranges.
	TrustedProxies []string   `yaml:"trusted_proxies" doc:"addresses or CIDR ranges of reverse proxies; their X-Forwarded-For or Forwarded header sets the client address of a request. Empty: the gateway ignores these headers"`
	CORS           CORS       `yaml:"cors"`
	Console        Console    `yaml:"console"`
	Metrics        Metrics    `yaml:"metrics"`
	Log            Log        `yaml:"log"`
	Redis          Redis      `yaml:"redis"`
	Temporal       Temporal   `yaml:"temporal"`
	Worker         Worker     `yaml:"worker"`
	Archive        Archive    `yaml:"archive"`
	Video          Video      `yaml:"video"`
	Background     Background `yaml:"background"`
	Webhooks       Webhooks   `yaml:"webhooks"`
	Relay          Relay      `yaml:"relay"`
	Responses      Responses  `yaml:"responses"`
	Calls          Calls      `yaml:"calls"`
	Memory         Memory     `yaml:"memory"`
	Tokens         []Token    `yaml:"tokens" live:"true"`
	// Groups have rules for their tokens; tokens without a group are in default.
	Groups   map[string]Group `yaml:"groups" live:"true"`
	Prices   map[string]Price `yaml:"prices" live:"true"`
	Currency string           `yaml:"currency" doc:"unit of prices, such as USD, which the console writes after amounts; empty: none"`
	Channels []Channel        `yaml:"channels" live:"true"`
	// Aliases map names that clients may use to public names of models.
	Aliases map[string]string `yaml:"aliases" live:"true" doc:"requested name: public name. The gateway replaces the requested name before any other rule; permissions, prices and limits are those of the public name"`

	secretFiles []string
}

// SecretFiles returns the files in ${file:PATH}, also unreadable ones.
func (c Config) SecretFiles() []string { return c.secretFiles }

// Admin configures the address of the operator's operations.
type Admin struct {
	Listen string `yaml:"listen" doc:"separate address of /admin, such as one in a private network; /admin is then not served at listen. Empty: at listen"`
}

// Operator is an operator of the gateway.
type Operator struct {
	Name string           `yaml:"name" required:"true" doc:"unique name, recorded in the audit log"`
	Key  providers.Secret `yaml:"key" doc:"bearer key of /admin, as admin_key"`
	Role string           `yaml:"role" enum:"operator,viewer" doc:"operator: all operations; viewer: only reads (GET)"`
}

// Audit configures the audit log.
type Audit struct {
	Retention time.Duration `yaml:"retention" range:"0-" doc:"how long the archive keeps a finished day of the audit log (audit/<day>.jsonl); 0: permanently"`
}

// CORS permits pages of other origins to use the API.
type CORS struct {
	Origins []string `yaml:"origins" doc:"origins whose pages may call /v1 and /v1beta from a browser, such as https://app.example.com, or * for every origin; empty: none. The gateway never allows the browser's own credentials"`
}

// Console configures the console.
type Console struct {
	Enabled  bool          `yaml:"enabled" doc:"serve the console at /console, and a page for browsers at /"`
	Listen   string        `yaml:"listen" doc:"separate address of /console, such as one in a private network; /console is then not served at listen. Empty: at listen"`
	URL      string        `yaml:"url" doc:"address of the console for browsers, such as https://gateway.example.com; empty: sign-in only on loopback (localhost, 127.0.0.1)"`
	Idle     time.Duration `yaml:"idle" range:"1-" doc:"how long an unused session lasts; a session ends after 12 hours in any case"`
	TraceURL string        `yaml:"trace_url" doc:"address of a trace in your tracing system, with {trace_id}; empty: none"`
}

// Metrics configures the listener for Prometheus, which is never the public one, and the number of labels.
type Metrics struct {
	Listen string `yaml:"listen" doc:"address of the Prometheus endpoint, different for each process of a machine; port 0: the process takes a free port and logs it; empty: none"`
	Models int    `yaml:"models" range:"1-" doc:"how many models have their own labels in one process; the label of further models is other"`
}

// Log configures the process's log on standard error.
type Log struct {
	Level  string `yaml:"level" enum:"debug,info,warn,error" doc:"debug, info, warn or error"`
	Format string `yaml:"format" enum:"json,text" doc:"json or text"`
}

// Video has the limits of a video task.
type Video struct {
	Retention       time.Duration `yaml:"retention" range:"1-" doc:"how long a finished video is stored"`
	QueueLimit      time.Duration `yaml:"queue_limit" range:"1-" doc:"how long a task may wait for a channel"`
	Deadline        time.Duration `yaml:"deadline" range:"1-" doc:"how long a job may take after the upstream accepted it"`
	JobAttempts     int           `yaml:"job_attempts" range:"1-" doc:"maximum number of jobs of a task. The gateway starts another job only if the vendor reports that the failure is its own and that the job costs nothing"`
	ArchiveDeadline time.Duration `yaml:"archive_deadline" range:"1-" doc:"how long the gateway tries to copy the result"`
	PollMin         time.Duration `yaml:"poll_min" range:"1-" doc:"minimum wait between two polls"`
	PollMax         time.Duration `yaml:"poll_max" range:"1-" doc:"maximum wait between two polls"`
	Copies          int           `yaml:"copies" range:"2-" doc:"results that one worker copies at a time, at least 2; at most three quarters of them are of one channel"`
	PresignedURLs   bool          `yaml:"presigned_urls" doc:"link to the archive instead of the gateway in url of the generic format"`
	MaxOutputBytes  Size          `yaml:"max_output_bytes" range:"0-" doc:"maximum size of an archived video; 0: no limit"`
	DefaultModel    string        `yaml:"default_model" doc:"model of a create without a model; empty: 400"`
}

// Background has the limits of background calls.
type Background struct {
	MaxCalls   int           `yaml:"max_calls" range:"1-" doc:"background calls that one worker relays at a time"`
	MaxQueued  int           `yaml:"max_queued" range:"2-" doc:"maximum number of unfinished background calls of all tokens, above it: 503; one token may have half of them, above it: 429"`
	Deadline   time.Duration `yaml:"deadline" range:"1-" doc:"how long a background call may take after its create"`
	Retention  time.Duration `yaml:"retention" range:"0-" doc:"how long a background call is stored after its end; 0: video.retention"`
	MaxOutput  Size          `yaml:"max_output" range:"1-" doc:"maximum size of the answer of a background call"`
	LostAnswer string        `yaml:"lost_answer" enum:"repeat,fail" doc:"repeat: the gateway sends a call whose answer was lost once more; fail: the call fails with upstream_unknown"`
}

// Webhooks has the limits of deliveries to addresses of clients.
type Webhooks struct {
	AllowPrivateNetworks bool `yaml:"allow_private_networks" doc:"deliver to private and loopback addresses too"`
}

// Relay has the limits of synchronous calls.
type Relay struct {
	MaxBody          Size          `yaml:"max_body" range:"1-" doc:"maximum size of a request body"`
	MaxBodyMemory    Size          `yaml:"max_body_memory" doc:"maximum size of all request bodies in memory, above it: 503; one token may use half of it, above it: 429. 0: a quarter of the memory limit, but at least four times max_body. The memory limit is the smallest of GOMEMLIMIT, the limit of the control group, and the memory of the machine"`
	FirstByteTimeout time.Duration `yaml:"first_byte_timeout" range:"1-" doc:"maximum wait for the first byte of an upstream"`
	IdleTimeout      time.Duration `yaml:"idle_timeout" range:"1-" doc:"maximum time without data within an answer"`
	MaxAttempts      int           `yaml:"max_attempts" range:"1-" doc:"maximum number of channels that one call tries"`
	health.Options
	Grace           time.Duration `yaml:"grace" range:"0-" doc:"how long open calls may continue after SIGTERM"`
	RedisGrace      time.Duration `yaml:"redis_grace" range:"0-" doc:"how long known tokens work while Redis is unavailable"`
	RealtimeModel   string        `yaml:"realtime_model" doc:"model of a realtime call without a model; empty: 400"`
	ModerationModel string        `yaml:"moderation_model" doc:"model of a moderation without a model; empty: 400"`
}

// Responses has the limits of stored responses.
type Responses struct {
	Retention time.Duration `yaml:"retention" range:"0-" doc:"how long Redis stores a response of a model with another format, at most 1 MiB for each and 64 MiB for one token. A call with store: false is not stored. 0: no response is stored, and every such answer has store: false"`
}

// Calls configures the log of calls.
type Calls struct {
	Recent int `yaml:"recent" range:"0-10000000" doc:"number of newest calls in the log in Redis, 100 to 360 bytes each; 0: no log"`
	// Retention enables the history.
	Retention time.Duration `yaml:"retention" range:"0-" doc:"how long the archive keeps the history of calls (calls/<day>/<hour>/*.jsonl.zst), which continues where calls.recent ends, in whole days of UTC, such as 720h; 0: no history"`
}

// Memory configures the process's memory.
type Memory struct {
	LeastHeap Size `yaml:"least_heap" doc:"heap size below which the garbage collector does not run, which saves a tenth of the CPU of short calls; 0: Go's rule, a collection at each doubling. GOGC replaces it. The collector limits memory to nine tenths of the memory limit (see relay.max_body_memory), or to GOMEMLIMIT if it is set"`
}

// defaultLeastHeap is three to four times the memory of an idle gateway, and less than that of 500 open streams.
const defaultLeastHeap = 48 << 20

// Price is the price of a model, in the operator's currency. An absent amount costs nothing.
type Price struct {
	Input       Amount `yaml:"input" doc:"per unit of input tokens"`
	CachedInput Amount `yaml:"cached_input" doc:"per unit of cached input tokens; absent: the price of input"`
	Output      Amount `yaml:"output" doc:"per unit of output tokens; if the vendor of a video reports output tokens, they replace second and video"`
	Unit        string `yaml:"unit" enum:"1,1K,1M" doc:"tokens of one unit: 1, 1K or 1M"`
	Request     Amount `yaml:"request" doc:"per answered call, and per completed video task"`
	Image       Amount `yaml:"image" doc:"per generated image"`
	AudioSecond Amount `yaml:"audio_second" doc:"per second of audio, if the upstream reports its length"`
	Second      Amount `yaml:"second" doc:"per second of video, if no tier matches"`
	Video       Amount `yaml:"video" doc:"per video, if no tier matches; added to second"`
	// Tiers are tried in order.
	Tiers []Tier `yaml:"tiers"`
}

// Tier is the price of videos of one kind.
type Tier struct {
	Resolution string `yaml:"resolution" doc:"resolution of the videos of this tier, such as 720p or 4k, in upper or lower case; a size in pixels has the name of its shorter side. Absent: every resolution. The first tier that matches replaces second and video of the price"`
	// Audio is true or false, "" for both.
	Audio  string `yaml:"audio" enum:",true,false" doc:"true: videos with sound; false: videos without sound; absent: both"`
	Second Amount `yaml:"second" doc:"per second of such a video"`
	Video  Amount `yaml:"video" doc:"per such video; added to second"`
}

// Channel is a configured route to an upstream.
type Channel struct {
	providers.Channel
	CA          string `yaml:"ca" type:"file" doc:"PEM file of the CAs that sign the upstream's certificate; requires a base_url that begins with https://. Empty: the system's CAs. The gateway reads a changed file again"`
	StreamUsage bool   `yaml:"stream_usage" doc:"for vendor openai: request the token counts of a stream if the client does not; after an upstream refuses the field, the gateway no longer sends it"`
	Translate   bool   `yaml:"translate" doc:"translate calls in other chat formats for this channel; false: it gets only calls in its own formats"`
	Background  string `yaml:"background" enum:"gateway,upstream" doc:"for vendor openai, where a Response with background: true runs: gateway (a worker of the gateway waits for the answer) or upstream (the vendor runs it; the gateway reads it there and never sends it twice)"`
}

// The values of Channel.Background.
const (
	BackgroundGateway  = "gateway"
	BackgroundUpstream = "upstream"
)

// Default returns the values of absent keys. It is valid: everything is on this machine, without a channel or a token.
func Default() Config {
	return Config{
		Listen:   "127.0.0.1:8080",
		Console:  Console{Enabled: true, Idle: 30 * time.Minute},
		Audit:    Audit{Retention: 400 * 24 * time.Hour},
		Metrics:  Metrics{Listen: "127.0.0.1:9464", Models: 200},
		Log:      Log{Level: "info", Format: "json"},
		Redis:    Redis{URL: "redis://127.0.0.1:6379/0", RedisOptions: storage.RedisOptions{Prefix: storage.Prefix}},
		Temporal: Temporal{Address: "127.0.0.1:7233", Namespace: "default", TaskQueue: "video", CallQueue: "calls"},
		Archive: Archive{
			Options:      archive.Options{Endpoint: "http://127.0.0.1:9000", Bucket: "videos", Region: "us-east-1", Style: archive.StyleAuto},
			CreateBucket: true,
		},
		Video: Video{
			Retention: 72 * time.Hour, QueueLimit: 24 * time.Hour, Deadline: 6 * time.Hour, JobAttempts: 2, ArchiveDeadline: 24 * time.Hour,
			PollMin: 2 * time.Second, PollMax: 30 * time.Second, Copies: 8, MaxOutputBytes: 2 << 30,
		},
		Relay: Relay{
			MaxBody: 64 << 20, FirstByteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxAttempts: 3,
			Options: health.Options{
				Cooldown: health.DefaultCooldown, CooldownFailures: health.DefaultCooldownFailures,
				CooldownShare: health.DefaultCooldownShare, CooldownWindow: health.DefaultCooldownWindow,
			},
			Grace: 30 * time.Second, RedisGrace: 10 * time.Minute,
		},
		Background: Background{MaxCalls: 1000, MaxQueued: 20_000, Deadline: time.Hour, MaxOutput: 64 << 20, LostAnswer: providers.LostRepeat},
		Responses:  Responses{Retention: 24 * time.Hour},
		Calls:      Calls{Recent: calllog.DefaultRecent}, Memory: Memory{LeastHeap: defaultLeastHeap},
	}
}

// DefaultGroup is the group of tokens and channels without a group.
const DefaultGroup = "default"

// setDefaults sets the defaults of absent keys of an entry.
func (p *Price) setDefaults() { p.Unit = "1M" }

// setDefaults sets the defaults of absent keys of an entry.
func (c *Channel) setDefaults() {
	c.Groups, c.Weight, c.Dialect, c.Translate, c.StreamUsage = []string{DefaultGroup}, 1, providers.DialectBoth, true, true
	c.Background = BackgroundGateway
}

// Parse parses the text of a configuration file. env has the values of ${NAME}. Paths of ${file:PATH} start from the file's folder, and
// SecretFiles lists them, also for a refused configuration. The error is an *Error with all problems, each with key, line and column.
func Parse(file string, text []byte, env func(string) (string, bool), vendors providers.Catalog) (Config, error) {
	cfg := Default()
	dec := &decoder{env: env, folder: filepath.Dir(file), places: map[string]place{}}
	dec.document(text, &cfg)
	if len(dec.problems) == 0 {
		for _, problem := range cfg.Validate(vendors) {
			dec.addAt(problem.Key, problem.Message)
		}
	}
	if len(dec.problems) > 0 {
		return Config{secretFiles: dec.files}, &Error{File: file, Problems: dec.problems}
	}
	cfg.secretFiles = dec.files
	_, cfg.proxyProtocolGiven = dec.places["proxy_protocol"]
	return cfg, nil
}

// Load reads and parses a configuration file, and returns its text too. The error is an *Error.
func Load(file string, env func(string) (string, bool), vendors providers.Catalog) (Config, []byte, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the operator names the file
	if err != nil {
		if pathErr := (*os.PathError)(nil); errors.As(err, &pathErr) {
			err = pathErr.Err
		}
		return Config{}, nil, &Error{File: file, Problems: []Problem{{Message: fmt.Sprintf("cannot be read: %v", err)}}}
	}
	cfg, err := Parse(file, text, env, vendors)
	return cfg, text, err
}
