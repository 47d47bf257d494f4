package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers/sse"
)

// events lists what a stream gives, and how it ends.
func events(from io.Reader) (all []string, err error) {
	stream := sse.NewReader(from)
	for {
		sent, err := stream.Next()
		if err != nil {
			return all, err
		}
		if sent.Data == nil {
			all = append(all, "ping")
			continue
		}
		one := fmt.Sprintf("%s=%s", sent.Name, sent.Data)
		if sent.Unended {
			one += "…"
		}
		all = append(all, one)
	}
}

// TestStream: the rules of https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation, but that
// an event counts which the end of the stream cut its blank line off.
func TestStream(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct {
		stream string
		want   []string
	}{
		"nothing":               {"", nil},
		"blank lines":           {"\n\n\n", nil},
		"one":                   {"data: a\n\n", []string{"=a"}},
		"without a space":       {"data:a\n\ndata:  b\n\n", []string{"=a", "= b"}},
		"named":                 {"event: e\ndata: a\n\ndata: b\n\n", []string{"e=a", "=b"}},
		"named behind":          {"data: a\nevent:e\n\n", []string{"e=a"}},
		"a name alone":          {"event: e\n\ndata: b\n\n", []string{"=b"}},
		"several lines":         {"data: a\nid: 5\ndata:b\ndata\ndata: c\n\n", []string{"=a\nb\n\nc"}},
		"no data":               {"data\n\n", []string{"="}},
		"comments":              {": hello\n\n:\ndata: a\n\n", []string{"ping", "ping", "=a"}},
		"a comment within":      {"event: e\ndata: a\n: ping\ndata: b\n\n", []string{"ping", "e=a\nb"}},
		"other fields":          {"id: 1\nretry: 5\nnonsense\ndata: a\n\n", []string{"=a"}},
		"unended":               {"data: a\n\nevent: e\ndata: b\n", []string{"=a", "e=b…"}},
		"unended in a line":     {"data: a\n\ndata: b", []string{"=a", "=b…"}},
		"unended name":          {"data: a\n\nevent: e", []string{"=a"}},
		"a byte order mark":     {"\xEF\xBB\xBFdata: a\n\n", []string{"=a"}},
		"long":                  {"data: " + long + "\n\nevent: e\ndata: " + long + "\n\ndata: a\n\n", []string{"=" + long, "e=" + long, "=a"}},
		"several lines of long": {"data: " + long + "\ndata: " + long + "\n\n", []string{"=" + long + "\n" + long}},
	} {
		for ends, end := range map[string]string{"LF": "\n", "CRLF": "\r\n", "CR": "\r"} {
			for how, arrive := range map[string]func(io.Reader) io.Reader{
				"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with the end": iotest.DataErrReader,
			} {
				got, err := events(arrive(strings.NewReader(strings.ReplaceAll(tc.stream, "\n", end))))
				want := slices.Clone(tc.want)
				if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
					t.Errorf("%s, %s, %s: got %.100q, %v, want %.100q", name, ends, how, got, err, want)
				}
			}
		}
	}
}

// TestStreamIsPrompt: an event is given as soon as its blank line has come, whatever ends its lines.
func TestStreamIsPrompt(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n", "\r\n", "\r"} {
		pieces := make(chan string, 3)
		stream := sse.NewReader(readFunc(func(p []byte) (int, error) {
			select {
			case piece := <-pieces:
				return copy(p, piece), nil
			default:
				return 0, errors.New("it asks for more than it needs")
			}
		}))
		for i := range 3 {
			pieces <- fmt.Sprintf("data: %d%s%s", i, end, end)
			sent, err := stream.Next()
			if err != nil || string(sent.Data) != fmt.Sprint(i) {
				t.Errorf("%q: got %s, %v, want %d", end, sent.Data, err, i)
			}
			if _, more := stream.Whole(); more {
				t.Errorf("%q: got another event", end)
			}
		}
	}
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got, err := events(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !slices.Equal(got, []string{"=a"}) {
		t.Errorf("got %q, %v, want nothing of what broke off", got, err)
	}
	endless := io.MultiReader(strings.NewReader("data: "), readFunc(func(p []byte) (int, error) {
		for i := range p {
			p[i] = 'x'
		}
		return len(p), nil
	}))
	if got, err := events(endless); !errors.Is(err, sse.ErrTooLong) || got != nil {
		t.Errorf("got %.50q, %v, want an event that is too long", got, err)
	}
}

// TestStreamReadsTogether: events that come one by one need 1 KiB of room, and those that come at once are read 4 KiB at a time.
func TestStreamReadsTogether(t *testing.T) {
	t.Parallel()
	const event = "data: 0123456789012345678901234567890123456789\n\n"
	for name, test := range map[string]struct{ pieces, events, reads int }{
		"one by one": {100, 1, 101},
		"at once":    {1, 1000, 2 + 1000*len(event)/(4<<10) + 1},
	} {
		from, reads, most := strings.NewReader(strings.Repeat(event, test.pieces*test.events)), 0, 0
		stream := sse.NewReader(readFunc(func(p []byte) (int, error) {
			reads, most = reads+1, max(most, len(p))
			return from.Read(p[:min(len(p), test.events*len(event))])
		}))
		got := 0
		for {
			if _, err := stream.Next(); err != nil {
				break
			}
			got++
		}
		if got != test.pieces*test.events || reads > test.reads || test.events == 1 && most > 1<<10 {
			t.Errorf("%s: %d events in %d reads of at most %d bytes, want %d in %d", name, got, reads, most, test.pieces*test.events, test.reads)
		}
	}
}

// TestStreamRoom: a stream that waits occupies a few KiB, also after a long event, whose memory is released, and with the beginning of
// the next one. An event may have 15 MiB, as one with a picture.
func TestStreamRoom(t *testing.T) {
	t.Parallel()
	const room = 4 << 10
	long := strings.Repeat("x", 15<<20)
	var asked []int
	pieces := []string{"data: a\n\n", "data: " + long + "\n\nda", "ta: b\n\n", "data: c\n\n"}
	stream := sse.NewReader(readFunc(func(p []byte) (int, error) {
		if len(pieces) == 0 {
			return 0, io.EOF
		}
		asked = append(asked, len(p))
		n := copy(p, pieces[0])
		if pieces[0] = pieces[0][n:]; pieces[0] == "" {
			pieces = pieces[1:]
		}
		return n, nil
	}))
	for _, want := range []int{1, len(long), 1, 1} {
		sent, err := stream.Next()
		if err != nil || len(sent.Data) != want {
			t.Fatalf("got %d bytes, %v, want %d", len(sent.Data), err, want)
		}
	}
	if _, err := stream.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if first, last := asked[0], asked[len(asked)-2:]; first > room || slices.Max(last) > room {
		t.Errorf("waits with %d bytes at first and %d in the end, want at most %d", first, last, room)
	}
}

func FuzzStream(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "event: e\r\ndata:a\r\ndata: b\r\n\r\n", ":x\r\rdata: a\r\r", "\xEF\xBB\xBFdata", "data: a\n: c\ndata: b\n\n\r\n\ndata",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := events(bytes.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if parts, err := events(iotest.OneByteReader(bytes.NewReader(stream))); !errors.Is(err, io.EOF) || !slices.Equal(parts, whole) {
			t.Errorf("byte by byte %q, %v, at once %q", parts, err, whole)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	stream := []byte(strings.Repeat(`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"}}],"usage":null}`+"\n\n", 100))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		s := sse.NewReader(bytes.NewReader(stream))
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
	}
}
