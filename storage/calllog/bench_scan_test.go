package calllog_test

import (
	"testing"
	"time"

	"modelrelay/storage/calllog"
	"modelrelay/storage/storagetest"
)

// BenchmarkScan looks through a whole log of 100,000 calls without a hit.
func BenchmarkScan(b *testing.B) {
	client := storagetest.Redis(b)
	log := calllog.New(client, &calllog.Options{FlushEvery: time.Hour})
	for i := range calllog.DefaultRecent {
		r := usual(i)
		log.Add(&r)
		if i%5000 == 0 {
			if err := log.Flush(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := log.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Logf("%d calls in %d bytes of Redis", calllog.DefaultRecent, client.MemoryUsage(b.Context(), "mr:calls", 0).Val())
	for b.Loop() {
		page, err := calllog.NewReader(client, nil).Scan(b.Context(), calllog.Filter{Model: "none"}, calllog.Range{Limit: 50})
		if err != nil || len(page.Calls) > 0 || page.Next == "" && page.Looked < calllog.DefaultRecent {
			b.Fatal(page.Looked, err)
		}
	}
}

// BenchmarkWrite is what a call costs this process in all, from the relay until Redis has it, a block at a time. Its CPU is the
// process's (user and system); the time is Redis' as well.
func BenchmarkWrite(b *testing.B) {
	const block = 250
	log := calllog.New(storagetest.Redis(b), &calllog.Options{FlushEvery: time.Hour})
	b.Cleanup(func() { _ = log.Close(b.Context()) })
	var records [block]calllog.Record
	for i := range records {
		records[i] = usual(i)
	}
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		if log.Add(&records[n%block]); n%block > 0 {
			continue
		}
		if err := log.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
