package growth_test

import (
	"math"
	"testing"

	"modelrelay/dev/bench/growth"
)

func TestExponent(t *testing.T) {
	t.Parallel()
	sizes := []int{100, 1000, 10_000}
	for want, costs := range map[float64][]float64{0: {7, 7, 7}, 1: {1, 10, 100}, 2: {3, 300, 30_000}, .5: {1, math.Sqrt(10), 10}} {
		if got := growth.Exponent(sizes, costs); math.Abs(got-want) > 1e-9 {
			t.Errorf("costs %v: exponent %v, want %v", costs, got, want)
		}
	}
}

func TestSizesHaveLimits(t *testing.T) {
	t.Parallel()
	for _, sizes := range []growth.Sizes{{Channels: []int{10, 100_000}}, {Tokens: []int{0}}, {Tasks: []int{1_000_000}}} {
		if sizes.Check() == nil {
			t.Errorf("%+v are measured", sizes)
		}
	}
}
