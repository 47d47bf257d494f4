package form

import (
	"slices"
	"strconv"
	"strings"

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
		o.JSON("null")
		return
	}
	o.value()
	for _, piece := range pieces[from:] {
		o.bytes(piece)
	}
}

// JSON writes JSON of a shape with a value at each "?" of it. A shape is any part of a document without the comma before it: several
// members, an object that is not closed yet, or the ends of objects. Of the values, a rawjson.Text is written as by Text, other raw JSON as
// by Raw, a string as by String, and a []byte as by Quoted.
func (o *Out) JSON(shape string, values ...any) {
	for _, value := range values {
		before, after, _ := strings.Cut(shape, "?")
		o.literal(before)
		switch v := value.(type) {
		case rawjson.Text:
			o.Text(v)
		case rawjson.Value:
			o.Raw(v)
		case string:
			o.String(v)
		case []byte:
			o.Quoted(v)
		case int64:
			o.Int(v)
		case bool:
			o.literal(strconv.FormatBool(v))
		}
		shape = after
	}
	o.literal(shape)
}

func (o *Out) literal(part string) {
	if part == "" {
		return
	}
	if c := part[0]; c != ',' && c != '}' && c != ']' {
		o.value()
	}
	o.buf = append(o.buf, part...)
	o.last = part[len(part)-1]
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

// Texts writes a member with an array of texts.
func (o *Out) Texts(name string, texts []rawjson.Text) {
	o.Array(name)
	for _, text := range texts {
		o.Text(text)
	}
	o.EndArray()
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

// Event begins a server-sent event whose data is an object that begins with its type, which is also the event's name.
func (o *Out) Event(kind string) {
	o.Plain("event: ")
	o.Plain(kind)
	o.Plain("\ndata: ")
	o.JSON(`{"type":?`, kind)
}

// EndEvent ends the object and the event.
func (o *Out) EndEvent() {
	o.End()
	o.Plain("\n\n")
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
