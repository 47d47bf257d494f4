package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers/sse"
)

func TestArray(t *testing.T) {
	t.Parallel()
	for stream, want := range map[string]string{
		"":                                   "[]",
		": comment\n\n":                      "[]",
		"data: {\"a\":1}\n\n":                `[{"a":1}]`,
		"data: {\"a\":1}\r\n\r\ndata: 2\n\n": "[{\"a\":1},\r\n2]",
		"event: e\ndata: [1,\ndata: 2]\n\n: x\n\ndata: {}\n\n": "[[1,\n2],\r\n{}]",
	} {
		if got, err := io.ReadAll(iotest.OneByteReader(sse.NewArray(strings.NewReader(stream)))); err != nil || string(got) != want {
			t.Errorf("%q: got %q, %v; want %q", stream, got, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(sse.NewArray(io.MultiReader(strings.NewReader("data: 1\n\n"), iotest.ErrReader(broken)))); !errors.Is(err,
		broken) {
		t.Errorf("got %v", err)
	}
}
