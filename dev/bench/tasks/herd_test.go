package tasks_test

import (
	"testing"

	"modelrelay/dev/bench/tasks"
)

func TestMost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times [][2]int64
		want  int
	}{
		"none":                   {nil, 0},
		"one after the other":    {[][2]int64{{0, 5}, {5, 9}, {9, 12}}, 1},
		"two at once":            {[][2]int64{{0, 6}, {5, 9}, {9, 12}}, 2},
		"one within two of them": {[][2]int64{{0, 100}, {50, 60}, {40, 70}, {80, 90}}, 3},
	} {
		if got := tasks.Most(c.times); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
