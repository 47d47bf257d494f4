package openai_test

import (
	"strconv"
	"strings"
	"testing"

	"modelrelay/api/openai"
)

// TestEventNumbers: the number that follows the last event's, however the events are cut into reads.
func TestEventNumbers(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("x", 5000)
	for _, test := range []struct {
		stream string
		want   int
	}{
		{"", 0},
		{"data: {\"type\":\"response.created\"}\n\n", 0},
		{`data: {"sequence_number":0,"type":"a"}` + "\n\n", 1},
		{`data: {"sequence_number":9,"delta":"` + text + `"}` + "\n\n" + `data: {"delta":"` + text + `","sequence_number": 10}` + "\n\n", 11},
		{`data: {"sequence_number":3,"delta":"\"sequence_number\":7"}` + "\n\n", 4},
		{`data: {"sequence_number" : 1234567,"delta":"` + text, 1234568},
		{`data: {"sequence_number":4}` + "\n\n" + `data: {"sequence_number":`, 5},
	} {
		for _, size := range []int{1, 2, 7, 47, 48, 49, 4096, 1 << 20} {
			if got := openai.NextEventNumber(test.stream, size); got != test.want {
				t.Errorf("%.60q in reads of %s: got %d, want %d", test.stream, strconv.Itoa(size), got, test.want)
			}
		}
	}
}
