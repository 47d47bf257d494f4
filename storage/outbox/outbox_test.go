package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/outbox"
	"modelrelay/storage/storagetest"
)

// pushScript appends a batch to a list and answers how long the list is.
const pushScript = `return applied(tostring(redis.call('RPUSH', KEYS[2], ARGV[2])))`

const list = "mr:list"

// record holds what an outbox reports.
type record struct{ applied, lost []string }

func open(t *testing.T, client redis.UniversalClient, script string, most int, cut func() []string) (*outbox.Outbox[string], *record) {
	t.Helper()
	r := new(record)
	o := outbox.New(client, outbox.Options[string]{
		Name: "test", Script: script, Every: time.Hour, Most: most, Cut: cut,
		Encode:  func(b string) ([]string, []any) { return []string{list}, []any{b} },
		Applied: func(_ context.Context, b, answer string) { r.applied = append(r.applied, b+":"+answer) },
		Lost:    func(_ context.Context, b string, _ error) { r.lost = append(r.lost, b) },
	})
	return o, r
}

// hook fails scripts: before they are run, or after.
type hook struct{ before, after func() error }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		err := h.before()
		if err == nil {
			if err = next(ctx, cmd); err == nil {
				err = h.after()
			}
		}
		if err != nil {
			cmd.SetErr(err)
		}
		return err
	}
}

// TestLostAnswers: each batch is applied once, in order, and its answer arrives although the first one was lost.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	lossy := storagetest.Again(t, client)
	lose := true
	lossy.AddHook(hook{before: func() error { return nil }, after: func() error {
		if lose = !lose; lose {
			return nil
		}
		return &net.OpError{Op: "read", Err: io.ErrUnexpectedEOF}
	}})
	n := 0
	o, r := open(t, lossy, pushScript, 0, func() []string {
		if n == 8 {
			return nil
		}
		n++
		return []string{fmt.Sprint("a", n), fmt.Sprint("b", n)}
	})
	lost := 0
	for range 40 {
		if err := o.Flush(t.Context()); errors.Is(err, storage.ErrUnavailable) {
			lost++
		}
	}
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := client.LRange(t.Context(), list, 0, -1).Val()
	if want := []string{"a1", "b1", "a2", "b2"}; len(got) != 16 || !slices.Equal(got[:4], want) || lost < 5 {
		t.Errorf("%d answers lost; the list is %v", lost, got)
	}
	for i, b := range got {
		if r.applied[i] != fmt.Sprint(b, ":", i+1) {
			t.Errorf("answers %v", r.applied)
			break
		}
	}
	if o.Failures() != int64(lost) || len(r.lost) > 0 {
		t.Errorf("%d failures of %d, lost %v", o.Failures(), lost, r.lost)
	}
}

// TestAway: what Options.Cut collects stays there while a batch waits. Of too many batches the oldest are lost, but never the one
// that may have been applied.
func TestAway(t *testing.T) {
	t.Parallel()
	client := storagetest.Again(t, storagetest.Redis(t))
	away := true
	client.AddHook(hook{after: func() error { return nil }, before: func() error {
		if away {
			return &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
		}
		return nil
	}})
	cuts := 0
	o, r := open(t, client, pushScript, 2, func() []string {
		cuts++
		return []string{fmt.Sprint("cut", cuts)}
	})
	for i := range 5 {
		if err := o.Flush(t.Context()); !errors.Is(err, storage.ErrUnavailable) || !o.Away() || cuts != 1 {
			t.Fatalf("flush %d: got %v after %d cuts", i, err, cuts)
		}
	}
	for i := range 5 {
		o.Add(fmt.Sprint("b", i))
	}
	away = false
	if err := o.Close(t.Context()); err != nil || o.Away() || len(o.Rest()) > 0 {
		t.Fatal(err)
	}
	if got, want := client.LRange(t.Context(), list, 0, -1).Val(), []string{"cut1", "b3", "b4", "cut2"}; !slices.Equal(got, want) {
		t.Errorf("the list is %v, want %v", got, want)
	}
	if want := []string{"b0", "b1", "b2"}; !slices.Equal(r.lost, want) {
		t.Errorf("lost %v, want %v", r.lost, want)
	}
}

// TestRefused: a batch that Redis refuses is sent ten times and then lost, and the next one is applied. What was not applied at the
// end is the rest.
func TestRefused(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	o, r := open(t, client, `if ARGV[2] ~= 'good' then return redis.error_reply('ERR no') end `+pushScript, 0, func() []string { return nil })
	o.Add("bad")
	o.Add("good")
	failed := 0
	for range 20 {
		if o.Flush(t.Context()) != nil {
			failed++
		}
	}
	o.Add("worse")
	o.Add("good")
	if err := o.Close(t.Context()); err == nil || failed > 9 {
		t.Errorf("close: got %v after %d failures", err, failed)
	}
	if got := o.Rest(); !slices.Equal(r.lost, []string{"bad"}) || !slices.Equal(got, []string{"worse", "good"}) {
		t.Errorf("lost %v, the rest is %v", r.lost, got)
	}
	if got := client.LRange(t.Context(), list, 0, -1).Val(); !slices.Equal(got, []string{"good"}) {
		t.Errorf("the list is %v", got)
	}
}
