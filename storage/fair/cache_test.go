package fair_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage/fair"
)

// TestCache: an owner pushes out its own values, the one that holds the most those beyond the total, and none is returned after its
// lifetime.
func TestCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := fair.NewCache[string, string, int](fair.CacheBounds{Total: 25, Share: 10, TTL: time.Minute})
		has := func(key string) bool {
			_, ok := c.Get(key)
			return ok
		}
		c.Put("modest", "m", 1, 1)
		c.Put("modest", "m", 2, 1)
		for i := range 4 {
			c.Put("greedy", fmt.Sprint("g", i), i, 4)
			has("g0") // is read again and again
		}
		if value, ok := c.Get("m"); value != 2 || !ok || !has("g0") || has("g1") || has("g2") || !has("g3") || c.Size() != 9 {
			t.Errorf("got %d, %t; %d are held", value, ok, c.Size())
		}
		c.Put("second", "s", 0, 10)
		c.Put("third", "t", 0, 7) // the second holds the most
		if !has("m") || !has("g0") || !has("g3") || has("s") || !has("t") || c.Size() != 16 {
			t.Errorf("%d are held", c.Size())
		}
		c.Put("third", "too large", 0, 11)
		c.Drop("t")
		if has("t") || has("too large") || c.Size() != 9 {
			t.Errorf("%d are held", c.Size())
		}
		<-time.After(time.Minute) // of the bubble's clock
		if has("m") || has("g0") || has("g3") || c.Size() != 0 {
			t.Errorf("%d are held after their life", c.Size())
		}
	})
}

// TestCacheConcurrent: the cache stays within its bounds under concurrent use. The race detector checks the rest.
func TestCacheConcurrent(t *testing.T) {
	t.Parallel()
	c := fair.NewCache[int, int, int](fair.CacheBounds{Total: 100, Share: 30})
	var work sync.WaitGroup
	for of := range 8 {
		work.Go(func() {
			for i := range 2000 {
				c.Put(of, of*10_000+i%50, i, 1+i%7)
				c.Get(i % 80_000)
				if i%5 == 0 {
					c.Drop(of*10_000 + i%50)
				}
				if size := c.Size(); size > 100 {
					t.Errorf("%d are held", size)
				}
			}
		})
	}
	work.Wait()
}
