package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

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
	w.Typed("text")
	w.KeyText("text", text)
}

// breakpoint ends a part, with a cache breakpoint if the block requests one.
func (w *writing) breakpoint(block *form.Block) {
	if block.Cache != form.NoMark && w.to.Breakpoints {
		w.Literal(`"prompt_cache_breakpoint":{"mode":"explicit"}`)
	}
	w.End()
}

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
		w.Typed("image_url")
		w.Object("image_url")
		w.Key("url")
		if media.URL != nil {
			w.Text(media.URL)
		} else {
			w.DataURL(*media)
		}
		w.End()
	case media.Kind == form.Audio && media.Data != nil && form.AudioFormat(media.Type) != "":
		w.Typed("input_audio")
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
	w.Typed("file")
	w.Object("file")
	if media.File != nil {
		w.Field("file_id", media.File)
	} else {
		w.KeyText("filename", media.FileName())
		w.Key("file_data")
		w.DataURL(*media)
	}
	w.End()
}
