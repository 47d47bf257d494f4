package bench

import (
	"context"
	"time"
)

// CheckStream and Delays are what the streams load says about a body and about the times its events came.
func CheckStream(body []byte, chunks int) error { return checkStream(body, chunks) }

// Delays is explained at CheckStream.
func Delays(arrived []time.Time) []time.Duration { return delays(arrived) }

// Chat and Streams send a small load to one address, whose process is pid, and return how many answers were right and
// how many streams were broken.
func Chat(ctx context.Context, addr string, pid int, want []byte, connections, requests int) (int, time.Duration, error) {
	done, err := chatRound(ctx, target{name: "test", addr: addr, pid: pid}, want, connections, requests)
	return len(done.latencies), done.cpu, err
}

// Streams is explained at Chat.
func Streams(ctx context.Context, addr string, pid, n int) (broken int, resident int64, err error) {
	done, err := streamRound(ctx, target{name: "test", addr: addr, pid: pid}, n)
	return done.broken, done.resident, err
}

// CPUTime is the CPU time of a process.
func CPUTime(pid int) (time.Duration, error) { return cpuTime(pid) }

// NewRow adds a row of rounds to an empty report.
func NewRow(floor, gateway []float64, want *Target) Row {
	r := new(Report)
	r.add("load", "figure", "s", series{floor, gateway}, want)
	return r.Rows[0]
}

// Paced sends calls to one address at an even rate for a while and sorts them as if a channel had gone bad at a time.
func Paced(ctx context.Context, addr string, want []byte, rate int, last, bad time.Duration) (before int, row FailoverRow, err error) {
	o := FailoverOptions{Options: Options{Connections: 4}, Rate: rate}
	calls, err := pacedChats(ctx, o, target{name: "test", addr: addr}, want, last)
	row = rowOf(calls, bad)
	return len(calls) - row.Calls, row, err
}

// Most is how many times, each from and to, there are at once at most.
func Most(times [][2]int64) int {
	spans := make([]span, 0, len(times))
	for _, t := range times {
		spans = append(spans, span{t[0], t[1]})
	}
	return most(spans)
}

// Crew does work.
var Crew = crew
