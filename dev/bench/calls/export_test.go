package calls

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

// Paced sends calls to one address at an even rate for a while and sorts them as if a channel had gone bad at a time.
func Paced(ctx context.Context, addr string, want []byte, rate int, last, bad time.Duration) (before int, row FailoverRow, err error) {
	o := FailoverOptions{Connections: 4, Rate: rate}
	calls, err := pacedChats(ctx, o, target{name: "test", addr: addr}, want, last)
	row = rowOf(calls, bad)
	return len(calls) - row.Calls, row, err
}
