package calls

import "context"

// CheckStream is the check of a stream's body.
func CheckStream(body []byte, chunks int) error { return checkStream(body, chunks) }

// Chat sends calls to an address and returns how many answers were right.
func Chat(ctx context.Context, addr string, pid int, want []byte, connections, requests int) (int, error) {
	done, err := chatRound(ctx, target{name: "test", addr: addr, pid: pid}, want, connections, requests)
	return len(done.latencies), err
}

// Streams opens n streams at an address and returns how many of them were broken.
func Streams(ctx context.Context, addr string, pid, n int) (broken int, resident int64, err error) {
	done, err := streamRound(ctx, target{name: "test", addr: addr, pid: pid}, n)
	return done.broken, done.resident, err
}
