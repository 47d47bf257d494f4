package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/storage/testport"
)

// shared are the parts that the tests of this binary have in common.
var shared struct {
	temporal, redis, s3 sharedPart
	// sentinels are the addresses of those of Redis.
	sentinels []string
	// stacks numbers the tests' namespaces, prefixes and buckets.
	stacks atomic.Int64

	mu         sync.Mutex
	namespaces []string // that no test has yet
}

// namespacesAtOnce is how many namespaces are made together: the server takes seconds to know a new one everywhere, however many they are.
const namespacesAtOnce = 16

// Shared returns a stack on the Temporal, the Redis and the S3 store that the tests of this binary have in common. Each of them is
// started when the first test needs it, and ended by EndShared. The test has a namespace, a prefix, a bucket and upstreams of its own.
func Shared(t *testing.T, upstreamFlags ...string) *Stack {
	t.Helper()
	s := newStack(t)
	s.startUpstreams(upstreamFlags)
	s.shareRedis()
	s.shareS3()
	s.shareTemporal()
	s.Upstream.AwaitReady(t)
	return s
}

// SharedRelay is Shared with what relayed calls need: Redis and the upstreams.
func SharedRelay(t *testing.T, upstreamFlags ...string) *Stack {
	t.Helper()
	s := newStack(t)
	s.relay = true
	s.startUpstreams(upstreamFlags)
	s.shareRedis()
	s.Upstream.AwaitReady(t)
	return s
}

// SharedS3 is Shared with the S3 store alone.
func SharedS3(t *testing.T) *Stack {
	t.Helper()
	s := newStack(t)
	s.shareS3()
	return s
}

// SharedTemporal is Shared with Temporal alone.
func SharedTemporal(t *testing.T) *Stack {
	t.Helper()
	s := newStack(t)
	s.shareTemporal()
	return s
}

// EndShared ends what the tests had in common. It is called after the last of them.
func EndShared() {
	for _, part := range []*sharedPart{&shared.temporal, &shared.redis, &shared.s3} {
		part.end()
	}
}

func (s *Stack) shareRedis() {
	s.T.Helper()
	s.RedisAt = shared.redis.use(s.T, "redis", func(ctx context.Context) (args []string, err error) {
		if Parts() == Production {
			for range sentinelCount {
				addr, release, err := testport.Claim(ctx)
				if err != nil {
					return nil, err
				}
				shared.redis.release = append(shared.redis.release, release)
				shared.sentinels = append(shared.sentinels, addr)
				args = append(args, "--sentinels", addr)
			}
		}
		return args, nil
	})
	s.Sentinels = shared.sentinels
	s.Prefix = fmt.Sprintf("e2e-%d:", shared.stacks.Add(1))
}

func (s *Stack) shareS3() {
	s.T.Helper()
	s.S3At = shared.s3.use(s.T, "s3", func(context.Context) ([]string, error) {
		return []string{"--access-key", AccessKey, "--secret-key", SecretKey, "--bucket", DefaultBucket}, nil
	})
	s.Bucket = fmt.Sprintf("%s-%d", DefaultBucket, shared.stacks.Add(1))
	if err := s.Archive().EnsureBucket(s.T.Context()); err != nil {
		s.T.Fatal(err)
	}
}

func (s *Stack) shareTemporal() {
	s.T.Helper()
	s.TemporalAt = shared.temporal.use(s.T, "temporal", func(context.Context) ([]string, error) { return []string{"--ui", ""}, nil })
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if len(shared.namespaces) == 0 {
		ctx, cancel := context.WithTimeout(s.T.Context(), ReadyTimeout)
		defer cancel()
		made, err := makeNamespaces(ctx, s.TemporalAt)
		if err != nil {
			s.T.Fatalf("make namespaces: %v", err)
		}
		shared.namespaces = made
	}
	s.Namespace, shared.namespaces = shared.namespaces[0], shared.namespaces[1:]
}

// makeNamespaces makes namespaces like the one that the server has, and returns when all of them can be used.
func makeNamespaces(ctx context.Context, addr string) (names []string, err error) {
	c, err := client.Dial(client.Options{HostPort: addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	service := c.WorkflowService()
	first, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: defaultNamespace})
	if err != nil {
		return nil, err
	}
	retention, attributes := first.GetConfig().GetWorkflowExecutionRetentionTtl(), first.GetConfig().GetCustomSearchAttributeAliases()
	for range namespacesAtOnce {
		name := fmt.Sprintf("e2e-%d", shared.stacks.Add(1))
		names = append(names, name)
		if _, err := service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace:                        name,
			WorkflowExecutionRetentionPeriod: retention,
		}); err != nil {
			return nil, err
		}
		if _, err := service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: name, Config: &namespace.NamespaceConfig{CustomSearchAttributeAliases: attributes},
		}); err != nil {
			return nil, err
		}
	}
	query := strings.Join(slices.Sorted(maps.Values(attributes)), " = '' OR ") + " = ''"
	for _, name := range names {
		for {
			_, err := service.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: query})
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return nil, errors.Join(err, ctx.Err())
			case <-time.After(namespaceInterval):
			}
		}
	}
	return names, nil
}

// namespaceInterval is the pause between two questions whether a namespace can be used.
const namespaceInterval = 20 * time.Millisecond

// sharedPart is a part of the development stack that is started once.
type sharedPart struct {
	once    sync.Once
	err     error // of the start
	addr    string
	dir     string
	release []func() // give its addresses back
	*Process
}

// use returns the part's address. The first caller starts it, with the arguments.
func (p *sharedPart) use(t *testing.T, name string, args func(context.Context) ([]string, error)) string {
	t.Helper()
	p.once.Do(func() { p.err = p.start(t.Context(), name, args) })
	if p.err != nil {
		t.Fatalf("the %s that tests share: %v", name, p.err)
	}
	t.Cleanup(func() { p.showIfFailed(t) })
	return p.addr
}

func (p *sharedPart) start(ctx context.Context, name string, args func(context.Context) ([]string, error)) (err error) {
	if p.dir, err = os.MkdirTemp("", "modelrelay-e2e-"+name+"-"); err != nil {
		return err
	}
	if err := os.Chmod(p.dir, passable); err != nil {
		return err
	}
	var release func()
	if p.addr, release, err = testport.Claim(ctx); err != nil {
		return err
	}
	p.release = append(p.release, release)
	more, err := args(ctx)
	if err != nil {
		return err
	}
	if p.Process, err = launch((*exec.Cmd).Start, "shared "+name, Bin.Dev, partArgs(name, p.addr, p.dir, more...)...); err != nil {
		return err
	}
	_, err = p.ready()
	return err
}

// end ends a part that was started. Its data go with it.
func (p *sharedPart) end() {
	if p.Process != nil {
		p.Kill()
	}
	for _, release := range p.release {
		release()
	}
	if p.dir != "" {
		_ = os.RemoveAll(p.dir)
	}
}
