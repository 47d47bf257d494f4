package activities_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/fair"
)

// TestCopyLimit: one channel may hold three quarters of the slots, and slow copies together a quarter. A free slot goes to the
// waiting channel with the fewest slots.
func TestCopyLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := activities.NewCopyLimit(8)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		var in []string
		take := func(channel string, slow bool, dies time.Duration) {
			all.Go(func() {
				var at time.Time
				if dies > 0 {
					at = time.Now().Add(dies)
				}
				if p.Take(ctx, channel, slow, at) == nil {
					in = append(in, fmt.Sprintf("%s %t %s", channel, slow, dies))
				}
			})
			synctest.Wait()
		}
		entered := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(in, want) {
				t.Errorf("got in: %q, want %q", in, want)
			}
			in = nil
		}
		for range 8 {
			take("a", false, 0)
		}
		entered(slices.Repeat([]string{"a false 0s"}, 6)...)
		if p.Wanted("a", false) != true || p.Wanted("b", false) {
			t.Error("a channel at its share does not wait for its own slots")
		}
		take("b", false, 0)
		take("b", true, 0)
		entered("b false 0s", "b true 0s")
		take("c", false, 0)
		take("c", true, 0)
		take("b", true, 0)
		entered()
		if !p.Wanted("a", false) || p.Wanted("b", true) {
			t.Error("Wanted does not report a waiting copy, or reports one for a slow slot")
		}
		p.Give("a", false)
		entered("c false 0s")
		p.Give("a", false)
		entered("c true 0s")
		p.Give("b", true) // frees one of the two slow slots: b's second slow copy now waits only for a free slot
		entered("a false 0s")
		p.Give("a", false)
		entered("b true 0s")
		// In a channel's line the result that expires first goes first, and a result without an expiry goes last.
		take("d", false, 2*time.Hour)
		take("d", false, time.Hour)
		take("d", false, 0)
		take("d", false, 90*time.Minute)
		for range 4 {
			p.Give("a", false)
			synctest.Wait()
		}
		entered("d false 1h0m0s", "d false 1h30m0s", "a false 0s", "d false 2h0m0s")
	})
}

// TestCopyLimitExpiry: a result that expires soon goes first, however many slots its channel holds. Results that expire later
// go by the slots of their channels and by their waiting time.
func TestCopyLimitExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := activities.NewCopyLimit(4)
		var all sync.WaitGroup
		defer all.Wait()
		var in []string
		take := func(channel string, dies time.Duration) {
			all.Go(func() {
				var at time.Time
				if dies > 0 {
					at = time.Now().Add(dies)
				}
				if err := p.Take(t.Context(), channel, false, at); err != nil {
					t.Error(err)
				}
				in = append(in, fmt.Sprintf("%s %s", channel, dies))
			})
			synctest.Wait()
		}
		take("fal", time.Minute)
		take("fal", time.Minute)
		take("other", 0)
		take("other", 0)
		in = nil
		take("third", 0)
		take("other", 24*time.Hour)
		take("luma", time.Hour)
		take("replicate", 30*time.Minute)
		take("fal", 6*time.Minute)
		for _, give := range []string{"other", "other", "fal", "fal", "luma"} {
			p.Give(give, false)
			synctest.Wait()
		}
		// Among results that expire soon, a channel without a slot goes first; among such channels, the result that expires first.
		if want := []string{"replicate 30m0s", "luma 1h0m0s", "fal 6m0s", "third 0s", "other 24h0m0s"}; !slices.Equal(in, want) {
			t.Errorf("got in: %q, want %q", in, want)
		}
	})
}

