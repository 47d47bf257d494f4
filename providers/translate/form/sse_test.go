package form_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers/translate/form"
)

// events lists what a stream gives, and how it ends.
func events(from io.Reader) (all []string, err error) {
	stream := form.NewStream(from)
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
		stream := form.NewStream(readFunc(func(p []byte) (int, error) {
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
	if got, err := events(endless); !errors.Is(err, form.ErrEventTooLong) || got != nil {
		t.Errorf("got %.50q, %v, want an event that is too long", got, err)
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
		s := form.NewStream(bytes.NewReader(stream))
		for {
			if _, err := s.Next(); err != nil {
				break
			}
		}
	}
}
