package eventlog

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestChain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ parts, want []part }{
		"none":       {},
		"in order":   {[]part{{5, 9, 1}, {0, 5, 1}}, []part{{0, 5, 1}, {5, 9, 1}}},
		"gap":        {[]part{{0, 5, 1}, {6, 9, 1}}, []part{{0, 5, 1}}},
		"no first":   {[]part{{1, 5, 1}}, nil},
		"later wins": {[]part{{0, 5, 1}, {5, 9, 1}, {5, 7, 2}, {7, 8, 2}}, []part{{0, 5, 1}, {5, 7, 2}, {7, 8, 2}}},
		"late part":  {[]part{{0, 5, 1}, {5, 7, 2}, {7, 9, 1}}, []part{{0, 5, 1}, {5, 7, 2}}},
	} {
		if got := chain(tc.parts); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	p := part{first: 12, end: 1234, writer: 1795494227123}
	if got, e := parseName(p.name()); got == nil || *got != p || e != nil {
		t.Errorf("%s: %v, %v", p.name(), got, e)
	}
	e := end{writer: 7, begin: 3, total: 9, complete: true}
	if p, got := parseName(e.name()); got == nil || *got != e || p != nil {
		t.Errorf("%s: %v, %v", e.name(), p, got)
	}
	for _, name := range []string{
		"", "events", "events/", "events/1-2", "events/2-1-1", "events/1-1-1", "events/1-2-3-4", "events/a-2-3",
		"events-1-2-3-0", "events-1-4-3-0.sse", "events-1-2-3-2.sse", "events--1-2-3-0.sse", "request.json",
	} {
		if p, e := parseName(name); p != nil || e != nil {
			t.Errorf("%q: %v, %v", name, p, e)
		}
	}
}

// FuzzEvents: both parsers find the same events: in memory, and in a stream of single bytes.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"", "data: a\n\n", "data: a\r\n\r\ndata: b\n\n", "a\r\r\nb\r\n\n", "\n\n\n", "\r\r\r", "data: a",
		"a\n\r\n\rb\n\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		var want [][]byte
		rest := stream
		for n := eventEnd(rest); n > 0; n = eventEnd(rest) {
			want = append(want, rest[:n])
			rest = rest[n:]
		}
		var got [][]byte
		events := newPieces(iotest.OneByteReader(bytes.NewReader(stream)))
		piece, _, err := events.next()
		for ; err == nil; piece, _, err = events.next() {
			got = append(got, bytes.Clone(piece))
		}
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("got %q, want %q", got, want)
		}
		if broken := !errors.Is(err, io.EOF); broken != (len(rest) > 0) {
			t.Errorf("error %v with %d bytes left", err, len(rest))
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(chunk{writer: 1, first: 2, count: 3, data: []byte("a\n\n")}.message())
	f.Add(end{writer: 1, begin: 2, total: 3, complete: true}.message())
	f.Add("1 2\n")
	f.Add("-1 2 3\n")
	f.Fuzz(func(t *testing.T, message string) {
		c, e, err := parseMessage(message)
		switch {
		case err != nil && (e != nil || c.count != 0):
			t.Errorf("%v, %v with %v", c, e, err)
		case err != nil:
		case e != nil:
			if e.begin > e.total || e.begin < 0 {
				t.Errorf("%+v", e)
			}
			if _, again, err := parseMessage(e.message()); err != nil || *again != *e {
				t.Errorf("%+v, %v", again, err)
			}
		default:
			if c.count <= 0 || c.end() <= c.first {
				t.Errorf("%+v", c)
			}
			again, _, err := parseMessage(c.message())
			if err != nil || again.first != c.first || again.count != c.count || !bytes.Equal(again.data, c.data) {
				t.Errorf("%+v, %v", again, err)
			}
		}
	})
}

func FuzzName(f *testing.F) {
	f.Add(part{1, 2, 3}.name())
	f.Add(end{1, 2, 3, false}.name())
	f.Fuzz(func(t *testing.T, name string) {
		p, e := parseName(name)
		if p != nil {
			if again, _ := parseName(p.name()); *again != *p {
				t.Errorf("%q: %+v, then %+v", name, p, again)
			}
		}
		if e != nil {
			if _, again := parseName(e.name()); *again != *e {
				t.Errorf("%q: %+v, then %+v", name, e, again)
			}
		}
	})
}

func BenchmarkEventEnd(b *testing.B) {
	event := []byte("data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 200) + "\"}}]}\n\n")
	b.SetBytes(int64(len(event)))
	for b.Loop() {
		if eventEnd(event) != len(event) {
			b.Fatal("not an event")
		}
	}
}
