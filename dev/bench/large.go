package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net/http"
	"time"
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
func large(ctx context.Context, s *stage, report *Report) error {
	ctx, cancel := context.WithTimeout(ctx, largeDeadline)
	defer cancel()
	c, err := s.cluster(ctx, setting{})
	if err != nil {
		return err
	}
	// A first, small task: what every task makes a worker take is not the copy's.
	if _, _, err := s.one(ctx, c, "warm"); err != nil {
		return err
	}
	size := int64(s.options.Large) << 20
	rule := fmt.Sprintf(`{"operation":"video.create","contains":%q,"action":"size","bytes":%d}`, largePrompt, size)
	if err := s.control(ctx, "/rules", rule); err != nil {
		return err
	}
	pid := c.worker.process.Pid()
	if err := resetPeak(pid); err != nil {
		return err
	}
	before, _, err := resident(pid)
	if err != nil {
		return err
	}
	spentBefore, err := c.spent()
	if err != nil {
		return err
	}
	id, took, err := s.one(ctx, c, largePrompt)
	if err != nil {
		return err
	}
	_, peak, err := resident(pid)
	if err != nil {
		return err
	}
	spentAfter, err := c.spent()
	if err != nil {
		return err
	}
	if err := s.readBack(ctx, c, id, size); err != nil {
		return err
	}
	_, frontPeak, err := resident(c.front.process.Pid())
	if err != nil {
		return err
	}
	load := fmt.Sprintf("a video of %d MiB", s.options.Large)
	for _, figure := range []struct {
		name, unit string
		value      float64
		want       *Target
	}{
		{"from create to completed", "s", took.Seconds(), nil},
		{"worker, memory of the copy", "MB", megabytes(peak - before), atMost(copyMemory)},
		{"worker, most RSS", "MB", megabytes(peak), nil},
		{"worker, CPU of a GiB", "s", spentAfter.less(spentBefore).worker.Seconds() * 1024 / float64(s.options.Large), nil},
		{"front, most RSS, read back", "MB", megabytes(frontPeak), nil},
	} {
		report.add(load, figure.name, figure.unit, series{gateway: []float64{figure.value}}, figure.want)
	}
	return nil
}

// one makes a task and waits until it is completed.
func (s *stage) one(ctx context.Context, c *cluster, prompt string) (id string, took time.Duration, err error) {
	body := fmt.Sprintf(`{"model":%q,"prompt":%q}`, taskModel, prompt)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+videosPath, bytes.NewReader([]byte(body)))
	if err != nil {
		return "", 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+clientKey)
	var made task
	began := time.Now()
	if err := s.doJSON(request, &made); err != nil {
		return "", 0, fmt.Errorf("create: %w", err)
	}
	for {
		status, err := s.taskStatus(ctx, c.base, clientKey, made.ID)
		switch {
		case err != nil:
			return "", 0, err
		case status == "completed":
			return made.ID, time.Since(began), nil
		case status == "failed":
			return "", 0, fmt.Errorf("%w: the task failed", ErrBroken)
		}
		if err := pause(ctx, describedAgain); err != nil {
			return "", 0, err
		}
	}
}

// control gives the upstream an order.
func (s *stage) control(ctx context.Context, path, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.upstream.addr+"/_control"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	var answer json.RawMessage
	if err := s.doJSON(request, &answer); err != nil {
		return fmt.Errorf("control the upstream: %w", err)
	}
	return nil
}

// readBack compares the archived video with the upstream's: the whole by its digest, the edges of ranges by their bytes.
func (s *stage) readBack(ctx context.Context, c *cluster, id string, size int64) error {
	var answer struct {
		Jobs []upstreamJob `json:"jobs"`
	}
	if err := s.getJSON(ctx, "http://"+s.upstream.addr+"/_control/jobs?contains="+largePrompt, "", &answer); err != nil || len(answer.Jobs) != 1 {
		return fmt.Errorf("%w: the upstream has %d large jobs, %w", ErrBroken, len(answer.Jobs), err)
	}
	ours := c.base + videosPath + "/" + id + "/content"
	theirs := "http://" + s.upstream.addr + "/openai/v1/videos/" + answer.Jobs[0].ID + "/content"
	sum := sha256.New()
	if status, n, err := s.ranged(ctx, ours, clientKey, "", sum); err != nil || status != http.StatusOK || n != size || hex.EncodeToString(sum.Sum(nil)) != answer.Jobs[0].SHA256 {
		return fmt.Errorf("%w: the whole video: %d with %d of %d bytes, %w", ErrBroken, status, n, size, err)
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
		}{{&got, ours, clientKey}, {&want, theirs, upstreamKey}} {
			sum.Reset()
			status, _, err := s.ranged(ctx, side.url, side.key, asked, sum)
			if err != nil {
				return fmt.Errorf("%s: %w", asked, err)
			}
			*side.into = [2]any{status, ""}
			if status == http.StatusPartialContent {
				side.into[1] = hex.EncodeToString(sum.Sum(nil))
			}
		}
		if got != want {
			return fmt.Errorf("%w: %s: got %v, the upstream has %v", ErrBroken, asked, got, want)
		}
	}
	return nil
}

// ranged reads a range, "" for all, into the hash.
func (s *stage) ranged(ctx context.Context, url, key, asked string, into hash.Hash) (status int, n int64, err error) {
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
