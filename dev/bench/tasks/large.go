package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

const (
	// largePrompt names the one job of the large load.
	largePrompt = "large"
	// largeDeadline bounds the copy of a large video.
	largeDeadline = 10 * time.Minute
	// copyMemory is what the copy of a video may take, of whatever size, in MB.
	copyMemory = 64
)

// large measures the copy of one large video from upstream to archive, and reads it back whole and at the edges.
func large(ctx context.Context, b *Bench, report *figures.Report) error {
	ctx, cancel := context.WithTimeout(ctx, largeDeadline)
	defer cancel()
	c, err := b.cluster(ctx, setting{})
	if err != nil {
		return err
	}
	// A first, small task: what every task makes a worker take is not the copy's.
	if _, _, err := b.one(ctx, c, "warm"); err != nil {
		return err
	}
	size := int64(b.sizes.Large) << 20
	rule := fmt.Sprintf(`{"operation":"video.create","contains":%q,"action":"size","bytes":%d}`, largePrompt, size)
	if err := b.Order(ctx, b.Upstream, "/rules", rule); err != nil {
		return err
	}
	pid := c.worker.PID()
	if err := kernel.ResetPeak(pid); err != nil {
		return err
	}
	before, _, err := kernel.Resident(pid)
	if err != nil {
		return err
	}
	spentBefore, err := c.spent()
	if err != nil {
		return err
	}
	id, took, err := b.one(ctx, c, largePrompt)
	if err != nil {
		return err
	}
	_, peak, err := kernel.Resident(pid)
	if err != nil {
		return err
	}
	spentAfter, err := c.spent()
	if err != nil {
		return err
	}
	if err := b.readBack(ctx, c, id, size); err != nil {
		return err
	}
	_, frontPeak, err := kernel.Resident(c.front.PID())
	if err != nil {
		return err
	}
	load := fmt.Sprintf("a video of %d MiB", b.sizes.Large)
	for _, figure := range []struct {
		name, unit string
		value      float64
		want       *figures.Target
	}{
		{"from create to completed", "s", took.Seconds(), nil},
		{"worker, memory of the copy", "MB", figures.Megabytes(peak - before), figures.AtMost(copyMemory)},
		{"worker, most RSS", "MB", figures.Megabytes(peak), nil},
		{"worker, CPU of a GiB", "s", spentAfter.less(spentBefore).worker.Seconds() * 1024 / float64(b.sizes.Large), nil},
		{"front, most RSS, read back", "MB", figures.Megabytes(frontPeak), nil},
	} {
		report.AddOne(load, figure.name, figure.unit, figure.value, figure.want)
	}
	return nil
}

// one makes a task and waits until it is completed.
func (b *Bench) one(ctx context.Context, c *cluster, prompt string) (id string, took time.Duration, err error) {
	began := time.Now()
	id, err = b.createTask(ctx, c.base, stage.ClientKey, taskModel, prompt)
	if err != nil {
		return "", 0, err
	}
	for {
		status, err := b.taskStatus(ctx, c.base, stage.ClientKey, id)
		switch {
		case err != nil:
			return "", 0, err
		case status == "completed":
			return id, time.Since(began), nil
		case status == "failed":
			return "", 0, fmt.Errorf("%w: the task failed", stage.ErrBroken)
		}
		if err := stage.Pause(ctx, describedAgain); err != nil {
			return "", 0, err
		}
	}
}

// readBack compares the archived video with the upstream's: the whole by its digest, the edges of ranges by their bytes.
func (b *Bench) readBack(ctx context.Context, c *cluster, id string, size int64) error {
	jobs, err := b.jobs(ctx, "http://"+b.Upstream.Addr, largePrompt)
	if err != nil || len(jobs) != 1 {
		return fmt.Errorf("%w: the upstream has %d large jobs, %w", stage.ErrBroken, len(jobs), err)
	}
	ours := c.base + videosPath + "/" + id + "/content"
	theirs := "http://" + b.Upstream.Addr + "/openai/v1/videos/" + jobs[0].ID + "/content"
	sum := sha256.New()
	if status, n, err := b.ranged(ctx, ours, stage.ClientKey, "", sum); err != nil || status != http.StatusOK || n != size || hex.EncodeToString(sum.Sum(nil)) != jobs[0].SHA256 {
		return fmt.Errorf("%w: the whole video: %d with %d of %d bytes, %w", stage.ErrBroken, status, n, size, err)
	}
	for _, asked := range []string{
		"bytes=0-0", fmt.Sprintf("bytes=%d-%d", size-1, size-1), fmt.Sprintf("bytes=%d-", size-1), "bytes=-1", "bytes=-1000",
		fmt.Sprintf("bytes=%d-%d", size/2-1, size/2), fmt.Sprintf("bytes=%d-%d", size-10, size+10), fmt.Sprintf("bytes=%d-", size), fmt.Sprintf("bytes=%d-%d", size+5, size+6),
	} {
		var got, want [2]any
		for _, side := range []struct {
			into *[2]any
			url  string
			key  string
		}{{&got, ours, stage.ClientKey}, {&want, theirs, stage.UpstreamKey}} {
			sum.Reset()
			status, _, err := b.ranged(ctx, side.url, side.key, asked, sum)
			if err != nil {
				return fmt.Errorf("%s: %w", asked, err)
			}
			*side.into = [2]any{status, ""}
			if status == http.StatusPartialContent {
				side.into[1] = hex.EncodeToString(sum.Sum(nil))
			}
		}
		if got != want {
			return fmt.Errorf("%w: %s: got %v, the upstream has %v", stage.ErrBroken, asked, got, want)
		}
	}
	return nil
}

// ranged reads a range, "" for all, into the hash.
func (b *Bench) ranged(ctx context.Context, url, key, asked string, into hash.Hash) (status int, n int64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if asked != "" {
		request.Header.Set("Range", asked)
	}
	// Not the stage's client: a whole video takes longer than its patience. ctx bounds it.
	response, err := new(http.Client).Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	n, err = io.Copy(into, response.Body)
	return response.StatusCode, n, err
}
