package sse_test

import (
	"strings"
	"testing"

	"modelrelay/providers/sse"
)

// TestFormat: an event is read as it was written, whatever the lines of its data, and a name of several lines makes no other event.
func TestFormat(t *testing.T) {
	t.Parallel()
	stream := string(sse.Format("a", []byte("{\n \"b\":1\n}"))) + string(sse.Format("c\r\ndata: x\n\nevent: d", []byte("[DONE]")))
	var got []string
	if err := sse.Each(strings.NewReader(stream), func(e sse.Event) { got = append(got, string(e.Name)+" "+string(e.Data)) }); err != nil {
		t.Fatal(err)
	}
	if want := "a {\n \"b\":1\n}|c [DONE]"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
