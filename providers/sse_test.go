package providers_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/providers"
)

// event is an Event that stays.
type event struct{ raw, name, data string }

func readEvents(stream io.Reader) ([]event, error) {
	reader := providers.NewEventReader(stream)
	var events []event
	for {
		got, err := reader.Next()
		if err != nil {
			return events, err
		}
		data := string(got.Data)
		if got.Data == nil {
			data = "-"
		}
		events = append(events, event{string(got.Raw), got.Name, data})
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, stream string
		want         []event
	}{
		{"nothing", "", nil},
		{"two", "data: a\n\ndata: b\n\n", []event{{"data: a\n\n", "", "a"}, {"data: b\n\n", "", "b"}}},
		{"named", "event: start\ndata: {}\n\ndata: x\n\n", []event{{"event: start\ndata: {}\n\n", "start", "{}"}, {"data: x\n\n", "", "x"}}},
		{"CRLF", "event: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", []event{{"event: a\r\ndata: b\r\n\r\n", "a", "b"}, {"data: c\r\n\r\n", "", "c"}}},
		{"CR", "data: a\rdata: b\r\rdata: c\r\r", []event{{"data: a\rdata: b\r\r", "", "a\nb"}, {"data: c\r\r", "", "c"}}},
		{"mixed ends", "data: a\r\ndata: b\n\r\ndata: c\r\n\n", []event{{"data: a\r\ndata: b\n\r\n", "", "a\nb"}, {"data: c\r\n\n", "", "c"}}},
		{"several lines", "data: a\ndata\ndata:b\ndata:  c\n\n", []event{{"data: a\ndata\ndata:b\ndata:  c\n\n", "", "a\n\nb\n c"}}},
		{"no data", "data\n\ndata:\n\n", []event{{"data\n\n", "", ""}, {"data:\n\n", "", ""}}},
		{"heartbeats", ": ping\n\ndata: a\n: in between\n\n:\n\n", []event{{": ping\n\n", "", "-"}, {"data: a\n: in between\n\n", "", "a"}, {":\n\n", "", "-"}}},
		{"blank lines", "\n\ndata: a\n\n\n", []event{{"\n", "", "-"}, {"\n", "", "-"}, {"data: a\n\n", "", "a"}, {"\n", "", "-"}}},
		{"other fields", "id: 7\nretry: 9\ndatum: x\nevent\ndata: a\n\n", []event{{"id: 7\nretry: 9\ndatum: x\nevent\ndata: a\n\n", "", "a"}}},
		{"no blank line at the end", "data: a\n\nevent: e\ndata: [DONE]", []event{{"data: a\n\n", "", "a"}, {"event: e\ndata: [DONE]", "e", "[DONE]"}}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\ndata: b\n\n", []event{{"\xef\xbb\xbfdata: a\n\n", "", "a"}, {"data: b\n\n", "", "b"}}},
	} {
		for how, wrap := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "with the end": iotest.DataErrReader, "halves": iotest.HalfReader,
		} {
			t.Run(tc.name+", "+how, func(t *testing.T) {
				t.Parallel()
				got, err := readEvents(wrap(strings.NewReader(tc.stream)))
				if !errors.Is(err, io.EOF) {
					t.Errorf("got error %v, want EOF", err)
				}
				if !equal(got, tc.want) {
					t.Errorf("got  %q\nwant %q", got, tc.want)
				}
			})
		}
	}
}

func equal(got, want []event) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if got[i] != want[i] {
			return false
		}
	}
	return true
}

// TestEventReaderDoesNotWait: an event is handed out as soon as its blank line is there, also where a line feed could follow a CR.
func TestEventReaderDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r\n", "data: a\r\n\r"} {
		reader := providers.NewEventReader(io.MultiReader(strings.NewReader(stream), iotest.ErrReader(errors.New("read on"))))
		if got, err := reader.Next(); err != nil || string(got.Data) != "a" {
			t.Errorf("%q: got data %q, %v", stream, got.Data, err)
		}
		if _, err := reader.Next(); err == nil || err.Error() != "read on" {
			t.Errorf("%q: got error %v, want the stream's", stream, err)
		}
	}
}

func TestEventReaderLarge(t *testing.T) {
	t.Parallel()
	picture := strings.Repeat("QUJD", 3<<20/4)
	stream := "data: " + picture + "\n\ndata: small\n\ndata: " + picture + "\n\ndata: end\n\n"
	got, err := readEvents(iotest.HalfReader(strings.NewReader(stream)))
	if !errors.Is(err, io.EOF) || len(got) != 4 {
		t.Fatalf("got %d events, %v", len(got), err)
	}
	if got[0].data != picture || got[1].data != "small" || got[2].data != picture || got[3].data != "end" {
		t.Error("the events are not those of the stream")
	}
	endless := io.LimitReader(repeat('x'), providers.MaxEvent+1<<20)
	if _, err := providers.NewEventReader(endless).Next(); !errors.Is(err, providers.ErrEventTooLarge) {
		t.Errorf("got error %v, want ErrEventTooLarge", err)
	}
}

// repeat is an endless stream of one byte.
type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// FuzzEventReader: the raw bytes are the stream, whatever the stream and however it arrives.
func FuzzEventReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\ndata: b\n\n", "event: a\r\ndata: b\r\n\r\n", "data: a\rdata: b\r\r", ": ping\n\n\n\ndata", "\xef\xbb\xbfdata: a\n\n", "\r\n\r\r\n\n\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole, err := readEvents(bytes.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("got error %v", err)
		}
		slow, _ := readEvents(iotest.OneByteReader(bytes.NewReader(stream)))
		var raws, slowRaws strings.Builder
		var named, slowNamed []event
		for _, e := range whole {
			raws.WriteString(e.raw)
			if e.data != "-" {
				named = append(named, event{name: e.name, data: e.data})
			}
		}
		for _, e := range slow {
			slowRaws.WriteString(e.raw)
			if e.data != "-" {
				slowNamed = append(slowNamed, event{name: e.name, data: e.data})
			}
		}
		if raws.String() != string(stream) || slowRaws.String() != string(stream) {
			t.Errorf("the raw bytes %q and %q are not the stream %q", raws.String(), slowRaws.String(), stream)
		}
		if !equal(named, slowNamed) {
			t.Errorf("got events %q at once, %q byte by byte", named, slowNamed)
		}
	})
}

func BenchmarkEventReader(b *testing.B) {
	one := `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word"},"finish_reason":null}],"usage":null}` + "\n\n"
	stream := strings.Repeat(one, 100)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		reader := providers.NewEventReader(strings.NewReader(stream))
		for n := 0; ; n++ {
			if _, err := reader.Next(); err != nil {
				if n != 100 {
					b.Fatalf("got %d events, %v", n, err)
				}
				break
			}
		}
	}
}
