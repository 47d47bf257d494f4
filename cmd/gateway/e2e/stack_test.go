package e2e_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/storage/archive"
)

const (
	token     = "sk-demo-e2e"
	accessKey = "e2e"
	secretKey = "e2e-secret"
	bucket    = "videos"
	queue     = "video"
)

// stack is one set of services with their own addresses and data, all killable and restartable alone.
type stack struct {
	t                             *testing.T
	dir                           string
	temporalAt, redisAt, s3At, at string // at: the upstream's
	temporal, redis, s3, upstream *process
	control                       *control
	// start is how processes are started; nil: plainly.
	start func(*exec.Cmd) error
	// relay: there is neither Temporal nor a store, which relayed calls do not need.
	relay bool
}

// newStack starts Temporal, Redis, the S3 store and the upstreams.
func newStack(t *testing.T, upstreamFlags ...string) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir(), temporalAt: freeAddr(t), redisAt: freeAddr(t), s3At: freeAddr(t), at: freeAddr(t)}
	s.startTemporal()
	s.startRedis()
	s.startStore()
	s.upstream = launch(t, "upstream", bin.dev, append([]string{
		"upstream", "--listen", s.at, "--data", filepath.Join(s.dir, "upstream"),
	}, upstreamFlags...)...)
	for _, p := range []*process{s.temporal, s.redis, s.s3, s.upstream} {
		p.ready(t)
	}
	s.control = &control{t: t, base: "http://" + s.at + "/_control"}
	return s
}

// nowhere is an address that nobody listens on.
const nowhere = "127.0.0.1:1"

// newRelayStack starts what relayed calls need, Redis and the upstreams, each by start where it is not nil.
func newRelayStack(t *testing.T, start func(*exec.Cmd) error) *stack {
	t.Helper()
	s := &stack{t: t, dir: t.TempDir(), temporalAt: nowhere, s3At: nowhere, redisAt: freeAddr(t), at: freeAddr(t), start: start, relay: true}
	s.redis = s.launch("redis", bin.dev, "redis", "--listen", s.redisAt, "--data", filepath.Join(s.dir, "redis"))
	s.upstream = s.launch("upstream", bin.dev, "upstream", "--listen", s.at, "--data", filepath.Join(s.dir, "upstream"))
	s.redis.ready(t)
	s.upstream.ready(t)
	s.control = &control{t: t, base: "http://" + s.at + "/_control"}
	return s
}

// launch starts a process of the stack.
func (s *stack) launch(name, path string, args ...string) *process {
	s.t.Helper()
	if s.start != nil {
		return launchBy(s.t, s.start, name, path, args...)
	}
	return launch(s.t, name, path, args...)
}

func (s *stack) startTemporal() {
	s.temporal = launch(s.t, "temporal", bin.dev, "temporal", "--listen", s.temporalAt, "--ui", "", "--data", filepath.Join(s.dir, "temporal"))
}

// startRedis starts Redis, after a kill with what it had written; the embedded one has forgotten all.
func (s *stack) startRedis() {
	s.redis = launch(s.t, "redis", bin.dev, "redis", "--listen", s.redisAt, "--data", filepath.Join(s.dir, "redis"))
}

