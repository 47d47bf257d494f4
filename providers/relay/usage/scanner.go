package relay

import (
	"time"

	"modelrelay/providers"
)

// meter counts the tokens of one answer from the bytes that pass, in constant memory: of a JSON document, or of each
// event of a stream.
type meter struct {
	doc    skimmer
	stream bool
	images marks
	things finder

	usage   providers.Usage
	counted bool

	// Where a stream stands within a line: bytes of "data" matched so far, or one of the constants below; empty tells
	// that the line has no byte yet, afterCR that a line feed still belongs to the line before.
	field   int8
	empty   bool
	afterCR bool
}

const (
	dataField  = "data"
	otherField = -1                       // the rest of the line does not matter
	inData     = int8(len(dataField)) + 1 // the rest of the line is data
)

func newMeter(shape *shape, stream bool) *meter {
	return &meter{doc: skimmer{root: shape.root}, images: marks{mark: shape.mark}, stream: stream, empty: true}
}

// shape is a usage shape as a meter wants it.
type shape struct {
	root *member
	mark string
	made string
	turn providers.TurnShape
}

// newShape compiles a shape; nil for the zero shape.
func newShape(of providers.UsageShape) *shape {
	if root := newMember(of); root != nil {
		return &shape{root: root, mark: of.ImageMark, made: of.Made, turn: of.Turn}
	}
	return nil
}

// observe reads the next bytes of the answer.
func (m *meter) observe(b []byte) {
	if m.images.mark != "" {
		m.images.feed(b)
		m.usage.Images = m.images.count
	}
	if m.things.found != nil {
		m.things.feed(b)
	}
	if !m.stream {
		m.doc.feed(b)
		return
	}
	for len(b) > 0 {
		n, ended := m.advance(b)
		b = b[n:]
		if ended {
			m.settle()
		}
	}
}

// settle takes over what the document or event that ends here counted.
func (m *meter) settle() {
	if m.doc.place == inNumber {
		m.doc.count()
	}
	if m.doc.seen[inputCounter] {
		m.usage.Input = m.doc.counts[inputCounter]
	}
	if m.doc.seen[cachedCounter] {
		m.usage.Cached = m.doc.counts[cachedCounter]
	}
	if m.doc.seen[outputCounter] {
		m.usage.Output = m.doc.counts[outputCounter]
	}
	if m.doc.seen[audioCounter] {
		m.usage.Audio = time.Duration(m.doc.counts[audioCounter]) * time.Millisecond
	}
	switch {
	case !m.stream:
		m.usage.Images += m.doc.items
	case m.doc.root.lists && m.doc.counted():
		m.usage.Images++
	}
	m.counted = m.counted || m.doc.counted()
	m.doc.reset()
}

// advance reads a stream up to the end of the current event or of b. It says how far it came and whether the event
// ended there; the caller then settles.
func (m *meter) advance(b []byte) (n int, ended bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '\n' && m.afterCR {
			m.afterCR = false
			continue
		}
		m.afterCR = c == '\r'
		switch {
		case c == '\n' || c == '\r':
			blank := m.empty
			m.empty, m.field = true, 0
			if blank {
				if m.afterCR && i+1 < len(b) && b[i+1] == '\n' {
					m.afterCR = false
					i++
				}
				return i + 1, true
			}
			continue
		case m.field == inData:
			from := i
			for i < len(b) && b[i] != '\n' && b[i] != '\r' {
				i++
			}
			m.doc.feed(b[from:i])
			i--
		case m.field == otherField:
		case m.field < inData-1 && c == dataField[m.field]:
			m.field++
		case m.field == inData-1 && c == ':':
			m.field = inData
		default:
			m.field = otherField
		}
		m.empty = false
	}
	return len(b), false
}