// TestCopyLimitFullLine: in a full line, a result that expires earlier replaces the last one, which is refused.
func TestCopyLimitFullLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := activities.NewCopyLimit(2)
		if err := p.Take(t.Context(), "a", false, time.Time{}); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var crowded, had []time.Duration
		enter := func(dies time.Duration) {
			all.Go(func() {
				switch err := p.Take(t.Context(), "a", false, time.Now().Add(dies)); {
				case err == nil:
					had = append(had, dies)
					p.Give("a", false)
				case errors.Is(err, fair.ErrFull):
					crowded = append(crowded, dies)
				default:
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for n := range activities.CopyLineMost {
			enter(time.Duration(n+1) * time.Hour)
		}
		enter(6 * time.Minute)
		enter(1000 * time.Hour)
		p.Give("a", false)
		all.Wait()
		if want := []time.Duration{activities.CopyLineMost * time.Hour, 1000 * time.Hour}; !slices.Equal(crowded, want) ||
			had[0] != 6*time.Minute {
			t.Errorf("refused: %v, want %v; first was %v", crowded, want, had[0])
		}
	})
}

// TestCopyLimitLine: the line is bounded for each channel, and a copy that is canceled leaves it.
func TestCopyLimitLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := activities.NewCopyLimit(2)
		if err := p.Take(t.Context(), "a", false, time.Time{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range activities.CopyLineMost {
			all.Go(func() {
				if err := p.Take(ctx, "a", false, time.Time{}); !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		if err := p.Take(t.Context(), "a", false, time.Time{}); !errors.Is(err, fair.ErrFull) {
			t.Errorf("one more: %v", err)
		}
		if err := p.Take(t.Context(), "b", false, time.Time{}); err != nil {
			t.Errorf("another channel: %v", err)
		}
		cancel()
		all.Wait()
		p.Give("a", false)
		if err := p.Take(t.Context(), "a", false, time.Time{}); err != nil {
			t.Errorf("after all left: %v", err)
		}
	})
}

// copier copies results as a worker does, and retries as Temporal does.
type copier struct {
	limit *activities.CopyLimit
	mu    sync.Mutex
}

// drip returns one KiB after each wait.
type drip struct {
	ctx  context.Context //nolint:containedctx // a body's end is its request's
	r    io.Reader
	each time.Duration
}

func (d drip) Read(p []byte) (int, error) {
	wait := time.NewTimer(d.each)
	defer wait.Stop()
	select {
	case <-wait.C:
		return d.r.Read(p[:min(len(p), 1<<10)])
	case <-d.ctx.Done():
		return 0, context.Cause(d.ctx)
	}
}

// copy copies one result of the channel and returns the number of tries. The result has kib KiB, and each KiB takes each.
func (c *copier) copy(ctx context.Context, t *testing.T, channel string, kib int, each time.Duration) (tries int, err error) {
	t.Helper()
	state := activities.Copied{}
	for tries = 1; ; tries++ {
		c.mu.Lock() // the SDK's test suite shares its registry
		r := newTestEnv(t, fakeAdapter{open: func(ctx context.Context, _ providers.Target, _ providers.Ticket, _ int) (providers.Video, error) {
			data := bytes.NewReader(make([]byte, kib<<10))
			return providers.Video{Body: &body{Reader: drip{ctx, data, each}}, Length: int64(kib) << 10}, nil
		}})
		c.mu.Unlock()
		cancel := r.cancelable(t)
		stop := context.AfterFunc(ctx, cancel)
		r.acts.Copier.Copies, r.acts.Copier.Objects = c.limit, newShelf().fakes()
		r.env.SetHeartbeatDetails(state)
		shown := beats[activities.Copied](t, r)
		in := archiveInput(1)
		in.Job.Assignment.Channel = channel
		_, err = do[[]activities.Output](t, r, r.acts.Copier.Archive, in)
		stop()
		if err == nil || ctx.Err() != nil {
			return tries, err
		}
		_, _, delay := fault(t, err)
		<-time.NewTimer(time.Millisecond).C // another goroutine records the heartbeats
		if all := shown(); len(all) > 0 {
			state = all[len(all)-1]
		}
		select {
		case <-time.NewTimer(delay).C:
		case <-ctx.Done():
			return tries, ctx.Err()
		}
	}
}

// TestTricklingResults: thirty slow results of one channel do not stop the copies of another channel. The test logs how long
// the copies of the other channel take, with and without the slow ones.
func TestTricklingResults(t *testing.T) {
	t.Parallel()
	const (
		results, size, each = 40, 200, 10 * time.Millisecond // of two seconds each, at 6 MB a minute
		trickling           = 30
	)
	took := make(map[int]time.Duration)
	for _, slowResults := range []int{0, trickling} {
		synctest.Test(t, func(t *testing.T) {
			c := &copier{limit: activities.NewCopyLimit(8)}
			ctx, cancel := context.WithCancel(t.Context())
			var slow, fast sync.WaitGroup
			for range slowResults {
				slow.Go(func() {
					if _, err := c.copy(ctx, t, "trickles", 100<<10, time.Second); err == nil {
						t.Error("a trickling result was copied")
					}
				})
			}
			<-time.NewTimer(30 * time.Second).C // the slow copies have all slots that they may take
			began := time.Now()
			for range results {
				fast.Go(func() {
					if tries, err := c.copy(t.Context(), t, "flows", size, each); err != nil || tries != 1 {
						t.Errorf("%d tries, %v", tries, err)
					}
				})
			}
			fast.Wait()
			took[slowResults] = time.Since(began)
			cancel()
			slow.Wait()
		})
	}
	alone, crowded := took[0], took[trickling]
	t.Logf("%d copies of 2 s: %s alone, %s with %d slow ones, %.2f times", results, alone, crowded, trickling, float64(crowded)/float64(alone))
	if crowded > 2*alone {
		t.Error("more than twice as long as alone")
	}
}

// TestSlowResultEnds: a slow copy gives up its slot once while others wait. Its second try completes, however many more come.
func TestSlowResultEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &copier{limit: activities.NewCopyLimit(2)}
		ctx, cancel := context.WithCancel(t.Context())
		var others sync.WaitGroup
		var slowly sync.WaitGroup
		slowly.Go(func() {
			// 10 KiB a second: below the minimum pace.
			tries, err := c.copy(t.Context(), t, "main", 600, 100*time.Millisecond)
			if err != nil || tries != 2 {
				t.Errorf("%d tries, %v, want one that gave up its slot and one that completed", tries, err)
			}
		})
		<-time.NewTimer(time.Second).C
		for range 4 {
			others.Go(func() {
				for ctx.Err() == nil {
					if _, err := c.copy(ctx, t, "main", 200, 10*time.Millisecond); err != nil && ctx.Err() == nil {
						t.Errorf("another copy: %v", err)
					}
				}
			})
		}
		slowly.Wait()
		cancel()
		others.Wait()
	})
}

// TestSlowResultAlone: a slow copy keeps its slot while no other copy waits.
func TestSlowResultAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &copier{limit: activities.NewCopyLimit(2)}
		if tries, err := c.copy(t.Context(), t, "main", 300, time.Second); err != nil || tries != 1 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}