func (s *stack) startStore() {
	s.s3 = launch(s.t, "s3", bin.dev, "s3", "--listen", s.s3At, "--data", filepath.Join(s.dir, "s3"),
		"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket)
}

// redisKeeps tells whether the stack's Redis survives a kill.
func redisKeeps() bool {
	_, err := exec.LookPath("redis-server")
	return err == nil
}

// temporalClient is a client of the test's own.
func (s *stack) temporalClient() client.Client {
	s.t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.temporalAt, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// archive is the test's own way to the store.
func (s *stack) archive() *archive.Store {
	s.t.Helper()
	a, err := archive.New(archive.Options{
		Endpoint: "http://" + s.s3At, Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey, Region: "us-east-1",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// gateway is one gateway process with its own address and configuration.
type gateway struct {
	s      *stack
	at     string
	config string
	args   []string
	*process
}

// gatewayOptions change a gateway's configuration.
type gatewayOptions struct {
	temporalAt string   // instead of the stack's
	redisAt    string   // instead of the stack's
	archiveAt  string   // instead of the stack's
	redisQuery string   // of Redis's URL
	args       []string // of the command line, "serve" by default
	video      string   // members of the video section
	relay      string   // members of the relay section
	channels   string   // instead of the usual ones, as YAML list items; {self} is the gateway's own address
	tokens     string   // beside the usual ones, as YAML list items
	webhooks   string   // members of the webhooks section
	adminKey   string   // opens /admin
	trusted    string   // proxies that are trusted, as YAML list items
}

// gateway writes a configuration, starts a gateway and waits until it is ready.
func (s *stack) gateway(o gatewayOptions) *gateway {
	s.t.Helper()
	if o.temporalAt == "" {
		o.temporalAt = s.temporalAt
	}
	if o.redisAt == "" {
		o.redisAt = s.redisAt
	}
	if o.archiveAt == "" {
		o.archiveAt = s.s3At
	}
	if len(o.args) == 0 {
		o.args = []string{"serve"}
		if s.relay {
			o.args = append(o.args, "--worker=false")
		}
	}
	if o.video == "" {
		o.video = "poll_min: 200ms, poll_max: 1s"
	}
	if o.channels == "" {
		o.channels = s.channel("main", "sk-upstream-main", "")
	}
	g := &gateway{s: s, at: freeAddr(s.t), args: o.args}
	o.channels = strings.ReplaceAll(o.channels, "{self}", g.at)
	g.config = filepath.Join(s.dir, strings.ReplaceAll(g.at, ":", "_")+".yaml")
	text := fmt.Sprintf(`listen: %s
metrics: {listen: 127.0.0.1:0}
admin_key: %q
trusted_proxies: [%s]
log: {level: debug, format: text}
redis: {url: "redis://%s/0%s"}
temporal: {address: %s, namespace: default, task_queue: %s}
archive: {endpoint: http://%s, bucket: %s, access_key: %s, secret_key: %s}
video: {%s}
relay: {%s}
webhooks: {%s}
tokens:
  - {name: demo, key: %s, group: default, models: ["*"]}
  - {name: other, key: %s-other, group: default, models: ["*"]}
%schannels:
%s`, g.at, o.adminKey, o.trusted, o.redisAt, o.redisQuery, o.temporalAt, queue, o.archiveAt, bucket, accessKey, secretKey, o.video, o.relay, o.webhooks, token, token, o.tokens, o.channels)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	g.start()
	return g
}

// channel is one channel of the fake OpenAI upstream, as a YAML list item.
func (s *stack) channel(name, key, more string) string {
	return fmt.Sprintf(`  - name: %s
    vendor: openai
    base_url: http://%s/openai/v1
    keys: [%s]
    models: {gpt-4o: , sora-2: , sora-2-pro: , sora-2-manual: , sora-2-fast: , sora-2-long: , sora-2-fast-fail: }
    groups: [default]
%s`, name, s.at, key, more)
}

// everyVendor is one channel of each fake upstream that makes videos, as YAML list items.
func (s *stack) everyVendor() string {
	return s.channel("main", "sk-upstream-main", "") + fmt.Sprintf(`  - name: visual
    vendor: vendorc
    base_url: http://%[1]s/vendorc
    keys: ["ak-upstream-visual:sk-upstream-visual"]
    models: {jimeng-fast: jimeng_t2v_v30_fast, jimeng-manual: jimeng_t2v_v30_manual, jimeng-fast-fail: jimeng_t2v_v30_fast_fail}
    groups: [default]
  - name: chained
    vendor: generic
    base_url: http://%[1]s/generic/v1
    keys: [sk-upstream-chained]
    models: {generic-video-fast: , generic-video-manual: , generic-video-fast-fail: }
    groups: [default]
`, s.at)
}

// start runs the gateway, again after a kill, at the same address.
func (g *gateway) start() {
	g.s.t.Helper()
	g.relaunch()
	if g.args[0] == "serve" {
		g.awaitReady()
	}
}

// relaunch runs the gateway without waiting for it.
func (g *gateway) relaunch() {
	g.s.t.Helper()
	g.process = g.s.launch("gateway "+strings.Join(g.args, " "), bin.gateway, append(g.args, "--config", g.config)...)
}

func (g *gateway) url() string { return "http://" + g.at }

func (g *gateway) awaitReady() {
	g.s.t.Helper()
	eventually(g.s.t, "gateway ready", readyTimeout, func() bool {
		select {
		case <-g.done:
			g.s.t.Fatalf("gateway ended:\n%s", g.out.tail(40))
		default:
		}
		path := "/readyz?for=video"
		if g.s.relay {
			path = "/healthz" // it is not ready for tasks
		}
		resp, err := http.Get(g.url() + path)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// sdk is the unmodified OpenAI SDK against the gateway.
func (g *gateway) sdk(options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(g.url() + "/v1"), option.WithAPIKey(token)}, options...)...)
}

// create makes a task through the SDK.
func (g *gateway) create(ctx context.Context, model, prompt string, options ...option.RequestOption) *openai.Video {
	g.s.t.Helper()
	sdk := g.sdk()
	video, err := sdk.Videos.New(ctx, openai.VideoNewParams{Prompt: prompt, Model: openai.VideoModel(model)}, options...)
	if err != nil {
		g.s.t.Fatalf("create: %v", err)
	}
	return video
}

// end waits for the task's end through the SDK, checking on the way that progress never falls.
func (g *gateway) end(id string, within time.Duration) *openai.Video {
	g.s.t.Helper()
	sdk := g.sdk()
	var last *openai.Video
	eventually(g.s.t, "task "+id+" ends", within, func() bool {
		video, err := sdk.Videos.Get(g.s.t.Context(), id)
		if err != nil {
			return false // a part may just be away
		}
		if last != nil && video.Progress < last.Progress {
			g.s.t.Fatalf("progress fell from %d to %d", last.Progress, video.Progress)
		}
		last = video
		return video.Status == openai.VideoStatusCompleted || video.Status == openai.VideoStatusFailed
	})
	return last
}

// completed waits for the task's good end and compares the archived bytes with the upstream's.
func (g *gateway) completed(id string, within time.Duration) {
	g.s.t.Helper()
	video := g.end(id, within)
	if video.Status != openai.VideoStatusCompleted || video.Progress != 100 {
		g.s.t.Fatalf("task %s ended as %s: %s %s", id, video.Status, video.Error.Code, video.Error.Message)
	}
	sdk := g.sdk()
	resp, err := sdk.Videos.DownloadContent(g.s.t.Context(), id, openai.VideoDownloadContentParams{})
	if err != nil {
		g.s.t.Fatalf("download %s: %v", id, err)
	}
	defer resp.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, resp.Body); err != nil {
		g.s.t.Fatalf("download %s: %v", id, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	for _, job := range g.s.control.jobs() {
		if job.SHA256 == got {
			return
		}
	}
	g.s.t.Errorf("task %s: no upstream job has the downloaded bytes (SHA-256 %s)", id, got)
}
