package form_test

import (
	"fmt"
	"testing"

	"modelrelay/providers/translate/form"
)

// BenchmarkLoss notes names that a client made up, at two sizes: the time for each stays the same.
func BenchmarkLoss(b *testing.B) {
	for _, size := range []int{2_000, 32_000} {
		names := make([]string, size)
		for i := range names {
			names[i] = fmt.Sprint("made_up_", i)
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				var loss form.Loss
				for _, name := range names {
					loss.Drop(name)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/name")
		})
	}
}

// TestLossOfManyNames: each name is listed once, however many there are.
func TestLossOfManyNames(t *testing.T) {
	t.Parallel()
	var loss form.Loss
	for range 2 {
		for i := range 1_000 {
			loss.Drop(fmt.Sprint("made_up_", i))
			loss.Change(fmt.Sprint("made_up_", i))
		}
	}
	loss.Unchange("made_up_500")
	loss.Change("made_up_7")
	loss.Change("made_up_500")
	if len(loss.Dropped) != 1_000 || len(loss.Changed) != 1_000 || loss.Changed[999] != "made_up_500" {
		t.Errorf("got %d and %d names", len(loss.Dropped), len(loss.Changed))
	}
}

// TestChoiceOfMany: a choice among many tools has those that it names, in the order of the tools.
func TestChoiceOfMany(t *testing.T) {
	t.Parallel()
	var choice form.Choice
	tools := make([]form.Tool, 10_000)
	for i := range tools {
		tools[i].Name = fmt.Sprint("tool_", i)
		if i%2 == 0 {
			choice.Names = append(choice.Names, tools[i].Name)
		}
	}
	if got := choice.Allowed(tools); len(got) != 5_000 || got[1].Name != "tool_2" {
		t.Errorf("got %d tools", len(got))
	}
}
