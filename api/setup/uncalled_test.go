package setup_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api/setup"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
)

// pipelines counts the round trips of a reader of the ledger, which are pipelines.
type pipelines struct{ n atomic.Int64 }

func (*pipelines) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*pipelines) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (p *pipelines) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.n.Add(1)
		return next(ctx, cmds)
	}
}

// TestUncalledChannels: the check reads the days of the ledger from the newest on, only until it has found a call of each channel, and no
// day twice within a minute.
func TestUncalledChannels(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	usage := ledger.NewUsage(client, nil)
	now := time.Now()
	usage.Record(ledger.Entry{Token: "tok_1", Model: "m", Channel: "busy", At: now, Requests: 1})
	usage.Record(ledger.Entry{Token: "tok_1", Model: "m", Channel: "spare", At: now.AddDate(0, 0, -5), Requests: 1})
	if err := usage.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	count := new(pipelines)
	client.AddHook(count)
	checks := &setup.Setup{Usage: ledger.NewReader(client)}
	for _, step := range []struct {
		idle, want []string
		days       int64
	}{
		{nil, nil, 0},
		{[]string{"busy"}, nil, 1},
		{[]string{"busy", "spare"}, nil, 6},
		{[]string{"spare"}, nil, 6},
		{[]string{"busy", "new"}, []string{"new"}, 30},
		{[]string{"new"}, []string{"new"}, 30},
	} {
		got, err := checks.Uncalled(t.Context(), step.idle...)
		if err != nil || !slices.Equal(got, step.want) || count.n.Load() != step.days {
			t.Errorf("of %v: got %v after %d days, want %v after %d; error %v", step.idle, got, count.n.Load(), step.want, step.days, err)
		}
	}
}
