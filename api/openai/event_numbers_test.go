package openai_test

import (
	"strings"
	"testing"

	"modelrelay/api/openai"
)

// TestEventNumbers: the number that follows the last event's. A large event arrives in parts.
func TestEventNumbers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 5000)
	for _, test := range []struct {
		pieces []string
		want   int
	}{
		{nil, 0},
		{[]string{"data: {\"type\":\"response.created\"}\n\n"}, 0},
		{[]string{`data: {"sequence_number":0,"type":"a"}` + "\n\n"}, 1},
		{[]string{`data: {"sequence_number":9,"delta":"` + text, text + `"}` + "\n\n", `data: {"delta":"` + text, text + `","sequence_number": 10}` + "\n\n"}, 11},
		{[]string{`data: {"sequence_number":3,"delta":"\"sequence_number\":7"}` + "\n\n"}, 4},
		{[]string{`data: {"sequence_number" : 1234567,"delta":"` + text}, 1234568},
		{[]string{`data: {"sequence_number":4}` + "\n\n", `data: {"sequence_number":`}, 5},
	} {
		if got := openai.NextEventNumber(test.pieces...); got != test.want {
			t.Errorf("%.60q: got %d, want %d", test.pieces, got, test.want)
		}
	}
}
