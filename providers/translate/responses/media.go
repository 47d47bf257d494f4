package responses

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// inputPart has the members of a part, read in one pass because a part may be long.
type inputPart struct {
	kind, text, refusal, detail      rawjson.Text
	image, file, data, address, name rawjson.Text
	audio, breakpoint                rawjson.Value
}

func (r *reading) partOf(value rawjson.Value, at form.Path) inputPart {
	var part inputPart
	for name, value := range value.Members() {
		switch string(name.Inner()) {
		case "type":
			part.kind = value.Text()
		case "text":
			part.text = value.Text()
		case "refusal":
			part.refusal = value.Text()
		case "detail":
			part.detail = value.Text()
		case "image_url":
			part.image = value.Text()
		case "file_id":
			part.file = value.Text()
		case "file_data":
			part.data = value.Text()
		case "file_url":
			part.address = value.Text()
		case "filename":
			part.name = value.Text()
		case "input_audio":
			part.audio = value
		case "prompt_cache_breakpoint":
			part.breakpoint = value
		case "annotations", "logprobs": // of an earlier answer
		default:
			r.loss.DropUnknown(at.Field(name.String()).Name(), value)
		}
	}
	return part
}

// readPart reads a part of a message or of a result. It reports false for one that other vendors refuse.
func (r *reading) readPart(value rawjson.Value, at form.Path) (block form.Block, ok bool) {
	part := r.partOf(value, at)
	block, ok = form.Block{Kind: form.BlockMedia, At: at, Cache: form.MarkOf(part.breakpoint)}, true
	switch kind := part.kind; {
	case kind.Is("input_text"), kind.Is("output_text"), kind.Is("text"):
		block.Kind, block.Text = form.BlockText, part.text
	case kind.Is("refusal"):
		block.Kind, block.Text = form.BlockText, part.refusal
	case kind.Is("input_image"):
		block.Media, ok = readImage(&part)
	case kind.Is("input_file"):
		block.Media, ok = readFile(&part)
	case kind.Is("input_audio"):
		block.Media, ok = readAudio(part.audio)
	default:
		r.must(at.Field("type").String())
		return block, false
	}
	if !part.detail.Empty() && !part.detail.Is("auto") { // no other dialect has it
		r.loss.Drop(at.Field("detail").Name())
	}
	if !ok {
		r.Refuse(at.String(), "The part has neither data nor an address nor a file's id.")
	}
	return block, ok
}

func readImage(part *inputPart) (media form.Media, ok bool) {
	if mediaType, data, ok := form.ParseDataURL(part.image); ok {
		return form.Media{Kind: form.Image, Type: mediaType, Data: data}, true
	}
	if !part.image.Empty() {
		return form.Media{Kind: form.Image, URL: part.image}, true
	}
	return form.Media{Kind: form.Image, File: part.file}, !part.file.Empty()
}

// pdf is the media type of a file without one.
const pdf = "application/pdf"

func readFile(part *inputPart) (media form.Media, ok bool) {
	switch mediaType, inside, ok := form.ParseDataURL(part.data); {
	case ok:
		media = form.Inline(mediaType, inside)
	case !part.data.Empty(): // only base64, as some clients send it
		if mediaType = form.TypeByName(part.name.String()); mediaType == "" {
			mediaType = pdf
		}
		media = form.Inline(mediaType, part.data.Inner())
	case !part.address.Empty():
		media = form.Media{Kind: form.Document, URL: part.address}
		if mediaType = form.TypeByName(part.address.String()); mediaType != "" {
			media.Kind, media.Type = form.KindOf(mediaType), mediaType
		}
		if media.Kind == form.PlainText {
			media.Kind = form.Document // its text is unknown
		}
	case !part.file.Empty():
		media = form.Media{Kind: form.Document, File: part.file}
	default:
		return form.Media{}, false
	}
	media.Title = part.name
	return media, true
}

func readAudio(audio rawjson.Value) (media form.Media, ok bool) {
	data, format := audio.Get("data").Text(), audio.Get("format").Text().String()
	return form.Media{Kind: form.Audio, Type: form.AudioType(format), Data: data.Inner()}, !data.Empty() && format != ""
}
