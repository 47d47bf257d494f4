// Package stack is what the end-to-end tests run and hold in their hands: the binaries, built once, and the processes of one
// test, each with an address and data of its own, which it may kill and start again. A Stack has Temporal, Redis, the S3 store
// and the fake upstreams of the development stack; gateways and workers are started on it, over links that a test cuts, and are
// called as clients and operators call them. It is for tests only: nothing of the product imports it, and it knows of the product
// what a test needs to check its inside, its task client and its stores.
package stack

import (
	"log/slog"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/activities"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testport"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// What every gateway of a stack is configured with.
const (
	Token     = "sk-demo-e2e" // of the client demo; "-other" after it makes that of the client other
	AccessKey = "e2e"
	SecretKey = "e2e-secret"
	TaskQueue = "video"
)

// DefaultBucket and defaultNamespace are what the parts of a stack of New have at their start.
const (
	DefaultBucket    = "videos"
	defaultNamespace = "default"
)

// Nowhere is an address that is not listened on.
const Nowhere = "127.0.0.1:1"

// How long tests wait. Only what fails waits so long.
const (
	// ReadyTimeout is how long a part may take to answer on a busy machine.
	ReadyTimeout = 90 * time.Second
	// StartTimeout is how long a part may take to start there: Temporal of the parts of production is six processes, and makes its
	// schema first.
	StartTimeout = 5 * time.Minute
	// EndTimeout is how long a process may take to end after SIGTERM.
	EndTimeout = 30 * time.Second
	// TaskTimeout is how long a task of a sub-second upstream job may take on a machine that does everything else as well.
	TaskTimeout = 3 * time.Minute
	// CrashTimeout is how long a task may take after a kill: heartbeat and submit time-outs pass first.
	CrashTimeout = 5 * time.Minute
	// DeliveryTimeout is how long a first retry, or the replacement of a worker that died during a delivery, may take.
	DeliveryTimeout = 2 * time.Minute
	// ExportTimeout bounds the time from the end of a span to its arrival.
	ExportTimeout = time.Minute
)

// Stack is what one test runs on: Temporal, Redis, the S3 store and the fake upstreams. The test may kill and restart those of its own.
// Those of Shared serve other tests at the same time: of them the namespace, the prefix and the bucket are the test's own.
type Stack struct {
	T                         *testing.T
	dir                       string
	TemporalAt, RedisAt, S3At string   // addresses
	Temporal, Redis, S3       *Process // nil where other tests use the process too, and where the stack has none
	Namespace                 string   // of Temporal
	Prefix                    string   // of Redis's keys and channels
	Bucket                    string   // of the S3 store
	Upstreams
	// Sentinels are the addresses of those that know which Redis is the primary; none where the stack has only one Redis.
	Sentinels []string
	// startBy is how processes are started; nil: plainly.
	startBy func(*exec.Cmd) error
	// relay: there is neither Temporal nor a store, which relayed calls do not need.
	relay bool
}

// newStack has no parts yet.
func newStack(t *testing.T) *Stack {
	t.Helper()
	return &Stack{
		T: t, dir: dataFolder(t), TemporalAt: Nowhere, RedisAt: Nowhere, S3At: Nowhere,
		Namespace: defaultNamespace, Prefix: storage.Prefix, Bucket: DefaultBucket, Upstreams: newUpstreams(t, Nowhere),
	}
}

// New starts Temporal, Redis, the S3 store and the upstreams for a test that kills, pauses or measures Temporal. Any other test uses
// Shared, with OwnRedis and OwnS3 where it kills or pauses those.
func New(t *testing.T, upstreamFlags ...string) *Stack {
	t.Helper()
	s := newStack(t)
	s.TemporalAt, s.RedisAt, s.S3At = testport.Address(t), testport.Address(t), testport.Address(t)
	s.claimSentinels()
	s.StartTemporal()
	s.StartRedis()
	s.StartS3()
	s.startUpstreams(upstreamFlags)
	for _, p := range []*Process{s.Temporal, s.Redis, s.S3, s.Upstream} {
		p.AwaitReady(t)
	}
	return s
}

// NewRelay starts what relayed calls need, Redis and the upstreams, each by start where it is not nil. Like New, it is for a test
// that needs a Redis of its own.
func NewRelay(t *testing.T, start func(*exec.Cmd) error, upstreamFlags ...string) *Stack {
	t.Helper()
	s := newStack(t)
	s.RedisAt, s.startBy, s.relay = testport.Address(t), start, true
	s.claimSentinels()
	s.StartRedis()
	s.startUpstreams(upstreamFlags)
	s.Redis.AwaitReady(t)
	s.Upstream.AwaitReady(t)
	return s
}

// OwnRedis gives the stack a Redis that no other test uses, so that the test may kill it. No gateway may run yet.
func (s *Stack) OwnRedis() *Stack {
	s.T.Helper()
	s.RedisAt, s.Prefix, s.Sentinels = testport.Address(s.T), storage.Prefix, nil
	s.claimSentinels()
	s.StartRedis()
	s.Redis.AwaitReady(s.T)
	return s
}

// OwnS3 gives the stack an S3 store that no other test uses, so that the test may kill it. No gateway may run yet.
func (s *Stack) OwnS3() *Stack {
	s.T.Helper()
	s.S3At, s.Bucket = testport.Address(s.T), DefaultBucket
	s.StartS3()
	s.S3.AwaitReady(s.T)
	return s
}

// Launch starts a process of the stack.
func (s *Stack) Launch(name, path string, args ...string) *Process {
	s.T.Helper()
	if s.startBy != nil {
		return LaunchBy(s.T, s.startBy, name, path, args...)
	}
	return Launch(s.T, name, path, args...)
}

// StartTemporal starts Temporal, after a kill with what it had written.
func (s *Stack) StartTemporal() {
	s.Temporal = s.part("temporal", s.TemporalAt, "--ui", "")
}

// AddUI starts Temporal again, this time with its web UI at the address, which has payloads decrypted at a gateway's /codec.
func (s *Stack) AddUI(addr, codec string) {
	s.T.Helper()
	s.Temporal.Stop(s.T)
	s.Temporal = s.part("temporal", s.TemporalAt, "--ui", addr, "--codec", codec)
	s.Temporal.AwaitReady(s.T)
}

// StartRedis starts Redis, after a kill with what it had written; the embedded one has forgotten all.
func (s *Stack) StartRedis() {
	var args []string
	for _, addr := range s.Sentinels {
		args = append(args, "--sentinels", addr)
	}
	s.Redis = s.part("redis", s.RedisAt, args...)
}

// StartS3 starts the S3 store, after a kill with what it had written.
func (s *Stack) StartS3() {
	s.S3 = s.part("s3", s.S3At, "--access-key", AccessKey, "--secret-key", SecretKey, "--bucket", s.Bucket)
}

// startUpstreams starts the fake vendors.
func (s *Stack) startUpstreams(flags []string) {
	s.Upstreams = newUpstreams(s.T, testport.Address(s.T))
	args := []string{"upstream", "--listen", s.UpstreamAt, "--data", filepath.Join(s.dir, "upstream")}
	s.Upstream = s.Launch("upstream", Bin.Dev, append(args, flags...)...)
}

// part starts a part of the development stack, of the kind that the tests run on.
func (s *Stack) part(name, addr string, more ...string) *Process {
	return s.Launch(name, Bin.Dev, partArgs(name, addr, filepath.Join(s.dir, name), more...)...)
}

// partArgs are the arguments that start a part.
func partArgs(name, addr, dir string, more ...string) []string {
	return append([]string{name, "--parts", string(Parts()), "--listen", addr, "--data", dir}, more...)
}

// RedisKeeps reports whether the stack's Redis survives a kill.
func RedisKeeps() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// TemporalClient is a client of the test's own.
func (s *Stack) TemporalClient() client.Client {
	s.T.Helper()
	c, err := client.Dial(client.Options{
		HostPort: s.TemporalAt, Namespace: s.Namespace,
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(c.Close)
	return c
}

// RedisClient is a client of the test's own, which names keys as the product does; query is of Redis's URL.
func (s *Stack) RedisClient(query string) redis.UniversalClient {
	s.T.Helper()
	options := &storage.RedisOptions{Prefix: s.Prefix}
	if len(s.Sentinels) > 0 {
		options.Sentinel = storage.RedisSentinel{Master: redisMaster, Addresses: s.Sentinels}
	}
	c, err := storage.OpenRedis("redis://"+s.RedisAt+"/0"+query, options)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { _ = c.Close() })
	return c
}

// Archive is the test's own way to the store.
func (s *Stack) Archive() *archive.Store {
	s.T.Helper()
	a, err := archive.New(archive.Options{
		Endpoint: "http://" + s.S3At, Bucket: s.Bucket, AccessKey: AccessKey, SecretKey: SecretKey, Region: "us-east-1",
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return a
}

// Split is a stack with a front and a worker apart, each of which can be killed alone. The worker reaches Temporal
// over a link.
type Split struct {
	*Stack
	Front, Worker *Gateway
	ToTemporal    *Link // the worker's
}

// NewSplit starts a front and a worker on the stack.
func NewSplit(on *Stack) *Split {
	s := &Split{Stack: on, ToTemporal: NewLink(on.T, on.TemporalAt)}
	s.Front = s.StartGateway(GatewayOptions{Args: []string{"serve", "--worker=false"}})
	s.Worker = s.StartGateway(GatewayOptions{Args: []string{"worker"}, TemporalAt: s.ToTemporal.Addr()})
	return s
}

// RestartWorker replaces the worker that was killed.
func (s *Split) RestartWorker() {
	s.T.Helper()
	s.ToTemporal.Restore()
	s.Worker.Start()
}

// TaskClient reads and ends tasks as a gateway process of its own would.
func (s *Stack) TaskClient() *tasks.Client {
	s.T.Helper()
	redis := s.RedisClient("")
	return tasks.NewClient(s.TemporalClient(), tasks.ClientOptions{
		Namespace: s.Namespace, TaskQueue: TaskQueue, Objects: s.Archive(), Repeats: taskindex.NewRepeats(redis),
		Index: taskindex.New(redis, 0), Changes: taskindex.NewChanges(redis),
		Limits: workflows.Limits{
			Queue: activities.Duration(time.Hour), Deadline: activities.Duration(time.Hour),
			Archive: activities.Duration(time.Hour), Retention: activities.Duration(time.Hour),
		},
	})
}
