package bench_test

import (
	"testing"

	"modelrelay/dev/bench"
	"modelrelay/dev/bench/calls"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/bench/tasks"
)

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []bench.Options{
		{},
		{Options: stage.Options{Rounds: 1}},
		{Options: stage.Options{Rounds: 1}, Calls: calls.Sizes{Connections: 64, Requests: -1}},
		{Options: stage.Options{Rounds: 1}, Calls: calls.Sizes{Connections: 64, Streams: 1 << 20}},
		{Options: stage.Options{Rounds: 1}, Calls: calls.Sizes{Connections: 64}, Tasks: tasks.Sizes{Crowd: -1}},
	} {
		if _, err := bench.Run(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}
