package translate

import (
	"unicode/utf8"

	"modelrelay/providers/translate/form"
)

// maxCited bounds the text of a block that is kept for its citations, in bytes. Citations of later text are omitted.
const maxCited = 4 << 20

// cited is the text of the answer's current block. base and baseByte are its offset in the whole text of the answer.
type cited struct {
	block          int
	text           []byte
	base, baseByte int
}

// add appends a piece of the text.
func (c *cited) add(e *form.Event) {
	if e.Block != c.block {
		c.base, c.baseByte = c.base+utf8.RuneCount(c.text), c.baseByte+len(c.text)
		c.block, c.text = e.Block, c.text[:0]
	}
	if len(c.text) < maxCited {
		c.text = append(c.text, e.Text.Decoded()...)
	}
}

// resolve completes a citation with its range in characters and in bytes. It reports false if the range is not in the text.
func (c *cited) resolve(e *form.Event) bool {
	at := e.Citation
	if e.Choice != 0 || e.Block != c.block || len(c.text) == 0 || at.URL == "" {
		return false
	}
	switch at.Unit {
	case form.CiteBlock:
		at.From, at.To, at.FromByte, at.ToByte = 0, utf8.RuneCount(c.text), 0, len(c.text)
	case form.CiteBytes:
		at.FromByte, at.ToByte = min(max(at.From, 0), len(c.text)), min(max(at.To, 0), len(c.text))
		at.From, at.To = utf8.RuneCount(c.text[:at.FromByte]), utf8.RuneCount(c.text[:at.ToByte])
	case form.CiteCharacters:
		at.FromByte, at.ToByte = byteOf(c.text, at.From), byteOf(c.text, at.To)
	}
	if at.FromByte > at.ToByte {
		return false
	}
	at.Base, at.BaseByte, at.Text = c.base, c.baseByte, string(c.text[at.FromByte:at.ToByte])
	return true
}

// byteOf returns the offset in bytes of a character of a text.
func byteOf(text []byte, character int) int {
	at := 0
	for ; character > 0 && at < len(text); character-- {
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
	return at
}
