package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// parts writes texts as a list of parts.
func (w *writing) parts(texts []form.Block) {
	w.BeginArray()
	for i := range texts {
		w.text(texts[i].Text)
		w.breakpoint(&texts[i])
	}
	w.EndArray()
}

// text begins a part of text, which breakpoint ends.
func (w *writing) text(text rawjson.Text) {
	w.Begin()
	w.Literal(`"type":"text"`)
	w.KeyText("text", text)
}

// breakpoint ends a part, with a cache breakpoint where one is wanted.
func (w *writing) breakpoint(block *form.Block) {
	if block.Cache != form.NoMark && w.to.Breakpoints {
		w.Literal(`"prompt_cache_breakpoint":{"mode":"explicit"}`)
	}
	w.End()
}

// part writes a block as a part of a content.
func (w *writing) part(block *form.Block) {
	media := &block.Media
	switch {
	case block.Kind == form.BlockText:
		w.text(block.Text)
	case block.Kind != form.BlockMedia:
		w.Fail(form.Refused(block.At.String(), form.Chat))
		return
	case media.Kind == form.PlainText && media.Text != nil:
		w.text(media.Plain())
	case media.Kind == form.Image && (media.URL != nil || media.Data != nil):
		w.Begin()
		w.Literal(`"type":"image_url"`)
		w.Object("image_url")
		w.Key("url")
		if media.URL != nil {
			w.Text(media.URL)
		} else {
			w.DataURL(*media)
		}
		w.End()
	case media.Kind == form.Audio && media.Data != nil && form.AudioFormat(media.Type) != "":
		w.Begin()
		w.Literal(`"type":"input_audio"`)
		w.Object("input_audio")
		w.KeyQuoted("data", media.Data)
		w.KeyString("format", form.AudioFormat(media.Type))
		w.End()
	case media.Kind == form.Document && (media.File != nil && w.From.SameVendor(form.Chat) || media.Data != nil && media.Type == pdf):
		w.file(media)
	default:
		w.Fail(form.Refused(block.At.String(), form.Chat))
		return
	}
	w.breakpoint(block)
}

// file begins a part with a document.
func (w *writing) file(media *form.Media) {
	w.Begin()
	w.Literal(`"type":"file"`)
	w.Object("file")
	if media.File != nil {
		w.Field("file_id", media.File)
	} else {
		w.Key("filename") // the vendor wants one
		if media.Title.Empty() {
			w.String("file.pdf")
		} else {
			w.Text(media.Title)
		}
		w.Key("file_data")
		w.DataURL(*media)
	}
	w.End()
}
