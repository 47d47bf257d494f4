package calls

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

// bodySize is the size of a request that contains an image.
const bodySize = 20 << 20

// bodies measures large requests, one at a time: an image as a data URL between two pieces of text.
func bodies(ctx context.Context, b *Bench, report *figures.Report) error {
	floor, gateway, err := b.pair(ctx)
	if err != nil {
		return err
	}
	body := imageBody(bodySize)
	var first, more, cpu figures.Series
	base := map[string]int64{}
	turn := func(to target, n int) (grown float64, seconds float64, err error) {
		now, _, err := kernel.Resident(to.pid)
		if err != nil {
			return 0, 0, err
		}
		if base[to.name] == 0 {
			base[to.name] = now
		}
		before, err := kernel.CPUTime(to.pid)
		if err := errors.Join(err, kernel.ResetPeak(to.pid)); err != nil {
			return 0, 0, err
		}
		if err := sendBodies(ctx, to, body, n); err != nil {
			return 0, 0, err
		}
		after, err := kernel.CPUTime(to.pid)
		if err != nil {
			return 0, 0, err
		}
		_, peak, err := kernel.Resident(to.pid)
		return float64(peak-base[to.name]) / float64(len(body)), (after - before).Seconds() / float64(n), err
	}
	err = takeTurns(1, floor, gateway, func(to target) error {
		grown, _, err := turn(to, 1)
		first.Add(to.name, grown)
		return err
	})
	if err != nil {
		return err
	}
	err = takeTurns(b.Options.Rounds, floor, gateway, func(to target) error {
		grown, seconds, err := turn(to, b.sizes.Bodies)
		more.Add(to.name, grown)
		cpu.Add(to.name, seconds*1000)
		return err
	})
	if err != nil {
		return err
	}
	load := fmt.Sprintf("body of %d MB", bodySize>>20)
	report.Add(load, "CPU", "ms", cpu, figures.RatioAtMost(2))
	// The peak includes what net/http allocates for its first request.
	report.Add(load, "peak memory of the first", "copies", first, figures.AtMost(1.2))
	report.Add(load, "peak memory of many", "copies", more, nil)
	return nil
}

func sendBodies(ctx context.Context, to target, body []byte, n int) error {
	c, err := dial(ctx, to.addr)
	if err != nil {
		return fmt.Errorf("%s: %w", to.name, err)
	}
	defer c.close()
	request := post(to, body)
	var buf bytes.Buffer
	for range n {
		err := c.call(request, &buf)
		if err == nil && !bytes.Contains(buf.Bytes(), []byte(`"You said: What is in it?[image_url]Say it."`)) {
			err = fmt.Errorf("got %.300s", buf.Bytes())
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %w", to.name, stage.ErrBroken, errors.Join(err, ctx.Err()))
		}
	}
	return nil
}

// imageBody makes a request of about size bytes.
func imageBody(size int) []byte {
	image := make([]byte, size/4*3)
	for i := range image {
		image[i] = byte(i * i >> 8)
	}
	var b bytes.Buffer
	b.Grow(size + 512)
	b.WriteString(`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"What is in it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`)
	b.WriteString(base64.StdEncoding.EncodeToString(image))
	b.WriteString(`"}},{"type":"text","text":"Say it."}]}]}`)
	return b.Bytes()
}
