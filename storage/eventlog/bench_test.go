package eventlog_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/storagetest"
)

// BenchmarkLatency appends an event at a time to a log, at the pace of a model, and reports how long it takes to a reader in another
// process: over a real Redis.
func BenchmarkLatency(b *testing.B) {
	server := storagetest.StartProcess(b, `save ""`)
	open := func() *eventlog.Log {
		client, err := storage.OpenRedis("redis://"+server.Address, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = client.Close() })
		return eventlog.New(client, newObjects(), 2*time.Hour, slog.New(slog.DiscardHandler))
	}
	w := write(b, open())
	var mu sync.Mutex
	var sent []time.Time
	var took []time.Duration
	came := make(chan struct{}, 1000)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = open().Read(ctx, id, prefix, -1, func(p eventlog.Piece) error {
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(sent[p.N]))
			came <- struct{}{}
			return nil
		})
	}()
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	n := 0
	for b.Loop() {
		<-pace.C
		mu.Lock()
		sent = append(sent, time.Now())
		mu.Unlock()
		appendEvents(b, w, n, n+1)
		n++
	}
	for range n {
		<-came
	}
	cancel()
	<-ended
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLogs has 200 running calls, each with an event every 20 ms and a reader in the same process: it reports the processor time of an
// event, from Append to the reader, without Redis's own.
func BenchmarkLogs(b *testing.B) {
	const logs = 200
	server := storagetest.StartProcess(b, `save ""`)
	client, err := storage.OpenRedis("redis://"+server.Address, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	log := eventlog.New(client, newObjects(), 2*time.Hour, slog.New(slog.DiscardHandler))
	event := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 200) + "\"}}]}\n\n")
	var writers []*eventlog.Writer
	var readers sync.WaitGroup
	for n := range logs {
		id := fmt.Sprintf("call_%d", n)
		w, err := log.Write(b.Context(), id, "tasks/"+id+"/a/")
		if err != nil {
			b.Fatal(err)
		}
		writers = append(writers, w)
		readers.Go(func() {
			_ = log.Read(b.Context(), id, "tasks/"+id+"/a/", -1, func(eventlog.Piece) error { return nil })
		})
	}
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	before, rounds := storagetest.CPU(b), 0
	for b.Loop() {
		<-pace.C
		for _, w := range writers {
			if err := w.Append(b.Context(), event); err != nil {
				b.Fatal(err)
			}
		}
		rounds++
	}
	for _, w := range writers {
		if _, err := w.Close(b.Context(), true); err != nil {
			b.Fatal(err)
		}
	}
	readers.Wait()
	b.ReportMetric(float64((storagetest.CPU(b)-before).Microseconds())/float64(rounds*logs), "µs-cpu/event")
	b.ReportMetric(0, "ns/op")
}
