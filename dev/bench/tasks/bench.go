// Package tasks measures what video tasks cost, each process of the stack apart: one after the other, many at once, growing
// numbers of them, large ones, and on deployments of several processes.
package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"modelrelay/dev/bench/stage"
)

// Sizes say how much is measured. A load of size 0 is left out.
type Sizes struct {
	Tasks  int // made one after the other
	Lives  int // from their create to their webhook, with what each process spends on one
	Growth int // the most in flight, from 10 in steps of ten times
	Line   int // of one tenant that fill a channel before another one's few come
	Crowd  int // at once
	Places int // for jobs of the crowd at the upstream, the others stand in line; 0: no limit
	Large  int // size of one large video in MiB
}

const (
	maxTasks = 1_000
	maxLives = 5_000
	maxLine  = 10_000
	maxCrowd = 20_000
	maxLarge = 4 << 10
)

// Check says which number is out of its bounds.
func (s Sizes) Check() error {
	return stage.Check(
		stage.Bound{Name: "tasks", Is: s.Tasks, UpTo: maxTasks},
		stage.Bound{Name: "lives", Is: s.Lives, UpTo: maxLives},
		stage.Bound{Name: "task growth", Is: s.Growth, UpTo: maxCrowd},
		stage.Bound{Name: "line", Is: s.Line, UpTo: maxLine},
		stage.Bound{Name: "crowd", Is: s.Crowd, UpTo: maxCrowd},
		stage.Bound{Name: "places", Is: s.Places, UpTo: maxCrowd},
		stage.Bound{Name: "large", Is: s.Large, UpTo: maxLarge},
	)
}

// Bench measures tasks.
type Bench struct {
	*stage.Stage

	sizes Sizes
}

// New measures on a stage that has the gateway's program, a Redis and an upstream when a load begins.
func New(s *stage.Stage, sizes Sizes) *Bench { return &Bench{Stage: s, sizes: sizes} }

// Loads are what is measured, in their order.
func (b *Bench) Loads() []stage.Load {
	return []stage.Load{
		{Name: "tasks", Size: b.sizes.Tasks, Run: stage.Of(b, tasks)},
		{Name: "lives", Size: b.sizes.Lives, Run: stage.Of(b, lives)},
		{Name: "task growth", Size: b.sizes.Growth, Run: stage.Of(b, taskGrowth)},
		{Name: "line", Size: b.sizes.Line, Run: stage.Of(b, line)},
		{Name: "crowd", Size: b.sizes.Crowd, Run: stage.Of(b, crowd)},
		{Name: "large", Size: b.sizes.Large, Run: stage.Of(b, large)},
	}
}

// dialTemporal connects to a server, silently. The caller closes the client.
func dialTemporal(addr string) (client.Client, error) {
	c, err := client.Dial(client.Options{HostPort: addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, fmt.Errorf("reach Temporal: %w", err)
	}
	return c, nil
}

// upstreamJob is what the upstream says of a job. Times are milliseconds since 1970.
type upstreamJob struct {
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	State    string `json:"state"`
	SHA256   string `json:"sha256"`
	Created  int64  `json:"created"`
	Duration int64  `json:"duration"`
	Polls    int    `json:"polls"`
	Seen     int64  `json:"seen"` // when a poll first found it over
}

// jobs are those of an upstream whose prompts contain a text.
func (b *Bench) jobs(ctx context.Context, upstream, text string) ([]upstreamJob, error) {
	var answer struct {
		Jobs []upstreamJob `json:"jobs"`
	}
	if err := b.GetJSON(ctx, upstream+"/_control/jobs?contains="+url.QueryEscape(text), "", &answer); err != nil {
		return nil, fmt.Errorf("ask the upstream for its jobs: %w", err)
	}
	return answer.Jobs, nil
}

// jobsOf are those whose prompts begin with a name, by prompt. A task that was paid twice is an error.
func (b *Bench) jobsOf(ctx context.Context, name string) (map[string]upstreamJob, error) {
	all, err := b.jobs(ctx, "http://"+b.Upstream.Addr, name)
	if err != nil {
		return nil, err
	}
	jobs := make(map[string]upstreamJob, len(all))
	for _, job := range all {
		if !strings.HasPrefix(job.Prompt, name) {
			continue
		}
		if _, twice := jobs[job.Prompt]; twice {
			return nil, fmt.Errorf("%w: %s was paid twice", stage.ErrBroken, job.Prompt)
		}
		jobs[job.Prompt] = job
	}
	return jobs, nil
}
