package chat

import "modelrelay/providers/translate/form"

func (w *writing) parts(blocks []form.Block) {
	w.BeginArray()
	for i := range blocks {
		w.part(&blocks[i])
	}
	w.EndArray()
}

// textPart begins a part with a text.
const textPart = `{"type":"text","text":?`

func (w *writing) part(block *form.Block) {
	media := &block.Media
	switch {
	case block.Kind == form.BlockText:
		w.JSON(textPart, block.Text)
	case block.Kind != form.BlockMedia:
		w.Fail(form.Refused(block.At.String(), form.Chat))
		return
	case media.Kind == form.PlainText && media.Text != nil:
		w.JSON(textPart, media.Plain())
	case media.Kind == form.Image && media.URL != nil:
		w.JSON(`{"type":"image_url","image_url":{"url":?}`, media.URL)
	case media.Kind == form.Image && media.Data != nil:
		w.JSON(`{"type":"image_url","image_url":{"url":`)
		w.DataURL(*media)
		w.End()
	case media.Kind == form.Audio && media.Data != nil && form.AudioFormat(media.Type) != "":
		w.JSON(`{"type":"input_audio","input_audio":{"data":?,"format":?}`, media.Data, form.AudioFormat(media.Type))
	case media.Kind == form.Document && media.File != nil && w.From.SameVendor(form.Chat):
		w.JSON(`{"type":"file","file":{"file_id":?}`, media.File)
	case media.Kind == form.Document && media.Data != nil && media.Type == pdf:
		w.JSON(`{"type":"file","file":{"filename":?,"file_data":`, media.FileName())
		w.DataURL(*media)
		w.End()
	default:
		w.Fail(form.Refused(block.At.String(), form.Chat))
		return
	}
	if block.Cache != form.NoMark && w.to.Breakpoints {
		w.JSON(`"prompt_cache_breakpoint":{"mode":"explicit"}`)
	}
	w.End()
}
