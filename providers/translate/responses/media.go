package responses

import (
	"cmp"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// readPart reads a part of a message or of a result. It reports false for one that other vendors refuse.
func (r *reading) readPart(value rawjson.Value, at form.Path) (block form.Block, ok bool) {
	part := value.Object()
	r.loss.DropOthers(at, part, "type", "text", "refusal", "detail", "image_url", "file_id", "file_data", "file_url", "filename",
		"input_audio", "prompt_cache_breakpoint", "annotations", "logprobs") // the last two are of an earlier answer
	block, ok = form.Block{Kind: form.BlockMedia, At: at, Cache: form.MarkOf(part.Get("prompt_cache_breakpoint"))}, true
	switch kind := part.Get("type").Text().String(); kind {
	case "input_text", "output_text", "text":
		block.Kind, block.Text = form.BlockText, part.Get("text").Text()
	case "refusal":
		block.Kind, block.Text = form.BlockText, part.Get("refusal").Text()
	case "input_image":
		block.Media, ok = readImage(part)
	case "input_file":
		block.Media, ok = readFile(part)
	case "input_audio":
		block.Media, ok = readAudio(part.Get("input_audio"))
	default:
		r.must(at.Field("type").String())
		return block, false
	}
	if detail := part.Get("detail").Text(); !detail.Empty() && !detail.Is("auto") { // no other dialect has it
		r.loss.Drop(at.Field("detail").Name())
	}
	if !ok {
		r.Refuse(at.String(), "The part has neither data nor an address nor a file's id.")
	}
	return block, ok
}

func readImage(part rawjson.Object) (media form.Media, ok bool) {
	address, file := part.Get("image_url").Text(), part.Get("file_id").Text()
	if mediaType, data, ok := form.ParseDataURL(address); ok {
		return form.Media{Kind: form.Image, Type: mediaType, Data: data}, true
	}
	if !address.Empty() {
		return form.Media{Kind: form.Image, URL: address}, true
	}
	return form.Media{Kind: form.Image, File: file}, !file.Empty()
}

// pdf is the media type of a file without one.
const pdf = "application/pdf"

func readFile(part rawjson.Object) (media form.Media, ok bool) {
	data, address, file := part.Get("file_data").Text(), part.Get("file_url").Text(), part.Get("file_id").Text()
	name := part.Get("filename").Text()
	switch mediaType, inside, ok := form.ParseDataURL(data); {
	case ok:
		media = form.Inline(mediaType, inside)
	case !data.Empty(): // only base64, as some clients send it
		media = form.Inline(cmp.Or(form.TypeByName(name.String()), pdf), data.Inner())
	case !address.Empty():
		media = form.Media{Kind: form.Document, URL: address}
		if mediaType = form.TypeByName(address.String()); mediaType != "" {
			media.Kind, media.Type = form.KindOf(mediaType), mediaType
		}
		if media.Kind == form.PlainText {
			media.Kind = form.Document // its text is unknown
		}
	case !file.Empty():
		media = form.Media{Kind: form.Document, File: file}
	default:
		return form.Media{}, false
	}
	media.Title = name
	return media, true
}

func readAudio(audio rawjson.Value) (media form.Media, ok bool) {
	data, format := audio.Get("data").Text(), audio.Get("format").Text().String()
	return form.Media{Kind: form.Audio, Type: form.AudioType(format), Data: data.Inner()}, !data.Empty() && format != ""
}
