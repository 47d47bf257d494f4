package form

import (
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// referAbove is the length in bytes from which a value is a separate piece of the payload and not copied.
const referAbove = 4 << 10

// DocumentRoom is the approximate size of a whole answer without its texts, in bytes.
const DocumentRoom = 1 << 10

// payloadRoom is the first buffer of a request's body, in bytes: enough for a short one.
const payloadRoom = 2 << 10

// Out writes JSON. It adds the commas. The zero Out copies every value; one of NewPayload refers to long values.
type Out struct{ written }

// written is the output of an Out so far.
type written struct {
	buf    []byte
	pieces providers.Payload
	from   int  // of buf: the beginning of the bytes that are not in pieces yet
	refers bool // to long values
	last   byte
}

// NewPayload returns an Out for a request's body. It refers to long values, which must not change while the payload is used.
func NewPayload() *Out { return &Out{written{refers: true, buf: make([]byte, 0, payloadRoom)}} }

// Begin opens an object.
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

// Raw writes a value, which may be in several pieces, unchanged; null if it is absent.
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

// Literal writes a value, or several members without their braces, unchanged.
func (o *Out) Literal(value string) {
	if value == "" {
		return
	}
	o.value()
	o.buf = append(o.buf, value...)
	o.last = value[len(value)-1]
}

// Text writes a text, "" if it is absent.
func (o *Out) Text(text rawjson.Text) {
	if text == nil {
		text = rawjson.Text(`""`)
	}
	o.Raw(text)
}

// String writes decoded text.
func (o *Out) String(text string) {
	o.value()
	o.buf, _ = jsontext.AppendQuote(o.buf, text) // bytes that are not UTF-8 are replaced
	o.last = '"'
}

// Quoted writes one text of several parts: each is the inside of a text, including escapes.
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

// Object writes a member's name and opens its object.
func (o *Out) Object(name string) { o.Key(name); o.Begin() }

// Array writes a member's name and opens its array.
func (o *Out) Array(name string) { o.Key(name); o.BeginArray() }

// KeyString writes a member with decoded text.
func (o *Out) KeyString(name, text string) { o.Key(name); o.String(text) }

// KeyText writes a member with a text.
func (o *Out) KeyText(name string, text rawjson.Text) { o.Key(name); o.Text(text) }

// KeyQuoted writes a member with one text of several parts.
func (o *Out) KeyQuoted(name string, parts ...[]byte) { o.Key(name); o.Quoted(parts...) }

// KeyRaw writes a member with an unchanged value, null if it is absent; Field omits such a member.
func (o *Out) KeyRaw(name string, pieces ...[]byte) { o.Key(name); o.Raw(pieces...) }

// KeyInt writes a member with a number.
func (o *Out) KeyInt(name string, n int64) { o.Key(name); o.Int(n) }

// Field writes a member with an unchanged value, nothing if the value is absent.
func (o *Out) Field(name string, value []byte) {
	if len(value) > 0 {
		o.KeyRaw(name, value)
	}
}

// Plain writes bytes that are not JSON, such as the frame of an event. The next value needs no comma.
func (o *Out) Plain(text string) {
	o.buf = append(o.buf, text...)
	o.last = 0
}

// value writes a comma before a value or a member if one is required.
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
	o.last = '"' // for any value
}

// cut ends the current piece.
func (o *written) cut() {
	if len(o.buf) > o.from {
		o.pieces = append(o.pieces, o.buf[o.from:len(o.buf):len(o.buf)])
		o.from = len(o.buf)
	}
}

// Payload returns the output in pieces.
func (o *written) Payload() providers.Payload {
	o.cut()
	return o.pieces
}

// Grow reserves memory for n more bytes, so that a document of a known length is not copied while it grows.
func (o *written) Grow(n int) { o.buf = slices.Grow(o.buf, n) }

// Len returns the number of copied bytes so far.
func (o *written) Len() int { return len(o.buf) }

// Bytes returns the output without the long values to which it refers. It is valid until the next write.
func (o *written) Bytes() []byte { return o.buf }

// Reset removes the output. It keeps a buffer of at most keep bytes.
func (o *written) Reset(keep int) {
	if cap(o.buf) > keep {
		o.buf = nil
	}
	o.buf, o.pieces, o.from, o.last = o.buf[:0], nil, 0, 0
}
