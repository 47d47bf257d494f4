package taskindex

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// sampleFor is how long a sample of Redis's clock is used without another.
const sampleFor = time.Minute

// redisClock converts times of this process to times of Redis's clock, which several processes share. The result does not depend on how
// long the request that carries it is on its way. The zero value is ready. It is safe for concurrent use.
type redisClock struct {
	mu     sync.Mutex
	sample sample
}

// sample is one reading of Redis's clock.
type sample struct {
	ms       int64         // that Redis returned
	received time.Time     // here
	trip     time.Duration // from the question to the answer, which bounds the error
}

// of is a time in ms of Redis's clock, or up to one round trip earlier. It asks Redis only where there is no sample of the last minute.
func (c *redisClock) of(ctx context.Context, client redis.UniversalClient, at time.Time) (int64, error) {
	c.mu.Lock()
	s := c.sample
	c.mu.Unlock()
	if time.Since(s.received) > sampleFor {
		sent := time.Now()
		now, err := client.Time(ctx).Result()
		if err != nil {
			return 0, err
		}
		s = c.take(now.UnixMilli(), sent, time.Now())
	}
	return s.ms - s.received.Sub(at).Milliseconds(), nil
}

// take uses a reading, unless a better one is not yet old, and returns what is used.
func (c *redisClock) take(ms int64, sent, received time.Time) sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	if trip := received.Sub(sent); trip <= 2*c.sample.trip || received.Sub(c.sample.received) > sampleFor/2 {
		c.sample = sample{ms: ms, received: received, trip: trip}
	}
	return c.sample
}
