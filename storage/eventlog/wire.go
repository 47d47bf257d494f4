package eventlog

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// chunk is a run of events, one after the other in data. Its slices are not modified.
type chunk struct {
	writer int64 // the writer of the events
	first  int64 // the number of the first event
	count  int64
	data   []byte
}

func (c chunk) end() int64 { return c.first + c.count }

// large reports whether only the archive has the events. A writer keeps no bytes of them once it does.
func (c chunk) large() bool { return len(c.data) == 0 || len(c.data) > LargeEvent }

// end describes an ended log.
type end struct {
	writer   int64 // the last writer
	begin    int64 // the number of the first event that an earlier writer may have written differently; 0: there was none
	total    int64 // the number of events
	complete bool
}

// eventEnd returns the length of the event that b begins with, including its blank line; 0: b has no complete event. A line ends with LF,
// CR LF or CR.
func eventEnd(b []byte) int {
	n, _ := findEnd(b, true)
	return n
}

// findEnd returns the length of b up to the end of the event that continues in it; 0: b does not have the end. blank: the line that
// continues in b has no byte yet. It returns the same of the line that continues after b.
func findEnd(b []byte, blank bool) (n int, still bool) {
	for i := 0; i < len(b); i++ {
		if b[i] != '\n' && b[i] != '\r' {
			blank = false
			continue
		}
		if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
			i++
		}
		if blank {
			return i + 1, true
		}
		blank = true
	}
	return 0, blank
}

// pieces reads the events of an object: those of up to LargeEvent bytes whole, larger ones in pieces.
type pieces struct {
	from io.Reader
	err  error // of from
	buf  []byte
	// buf[begin:end] was read and not returned. The event does not end before scanned, where the line is blank so far.
	begin, scanned, end int
	blank               bool
}

func newPieces(from io.Reader) *pieces {
	return &pieces{from: from, buf: make([]byte, entrySize), blank: true}
}

// next returns the next piece, which is valid until the next call; last: its event ends with it. The error is io.EOF after the last event.
func (p *pieces) next() (piece []byte, last bool, err error) {
	for {
		known := p.end
		if p.err == nil && known > p.scanned && p.buf[known-1] == '\r' { // an LF may follow
			known--
		}
		n, blank := findEnd(p.buf[p.scanned:known], p.blank)
		if n > 0 {
			return p.take(p.scanned + n), true, nil
		}
		p.scanned, p.blank = known, blank
		switch {
		case p.err == nil:
		case errors.Is(p.err, io.EOF) && p.begin < p.end:
			return nil, false, errBroken
		default:
			return nil, false, p.err
		}
		if p.begin > 0 {
			p.end = copy(p.buf, p.buf[p.begin:p.end])
			p.begin, p.scanned = 0, p.scanned-p.begin
		}
		if p.end == len(p.buf) {
			if p.end >= LargeEvent {
				return p.take(p.scanned), false, nil
			}
			p.buf = append(make([]byte, 0, 2*p.end), p.buf...)[:2*p.end]
		}
		n, p.err = p.from.Read(p.buf[p.end:])
		p.end += n
	}
}

// take returns what was read up to an index.
func (p *pieces) take(until int) []byte {
	piece := p.buf[p.begin:until:until]
	p.begin, p.scanned = until, until
	return piece
}

// errBroken reports stored bytes that no writer has written.
var errBroken = errors.New("the stored events are broken")

// A message is an entry of a stream, and what its channel carries: a line of numbers, then the events. That of an end has no events.

func (c chunk) message() string {
	return fmt.Sprintf("%d %d %d\n%s", c.writer, c.first, c.count, c.data)
}

func (e end) message() string {
	return fmt.Sprintf("%d %d %d %d\n", e.writer, e.begin, e.total, oneIf(e.complete))
}

func oneIf(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// parseMessage returns the events of a message, or the end.
func parseMessage(message string) (c chunk, ended *end, err error) {
	header, data, found := strings.Cut(message, "\n")
	numbers, ok := parseNumbers(header, " ")
	switch {
	case !found || !ok:
	case len(numbers) == 3 && numbers[2] > 0 && numbers[1] <= math.MaxInt64-numbers[2]:
		return chunk{writer: numbers[0], first: numbers[1], count: numbers[2], data: []byte(data)}, nil, nil
	case len(numbers) == 4 && data == "":
		ended, ok = endOf(numbers)
		if ok {
			return chunk{}, ended, nil
		}
	}
	return chunk{}, nil, fmt.Errorf("%w: a message of %d bytes", errBroken, len(message))
}

// endOf returns the end with the numbers writer, begin, total and 1 if it is complete.
func endOf(numbers []int64) (*end, bool) {
	e := &end{writer: numbers[0], begin: numbers[1], total: numbers[2], complete: numbers[3] == 1}
	return e, numbers[1] <= numbers[2] && numbers[3] <= 1
}

// parseNumbers returns numbers that are not negative.
func parseNumbers(text, separator string) (numbers []int64, ok bool) {
	for field := range strings.SplitSeq(text, separator) {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, int64(n))
	}
	return numbers, true
}

// part is an object with a run of events.
type part struct {
	first, end int64
	writer     int64
}

const (
	partsFolder = "events/"
	endBegins   = "events-" // begins the name of the final object
	endEnds     = ".sse"
	// indexEnds follows the name of the final object in that of its index: lines with the number of an event and its offset in the object. A
	// small object has no index.
	indexEnds = ".index"
)

// name returns the name of a part in the folder of the call. Names are in the order of the events.
func (p part) name() string {
	return fmt.Sprintf("%s%012d-%012d-%d", partsFolder, p.first, p.end, p.writer)
}

// name returns the name of the final object in the folder of the call.
func (e end) name() string {
	return fmt.Sprintf("%s%d-%d-%d-%d%s", endBegins, e.writer, e.begin, e.total, oneIf(e.complete), endEnds)
}

// parseName returns the part or the end that an object of the folder is; both are nil for another object.
func parseName(name string) (*part, *end) {
	if text, is := strings.CutPrefix(name, partsFolder); is {
		numbers, ok := parseNumbers(text, "-")
		if ok && len(numbers) == 3 && numbers[0] < numbers[1] {
			return &part{first: numbers[0], end: numbers[1], writer: numbers[2]}, nil
		}
		return nil, nil
	}
	text, begins := strings.CutPrefix(name, endBegins)
	text, ends := strings.CutSuffix(text, endEnds)
	if numbers, ok := parseNumbers(text, "-"); begins && ends && ok && len(numbers) == 4 {
		if e, ok := endOf(numbers); ok {
			return nil, e
		}
	}
	return nil, nil
}

// chain returns the parts that are the log, one after the other from number 0. A writer that lost the log to a later one may have stored
// parts too: of parts for the same number, that of the latest writer counts, and after it no part of an earlier one.
func chain(parts []part) (chained []part) {
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(b.writer, a.writer))
	})
	var next, writer int64
	for _, p := range parts {
		if p.first == next && p.writer >= writer {
			chained = append(chained, p)
			next, writer = p.end, p.writer
		}
	}
	return chained
}
