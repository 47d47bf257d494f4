package calllog_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

// blocksRead counts the blocks that Redis hands out.
type blocksRead struct {
	passing

	n atomic.Int64
}

func (b *blocksRead) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if blocks, ok := cmd.(*redis.XMessageSliceCmd); ok {
			b.n.Add(int64(len(blocks.Val())))
		}
		return err
	}
}

// around returns the ids of the calls that arrived within a minute of a time and match the filter, from a place on.
func around(t *testing.T, r *calllog.Reader, f calllog.Filter, arrived time.Time, from string) (ids []string) {
	t.Helper()
	f.Since, f.Until = arrived.Add(-time.Minute), arrived.Add(time.Minute)
	for within := (calllog.Range{After: from}); ; {
		page := scan(t, r, f, within)
		for _, call := range page.Calls {
			ids = append(ids, call.ID)
		}
		if within.After = page.Next; page.Next == "" {
			return ids
		}
	}
}

// TestScanAroundATime: the number of blocks that a scan around a time reads does not depend on the length of the log.
func TestScanAroundATime(t *testing.T) {
	t.Parallel()
	reads := map[int][]int64{}
	for _, blocks := range []int{100, 1600} {
		client := storagetest.Redis(t)
		end := time.Now().Add(-time.Hour).Truncate(time.Second)
		arrived := func(block int) time.Time { return end.Add(time.Duration(block-blocks) * 10 * time.Second) }
		for i := range blocks {
			lines, _ := calllog.Lines([]calllog.Record{
				{At: arrived(i).Add(-time.Second), Names: calllog.Names{ID: fmt.Sprintf("req_%d", i), Client: "shared"}},
			})
			err := client.XAdd(t.Context(), &redis.XAddArgs{
				Stream: "mr:calls", ID: fmt.Sprintf("%d-0", arrived(i).UnixMilli()), Values: []any{"n", 1, "t", i + 1, "z", calllog.Pack(lines)},
			}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
		counter := new(blocksRead)
		client.AddHook(counter)
		reader := calllog.NewReader(client, nil)
		for _, at := range []int{40, 3} { // with all of its time in the log, and at the log's beginning
			want := fmt.Sprintf("req_%d", at)
			got := around(t, reader, calllog.Filter{Request: want}, arrived(at), calllog.PlaceAt(arrived(at).Add(time.Minute)))
			if !slices.Equal(got, []string{want}) {
				t.Errorf("%d blocks: found %v, want %s", blocks, got, want)
			}
			reads[blocks] = append(reads[blocks], counter.n.Swap(0))
		}
		if got := around(t, reader, calllog.Filter{ID: "shared"}, arrived(40), ""); len(got) < 10 {
			t.Errorf("%d blocks: by a client's value found %v", blocks, got)
		}
	}
	if !slices.Equal(reads[100], reads[1600]) || slices.Max(reads[1600]) > 60 {
		t.Errorf("blocks read of 100: %v, of 1600: %v, want the same", reads[100], reads[1600])
	}
}

// TestLongCallsAreFound: a call that was written long after its arrival is found around its arrival, in Redis and in the history.
func TestLongCallsAreFound(t *testing.T) {
	t.Parallel()
	client, files := storagetest.Redis(t), new(memoryFiles)
	history := calllog.NewHistory(files, nil)
	now := time.Now()
	long := calllog.Record{At: now.Add(-3 * time.Hour), Names: calllog.Names{ID: "req_long"}, Times: calllog.Times{Took: 3 * time.Hour}}
	short := calllog.Record{At: now, Names: calllog.Names{ID: "req_short"}}
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour, History: history.Take})
	log.Add(&short)
	log.Add(&long)
	for _, end := range []func(context.Context) error{log.Close, history.Close} {
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	reader := calllog.NewReader(client, files)
	for _, where := range []string{"redis", "history"} {
		for _, want := range []calllog.Record{long, short} {
			if found := around(t, reader, calllog.Filter{Request: want.ID}, want.At, ""); !slices.Equal(found, []string{want.ID}) {
				t.Errorf("%s in %s: found %v", want.ID, where, found)
			}
		}
		if err := client.Del(t.Context(), "mr:calls").Err(); err != nil {
			t.Fatal(err)
		}
	}
}
