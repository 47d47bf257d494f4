package traffic_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/traffic"
)

func sum(rows []traffic.Row) (all traffic.Sums) {
	for _, row := range rows {
		all.Add(row.Sums)
	}
	return all
}

func TestTraffic(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	counter := traffic.New(client, &traffic.Options{FlushEvery: time.Hour, Known: func(model string) bool { return model != "made up" }})
	now := time.Now().Truncate(time.Minute).Add(10 * time.Second)
	add := func(ago time.Duration, model, channel string, first time.Duration) {
		counter.Add(traffic.Entry{
			At: now.Add(-ago), Model: model, Channel: channel, Failed: channel == "", Tokens: 10, Cost: 1 << 60,
			First: first,
		})
	}
	add(0, "gpt 4o:é", "main b", 50*time.Millisecond)
	add(0, "gpt 4o:é", "main b", 2*time.Second)
	add(0, "made up", "main b", time.Hour)
	add(0, "", "", 0)
	add(3*time.Minute, "gpt 4o:é", "main b", 0)
	add(20*time.Minute, "gpt 4o:é", "main b", 0)
	if err := counter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader := traffic.NewReader(client)
	for range 2 { // the second time from memory, as far as it has ended
		rows, err := reader.Read(t.Context(), now.Add(-5*time.Minute), now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 4 || rows[0].Requests != 1 || rows[1] != (traffic.Row{
			Minute: now.Truncate(time.Minute).UTC(), Sums: traffic.Sums{Requests: 1, Failed: 1, Tokens: 10, Cost: rows[1].Cost},
		}) {
			t.Fatalf("rows %+v", rows)
		}
		gpt, other := rows[2], rows[3]
		if gpt.Model != "gpt 4o:é" || gpt.Channel != "main b" || gpt.Requests != 2 || gpt.Tokens != 20 || gpt.First != [8]int64{1, 0, 0, 0, 1} {
			t.Errorf("gpt %+v", gpt)
		}
		if other.Model != traffic.OtherModel || other.First != [8]int64{7: 1} {
			t.Errorf("other %+v", other)
		}
		rows, err = reader.Read(t.Context(), now.Add(-100*time.Hour), now.Add(100*time.Hour))
		if err != nil || len(rows) != 5 || sum(rows).Requests != 6 {
			t.Errorf("all: %+v, %v", rows, err)
		}
	}
	// The first moment of a minute counts it already.
	minute := now.Truncate(time.Minute)
	for to, want := range map[time.Time]int64{minute: 0, minute.Add(1): 4, minute.Add(time.Second): 4} {
		if rows, err := reader.Read(t.Context(), minute.Add(-time.Minute), to); err != nil || sum(rows).Requests != want {
			t.Errorf("until %s: %+v, %v", to.Format(time.RFC3339Nano), rows, err)
		}
	}
	ttl := client.TTL(t.Context(), fmt.Sprintf("mr:traffic:%d", now.Unix()/60)).Val()
	if ttl <= 25*time.Hour || ttl > traffic.Kept {
		t.Errorf("stored for %v", ttl)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first [8]int64
		share float64
		want  time.Duration
	}{
		{[8]int64{}, 0.95, 0},
		{[8]int64{100}, 0.5, 50 * time.Millisecond},
		{[8]int64{0, 0, 0, 10}, 1, time.Second},
		{[8]int64{90, 0, 0, 10}, 0.95, 750 * time.Millisecond},
		{[8]int64{7: 3}, 0.95, 15 * time.Second},
	} {
		if got := (&traffic.Sums{First: tc.first}).Quantile(tc.share); got != tc.want {
			t.Errorf("%v of %v: got %v, want %v", tc.share, tc.first, got, tc.want)
		}
	}
}

// TestNamesAreBounded: an unknown client's names, and a process's many, take no more room than there is.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	now := time.Now()
	for process := range 4 { // or flushes
		counter := traffic.New(client, &traffic.Options{FlushEvery: time.Hour, Known: func(string) bool { return true }})
		for i := range 1000 {
			for range 2 {
				counter.Add(traffic.Entry{
					At: now, Model: fmt.Sprint("m", process, "-", i), Channel: "main", Failed: true, Tokens: 1, Cost: 1,
					First: time.Second,
				})
			}
		}
		if err := counter.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := traffic.NewReader(client).Read(t.Context(), now.Add(-2*time.Minute), now.Add(time.Minute))
	if err != nil || sum(rows).Requests != 8000 {
		t.Errorf("%d requests, %v", sum(rows).Requests, err)
	}
	if len(rows) > 300 {
		t.Errorf("%d rows", len(rows))
	}
	if n := client.HLen(t.Context(), fmt.Sprintf("mr:traffic:%d", now.Unix()/60)).Val(); n > 1220 {
		t.Errorf("%d fields", n)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	client := server.Client(t)
	counter := traffic.New(client, &traffic.Options{FlushEvery: time.Hour, Known: func(string) bool { return true }})
	now := time.Now()
	server.Leave()
	for range 5 {
		counter.Add(traffic.Entry{At: now, Model: "m"})
		if err := counter.Flush(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("flush: %v", err)
		}
	}
	server.Return()
	if err := counter.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := traffic.NewReader(client).Read(t.Context(), now.Add(-time.Minute), now.Add(time.Minute))
	if err != nil || sum(rows).Requests != 5 {
		t.Errorf("%+v, %v", rows, err)
	}
}
