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

// TestNamedReadsItsTimeAlone: what a search by an id with its time reads does not depend on how long the log is.
func TestNamedReadsItsTimeAlone(t *testing.T) {
	t.Parallel()
	reads := map[int][]int64{}
	for _, blocks := range []int{100, 1600} {
		client := storagetest.Redis(t)
		end := time.Now().Add(-time.Hour).Truncate(time.Second)
		came := func(block int) time.Time { return end.Add(time.Duration(block-blocks) * 10 * time.Second) }
		for i := range blocks {
			lines, _ := calllog.Lines([]calllog.Record{
				{At: came(i).Add(-time.Second), Names: calllog.Names{
					ID: fmt.Sprintf("req_%d", i), Client: "shared",
					Trace: fmt.Sprintf("trace_%d", i),
				}},
			})
			err := client.XAdd(t.Context(), &redis.XAddArgs{
				Stream: "mr:calls", ID: fmt.Sprintf("%d-0", came(i).UnixMilli()), Values: []any{"n", 1, "t", i + 1, "z", calllog.Pack(lines)},
			}).Err()
			if err != nil {
				t.Fatal(err)
			}
		}
		counter := new(blocksRead)
		client.AddHook(counter)
		reader := calllog.NewReader(client, nil)
		named := func(id string, at time.Time) []string {
			found, err := reader.Named(t.Context(), calllog.Filter{ID: id}, at, 3, "")
			if err != nil {
				t.Fatal(err)
			}
			ids := make([]string, len(found))
			for i := range found {
				ids[i] = found[i].ID
			}
			reads[blocks] = append(reads[blocks], counter.n.Swap(0))
			return ids
		}
		for _, at := range []int{40, 3} { // with all of its time in the log, and at the log's beginning
			if got, want := named(fmt.Sprintf("req_%d", at), came(at)), fmt.Sprintf("req_%d", at); !slices.Equal(got, []string{want}) {
				t.Errorf("%d blocks: found %v, want %s", blocks, got, want)
			}
		}
		if got := named("trace_40", came(40)); !slices.Equal(got, []string{"req_40"}) {
			t.Errorf("%d blocks: by another id found %v", blocks, got)
		}
		if got := named("shared", came(40)); len(got) != 3 {
			t.Errorf("%d blocks: by a client's value found %v, want three", blocks, got)
		}
		for _, at := range []time.Time{came(blocks - 1).Add(-24 * time.Hour), came(blocks - 1)} {
			if got := named("req_unknown", at); len(got) != 0 {
				t.Errorf("%d blocks: an unknown id found %v", blocks, got)
			}
		}
	}
	if !slices.Equal(reads[100], reads[1600]) || slices.Max(reads[1600]) > 60 {
		t.Errorf("blocks read of 100: %v, of 1600: %v, want the same", reads[100], reads[1600])
	}
}

// TestNamedFindsLongCalls: a call that was written long after it came is found, in Redis and in the history.
func TestNamedFindsLongCalls(t *testing.T) {
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
			found, err := reader.Named(t.Context(), calllog.Filter{ID: want.ID}, want.At, 3, "")
			if err != nil || len(found) != 1 || found[0].ID != want.ID {
				t.Errorf("%s in %s: found %+v, %v", want.ID, where, found, err)
			}
		}
		if err := client.Del(t.Context(), "mr:calls", "mr:calls-late").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := reader.Named(t.Context(), calllog.Filter{ID: "req_long", Token: "tok_other"}, long.At, 3, ""); err != nil ||
		len(found) != 0 {
		t.Errorf("another token's call: %+v, %v", found, err)
	}
}
