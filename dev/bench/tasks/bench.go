// Package tasks measures what tasks cost in each process: whole lives of videos, many of them in flight while clients
// read them, background calls, and growing numbers of them on deployments of several processes.
package tasks

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"modelrelay/dev/bench/stage"
)

// Sizes are the sizes of the loads. A load of size 0 is skipped.
type Sizes struct {
	Lives    int // tasks from create to webhook
	InFlight int // tasks in flight while clients read them
	Calls    int // background calls
	Queued   int // background calls of one token that wait while another's are measured
	Places   int // how many of the tasks in flight the upstream takes at the same time, at least 1

	Parts string // the kind of services: embedded or production
}

const (
	maxLives = 5_000
	maxTasks = 20_000
)

// Check names the sizes that are outside their limits.
func (s Sizes) Check() error {
	return stage.Check(
		stage.Bound{Name: "lives", Is: s.Lives, UpTo: maxLives},
		stage.Bound{Name: "tasks", Is: s.InFlight, UpTo: maxTasks},
		stage.Bound{Name: "calls", Is: s.Calls, UpTo: maxTasks},
		stage.Bound{Name: "queued", Is: s.Queued, UpTo: maxTasks},
		stage.Bound{Name: "places", Is: s.Places, From: 1, UpTo: maxTasks},
	)
}

// Bench measures tasks.
type Bench struct {
	*stage.Stage

	sizes Sizes
}

// New measures on a stage that has its programs and an upstream when a load begins.
func New(s *stage.Stage, sizes Sizes) *Bench { return &Bench{Stage: s, sizes: sizes} }

// Loads are the loads in their order.
func (b *Bench) Loads() []stage.Load {
	return []stage.Load{
		{Name: "lives", Size: b.sizes.Lives, Run: stage.Of(b, lives)},
		{Name: "tasks in flight", Size: b.sizes.InFlight, Run: stage.Of(b, inFlight)},
		{Name: "background calls", Size: b.sizes.Calls, Run: stage.Of(b, calls)},
		{Name: "background calls of two tokens", Size: b.sizes.Queued, Run: stage.Of(b, sharing)},
	}
}

// upstreamJob is a job at the upstream. Times are milliseconds since 1970.
type upstreamJob struct {
	Prompt   string `json:"prompt"`
	Created  int64  `json:"created"`
	Duration int64  `json:"duration"`
	Polls    int    `json:"polls"`
	Seen     int64  `json:"seen"` // when a poll first reported that the job has ended; 0: none did
}

// end is when the job was over.
func (j upstreamJob) end() int64 { return j.Created + j.Duration }

// jobs are the upstream's jobs whose prompts begin with a name, by prompt. A task that was paid twice is an error.
func (b *Bench) jobs(ctx context.Context, name string) (map[string]upstreamJob, error) {
	var answer struct {
		Jobs []upstreamJob `json:"jobs"`
	}
	if err := b.GetJSON(ctx, "http://"+b.Upstream.Addr+"/_control/jobs?contains="+url.QueryEscape(name), &answer); err != nil {
		return nil, fmt.Errorf("ask the upstream for its jobs: %w", err)
	}
	jobs := make(map[string]upstreamJob, len(answer.Jobs))
	for _, job := range answer.Jobs {
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
