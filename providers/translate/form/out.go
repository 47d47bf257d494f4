package form

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// referAbove is the length from which a value is a piece of the payload of its own rather than a copy, in bytes.
const referAbove = 4 << 10

// DocumentRoom is about what a whole answer takes next to its texts, in bytes.
const DocumentRoom = 1 << 10

// payloadRoom is the memory with which a request's body begins, in bytes: what a short one needs.
const payloadRoom = 2 << 10

// Out writes JSON. Commas are put where they belong. The zero Out copies what it is given; NewPayload refers to what is long.
type Out struct{ written }

// written is what an Out has written so far.
type written struct {
	buf    []byte
	pieces providers.Payload
	from   int  // of buf, what is not in pieces yet
	refers bool // to long values
	last   byte
}

// NewPayload returns an Out for a request's body, which refers to long values: they must not change as long as the payload
// is used.
func NewPayload() *Out { return &Out{written{refers: true, buf: make([]byte, 0, payloadRoom)}} }

// Begin opens an object, BeginArray an array, End and EndArray close them.
func (o *Out) Begin() { o.value(); o.put('{') }

// Typed opens an object that begins with its type.
func (o *Out) Typed(kind string) {
	o.Begin()
	o.Literal(`"type":"` + kind + `"`)
}

// End closes an object.
func (o *Out) End() { o.put('}') }

// BeginArray opens an array.
func (o *Out) BeginArray() { o.value(); o.put('[') }

// EndArray closes an array.
func (o *Out) EndArray() { o.put(']') }

// Key writes a member's name, which needs no escapes.
func (o *Out) Key(name string) {
	o.value()
	o.buf = append(o.buf, '"')
	o.buf = append(o.buf, name...)
	o.buf = append(o.buf, '"')
	o.put(':')
}

// Name writes a member's name as it is in a document.
func (o *Out) Name(name rawjson.Text) {
	o.Raw(name)
	o.put(':')
}

// Raw writes a value as it is, which may be in several pieces: null where it is absent.
func (o *Out) Raw(pieces ...[]byte) {
	from := len(pieces)
	for i, piece := range pieces {
		if len(piece) > 0 {
			from = i
			break
		}
	}
	if from == len(pieces) {
		o.Literal("null")
		return
	}
	o.value()
	for _, piece := range pieces[from:] {
		o.bytes(piece)
	}
}

// Literal writes a value, or several members without their braces, as it is.
func (o *Out) Literal(value string) {
	if value == "" {
		return
	}
	o.value()
	o.buf = append(o.buf, value...)
	o.last = value[len(value)-1]
}

// Text writes a text, "" where it is absent.
func (o *Out) Text(text rawjson.Text) {
	if text == nil {
		text = rawjson.Text(`""`)
	}
	o.Raw(text)
}

// String writes decoded text.
func (o *Out) String(text string) {
	o.value()
	o.buf, _ = jsontext.AppendQuote(o.buf, text) // bytes that are no UTF-8 are replaced
	o.last = '"'
}

// Quoted writes one text of several parts: each is the inside of a text, escapes included.
func (o *Out) Quoted(parts ...[]byte) {
	o.value()
	o.put('"')
	for _, part := range parts {
		o.bytes(part)
	}
	o.put('"')
}

// Int writes a number.
func (o *Out) Int(n int64) {
	o.value()
	o.buf = strconv.AppendInt(o.buf, n, 10)
	o.last = '0'
}

// Bool writes true or false.
func (o *Out) Bool(yes bool) {
	o.value()
	o.buf = strconv.AppendBool(o.buf, yes)
	o.last = 'e'
}

// Object writes a member's name and opens the object that it has, Array the array.
func (o *Out) Object(name string) { o.Key(name); o.Begin() }

// Array writes a member's name and opens the array that it has.
func (o *Out) Array(name string) { o.Key(name); o.BeginArray() }

// KeyString writes a member, and so do the others of its kind: each is Key and the method of the same name.
func (o *Out) KeyString(name, text string) { o.Key(name); o.String(text) }

// KeyText writes a member with a text.
func (o *Out) KeyText(name string, text rawjson.Text) { o.Key(name); o.Text(text) }

// KeyQuoted writes a member with one text of several parts.
func (o *Out) KeyQuoted(name string, parts ...[]byte) { o.Key(name); o.Quoted(parts...) }

// KeyRaw writes a member with a value as it is, null where it is absent; Field leaves such a member out.
func (o *Out) KeyRaw(name string, pieces ...[]byte) { o.Key(name); o.Raw(pieces...) }

// KeyInt writes a member with a number.
func (o *Out) KeyInt(name string, n int64) { o.Key(name); o.Int(n) }

// Field writes a member whose value is raw, nothing where that is absent.
func (o *Out) Field(name string, value []byte) {
	if len(value) > 0 {
		o.KeyRaw(name, value)
	}
}

// Plain writes bytes that are no JSON, such as the frame of an event. The next value needs no comma.
func (o *Out) Plain(text string) {
	o.buf = append(o.buf, text...)
	o.last = 0
}

// value puts a comma before a value or a member where one is needed.
func (o *Out) value() {
	switch o.last {
	case 0, '{', '[', ':', ',':
	default:
		o.buf = append(o.buf, ',')
	}
}

func (o *written) put(c byte) {
	o.buf = append(o.buf, c)
	o.last = c
}

func (o *written) bytes(p []byte) {
	if len(p) == 0 {
		return
	}
	if o.refers && len(p) >= referAbove {
		o.cut()
		o.pieces = append(o.pieces, p)
	} else {
		o.buf = append(o.buf, p...)
	}
	o.last = '"' // whatever it is, it ends a value
}

// cut ends the piece that is written.
func (o *written) cut() {
	if len(o.buf) > o.from {
		o.pieces = append(o.pieces, o.buf[o.from:len(o.buf):len(o.buf)])
		o.from = len(o.buf)
	}
}

// Payload is what was written, in pieces.
func (o *written) Payload() providers.Payload {
	o.cut()
	return o.pieces
}

// Grow makes room for so many more bytes, so that a document of a known length is not moved while it grows.
func (o *written) Grow(n int) { o.buf = slices.Grow(o.buf, n) }

// Len is how many bytes were copied so far.
func (o *written) Len() int { return len(o.buf) }

// Bytes is what was written, without the long values that are referred to. It is valid until the next write.
func (o *written) Bytes() []byte { return o.buf }

// Reset begins anew in the same memory, which is let go above keep bytes.
func (o *written) Reset(keep int) {
	if cap(o.buf) > keep {
		o.buf = nil
	}
	o.buf, o.pieces, o.from, o.last = o.buf[:0], nil, 0, 0
}
