package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
)

// reads counts the hashes that are read whole.
type reads struct{ hashes atomic.Int64 }

func (*reads) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*reads) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *reads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "hgetall" {
				r.hashes.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

const usedDays = 3

// plainRedis returns a Redis whose keys do not expire. The other embedded Redis checks all keys for expiry at each command.
func plainRedis(t *testing.T) redis.UniversalClient {
	t.Helper()
	return storagetest.Client(t, "redis://"+miniredis.RunT(t).Addr())
}

// used writes a ledger of many tokens, each with two models on each day.
func used(t *testing.T, client redis.UniversalClient, tokens int) {
	t.Helper()
	usage := ledger.NewUsage(client, nil)
	for i := range tokens {
		for day := range usedDays {
			for model := range 2 {
				usage.Record(ledger.Entry{
					Token: fmt.Sprintf("tok_%05d", i), Model: fmt.Sprintf("model %d", model), Channel: fmt.Sprintf("channel %d", i%3),
					At: january.AddDate(0, 0, day), Requests: 1, Cost: 5,
				})
			}
		}
	}
	if err := usage.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSumsInPages: pages of every size have the rows of Sum, each once and in order.
func TestSumsInPages(t *testing.T) {
	t.Parallel()
	client := plainRedis(t)
	used(t, client, 120)
	reader := ledger.NewReader(client)
	from, to := january.AddDate(0, 0, -1), january.AddDate(0, 0, usedDays)
	all, err := reader.Read(t.Context(), from, to, "")
	if err != nil || len(all) != 120*usedDays*2 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	for _, by := range [][]string{
		nil,
		{ledger.ByDay},
		{ledger.ByToken},
		{ledger.ByModel},
		{ledger.ByChannel},
		{ledger.ByDay, ledger.ByModel},
		{ledger.ByModel, ledger.ByChannel},
		{ledger.ByToken, ledger.ByModel},
		{ledger.ByDay, ledger.ByToken},
		{ledger.ByDay, ledger.ByToken, ledger.ByModel},
		ledger.Groups(),
	} {
		for _, model := range []string{"", "model 1"} {
			rows := slices.DeleteFunc(slices.Clone(all), func(row ledger.Row) bool { return model != "" && row.Model != model })
			want := storagetest.Sum(rows, by)
			for _, limit := range []int{0, 13, 100} {
				var got []ledger.Row
				q := ledger.Query{From: from, To: to, Model: model, By: by, Limit: limit}
				for {
					page, next, err := reader.Sums(t.Context(), q)
					if err != nil || limit > 0 && len(page) > limit {
						t.Fatalf("by %v, limit %d: %d rows, %v", by, limit, len(page), err)
					}
					got = append(got, page...)
					if q.After = next; next == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("by %v of %q, limit %d: %d rows, want %d: %+v", by, model, limit, len(got), len(want), got[:min(3, len(got))])
				}
			}
		}
	}
	if _, _, err := reader.Sums(t.Context(), ledger.Query{From: from, To: to, After: "tok_1"}); !errors.Is(err, ledger.ErrCursor) {
		t.Errorf("a cursor of another list: %v", err)
	}
}

// TestSumsReadTheirPage: what a page reads does not depend on how many tokens there are.
func TestSumsReadTheirPage(t *testing.T) {
	t.Parallel()
	hashes := map[int][]int64{}
	for _, tokens := range []int{60, 240} {
		client := plainRedis(t)
		used(t, client, tokens)
		counter := new(reads)
		client.AddHook(counter)
		reader := ledger.NewReader(client)
		for _, by := range [][]string{
			{ledger.ByToken},
			{ledger.ByDay, ledger.ByToken, ledger.ByModel},
			{ledger.ByDay},
			{ledger.ByModel},
			{ledger.ByChannel},
			nil,
		} {
			_, _, err := reader.Sums(t.Context(), ledger.Query{From: january, To: january.AddDate(0, 0, usedDays), By: by, Limit: 50})
			if err != nil {
				t.Fatal(err)
			}
			hashes[tokens] = append(hashes[tokens], counter.hashes.Swap(0))
		}
	}
	if !slices.Equal(hashes[60], hashes[240]) {
		t.Errorf("of 60 tokens: %v hashes, of 240: %v, want the same", hashes[60], hashes[240])
	}
}

// TestSumsWait: reads of all tokens wait for one another, and a read beyond the line is refused.
func TestSumsWait(t *testing.T) {
	t.Parallel()
	client := plainRedis(t)
	reader := ledger.NewReader(client)
	release := ledger.Occupy(reader)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := reader.Sums(gone, ledger.Query{From: january, To: january}); !errors.Is(err, context.Canceled) {
		t.Errorf("while others read: %v", err)
	}
	if _, _, err := reader.Sums(t.Context(), ledger.Query{From: january, To: january, Token: "a"}); err != nil {
		t.Errorf("of one token: %v", err)
	}
	release()
	if _, _, err := reader.Sums(t.Context(), ledger.Query{From: january, To: january}); err != nil || errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("after them: %v", err)
	}
}
