package responses

import (
	"modelrelay/providers/translate/form"
)

// part writes a block as a part of a message or of a result. This dialect accepts no sound: see ResponseInputContent of openai-node 7.55.
func (w *writing) part(block *form.Block) {
	media := &block.Media
	ownFile := media.File != nil && w.From.SameVendor(form.Responses)
	switch {
	case block.Kind == form.BlockText:
		w.JSON(`{"type":"input_text","text":?`, block.Text)
	case block.Kind != form.BlockMedia:
		w.Fail(form.Refused(block.At.String(), form.Responses))
		return
	case media.Kind == form.PlainText && media.Text != nil:
		w.JSON(`{"type":"input_text","text":?`, media.Plain())
	case media.Kind == form.Image && (ownFile || media.URL != nil || media.Data != nil):
		w.JSON(`{"type":"input_image"`)
		w.source(media, "image_url", "image_url")
	case media.Kind == form.Document && (ownFile || media.URL != nil || media.Data != nil):
		w.JSON(`{"type":"input_file"`)
		w.source(media, "file_url", "file_data")
	default:
		w.Fail(form.Refused(block.At.String(), form.Responses))
		return
	}
	if block.Cache != form.NoMark && w.to.Breakpoints {
		w.JSON(`"prompt_cache_breakpoint":{"mode":"explicit"}`)
	} else {
		w.DropMark(block.Cache, block.At, w.loss)
	}
	w.End()
}

// source writes the source of a medium under the member name of an address or of inline data.
func (w *writing) source(media *form.Media, address, inline string) {
	switch {
	case media.File != nil:
		w.Field("file_id", media.File)
	case media.URL != nil:
		w.Field(address, media.URL)
	default:
		if media.Kind == form.Document {
			w.KeyText("filename", media.FileName())
		}
		w.Key(inline)
		w.DataURL(*media)
	}
}
