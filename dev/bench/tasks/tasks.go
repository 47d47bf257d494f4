package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	videosPath = "/v1/videos"
	// wholeConfig is the file of the whole stack's configuration.
	wholeConfig = "whole.yaml"
	// taskModel is a job that is over in a moment.
	taskModel = "sora-2-fast"
	// describedAgain is when the gateway asks Temporal about a task anew.
	describedAgain = 1100 * time.Millisecond
	// taskDeadline bounds the time until all tasks are over.
	taskDeadline = 3 * time.Minute
)

// tasks measures creates and status reads of video tasks, one after the other, on the whole embedded stack.
func tasks(ctx context.Context, b *Bench, report *figures.Report) error {
	base, _, err := b.whole(ctx, "", "")
	if err != nil {
		return err
	}
	n := b.sizes.Tasks
	ids := make([]string, 0, n)
	creates := make([]time.Duration, 0, n)
	for i := range n + 1 {
		began := time.Now()
		id, err := b.createTask(ctx, base, stage.ClientKey, taskModel, "a harbour at dawn")
		if err != nil {
			return err
		}
		if i == 0 {
			continue // it opens connections and queues
		}
		creates = append(creates, time.Since(began))
		ids = append(ids, id)
	}
	if err := b.awaitTasks(ctx, base, ids); err != nil {
		return err
	}
	var reads, repeats []time.Duration
	for range b.Options.Rounds {
		if err := stage.Pause(ctx, describedAgain); err != nil {
			return err
		}
		for _, into := range []*[]time.Duration{&reads, &repeats} {
			for _, id := range ids {
				began := time.Now()
				if _, err := b.taskStatus(ctx, base, stage.ClientKey, id); err != nil {
					return err
				}
				*into = append(*into, time.Since(began))
			}
		}
	}
	load := fmt.Sprintf("%d tasks, one at a time", n)
	for _, figure := range []struct {
		name  string
		from  []time.Duration
		share float64
		want  *figures.Target
	}{
		{"create p50", creates, 0.50, figures.AtMost(30)},
		{"create p99", creates, 0.99, nil},
		{"status p50", reads, 0.50, figures.AtMost(3)},
		{"status p99", reads, 0.99, nil},
		{"status p50, within a second", repeats, 0.50, nil},
	} {
		report.AddOne(load, figure.name, "ms", figures.Milliseconds(figures.Quantile(figure.from, figure.share)), figure.want)
	}
	return nil
}

// whole starts the stack with everything in it and returns the URLs of the gateway and of the upstream. tokens are more
// items of the configuration's list, channel more fields of its one channel, both YAML.
func (b *Bench) whole(ctx context.Context, tokens, channel string) (gateway, upstream string, err error) {
	args := []string{"up", "--data", filepath.Join(b.Options.Data, "whole"), "--config", filepath.Join(b.Options.Data, wholeConfig)}
	addresses := map[string]string{}
	for _, flag := range []string{"listen", "metrics", "temporal", "ui", "redis", "s3", "upstream"} {
		addr, err := stage.FreeAddress()
		if err != nil {
			return "", "", err
		}
		addresses[flag] = addr
		args = append(args, "--"+flag, addr)
	}
	config := fmt.Sprintf(`tokens:
  - {name: bench, key: %s, requests_per_minute: 1000000000, reads_per_minute: -1}
%schannels:
  - {name: bench, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {"*": }%s}
`, stage.ClientKey, tokens, addresses["upstream"], stage.UpstreamKey, channel)
	if _, err := b.WriteConfig(wholeConfig, []byte(config)); err != nil {
		return "", "", err
	}
	up, err := b.Start(ctx, &stage.Child{Name: "whole", Addr: addresses["listen"]}, b.Answers("/readyz?for=video"), b.Options.Program, args...)
	if err != nil {
		return "", "", err
	}
	return "http://" + up.Addr, "http://" + addresses["upstream"], nil
}

// task is what the loads read of a task.
type task struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

func (b *Bench) createTask(ctx context.Context, base, key, model, prompt string) (string, error) {
	body := fmt.Sprintf(`{"model":%q,"prompt":%q,"seconds":"4"}`, model, prompt)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+videosPath, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+key)
	var made task
	err = b.DoJSON(request, &made)
	if err == nil && (made.ID == "" || made.Status != "queued") {
		err = fmt.Errorf("%w: got %+v", stage.ErrBroken, made)
	}
	if err != nil {
		return "", fmt.Errorf("create a task: %w", err)
	}
	return made.ID, nil
}

func (b *Bench) taskStatus(ctx context.Context, base, key, id string) (string, error) {
	var read task
	err := b.GetJSON(ctx, base+videosPath+"/"+id, key, &read)
	if err == nil && read.ID != id {
		err = fmt.Errorf("%w: got %+v", stage.ErrBroken, read)
	}
	if err != nil {
		return "", fmt.Errorf("read task %s: %w", id, err)
	}
	return read.Status, nil
}

// awaitTasks returns when all tasks are completed. One that fails is an error.
func (b *Bench) awaitTasks(ctx context.Context, base string, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, taskDeadline)
	defer cancel()
	left := slices.Clone(ids)
	for len(left) > 0 {
		var failed error
		left = slices.DeleteFunc(left, func(id string) bool {
			status, err := b.taskStatus(ctx, base, stage.ClientKey, id)
			if err == nil && status == "failed" {
				err = fmt.Errorf("%w: task %s failed", stage.ErrBroken, id)
			}
			failed = errors.Join(failed, err)
			return status == "completed"
		})
		if failed != nil {
			return failed
		}
		if err := stage.Pause(ctx, describedAgain); err != nil {
			return fmt.Errorf("%d tasks are not over: %w", len(left), err)
		}
	}
	return nil
}
