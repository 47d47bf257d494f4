package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// blocks reads the content of a message: a text, which has the path of its message, or parts.
func (r *reading) blocks(content rawjson.Value, at form.Path) []form.Block {
	if text := content.Text(); text != nil {
		return []form.Block{{Kind: form.BlockText, Text: text, At: at}}
	}
	if !content.IsArray() {
		return nil
	}
	blocks := make([]form.Block, 0, content.Len())
	for i, part := range content.Items() {
		blocks = append(blocks, r.part(part, at.Item("content", i)))
	}
	return blocks
}

func (r *reading) part(value rawjson.Value, at form.Path) form.Block {
	block := form.Block{Kind: form.BlockText, At: at}
	if text := value.Text(); text != nil {
		block.Text = text
		return block
	}
	part := value.Object()
	switch kind := part.Get("type").Text().String(); kind {
	case "text", "refusal":
		block.Text = part.Get(kind).Text()
	case "image_url":
		block.Kind = form.BlockMedia
		block.Media = r.image(part.Get(kind), at)
	case "input_audio":
		block.Kind = form.BlockMedia
		block.Media = r.sound(part.Get(kind), at)
	case "file":
		block.Kind = form.BlockMedia
		block.Media = r.file(part.Get(kind), at)
	default:
		r.Refuse(at.Field("type").String(), "This kind of content cannot be translated for the model's upstream.")
	}
	block.Cache = max(form.MarkOf(part.Get("cache_control")), form.MarkOf(part.Get("prompt_cache_breakpoint")))
	r.loss.DropOthers(at, part, "type", "cache_control", "prompt_cache_breakpoint", part.Get("type").Text().String())
	return block
}

// image reads the address of an image. Some clients send the address instead of its object.
func (r *reading) image(value rawjson.Value, at form.Path) form.Media {
	address := value.Text()
	if value.IsObject() {
		address = value.Get("url").Text()
		if detail := value.Get("detail"); !detail.Absent() && !detail.Text().Is("auto") {
			r.loss.Drop(at.Field("image_url").Field("detail").Name())
		}
	}
	return r.linked(address, form.Image, at.Field("image_url").Field("url"))
}

// linked returns a medium by its address or its data URL.
func (r *reading) linked(address rawjson.Text, kind form.MediaKind, at form.Path) form.Media {
	if address.Blank() {
		r.Refuse(at.String(), "An address or a data URL is needed.")
	}
	if !form.IsDataURL(address) {
		return form.Media{Kind: kind, Type: form.TypeByName(address.String()), URL: address}
	}
	mediaType, data, ok := form.ParseDataURL(address)
	if !ok {
		r.Refuse(at.String(), "This is not a valid data URL.")
	}
	return form.Inline(mediaType, data)
}

func (r *reading) sound(value rawjson.Value, at form.Path) form.Media {
	data, format := value.Get("data").Text(), value.Get("format").Text()
	if data.Empty() || format.Empty() {
		r.Refuse(at.Field("input_audio").String(), "The data and their format are needed.")
	}
	return form.Media{Kind: form.Audio, Type: form.AudioType(format.String()), Data: data.Inner()}
}

func (r *reading) file(value rawjson.Value, at form.Path) form.Media {
	title := value.Get("filename").Text()
	if id := value.Get("file_id").Text(); !id.Empty() {
		return form.Media{Kind: form.Document, File: id, Title: title}
	}
	data := value.Get("file_data").Text()
	if data.Empty() {
		r.Refuse(at.Field("file").String(), "The data of the file or its id are needed.")
	}
	media := form.Inline(form.TypeByName(title.String()), data.Inner())
	if form.IsDataURL(data) {
		media = r.linked(data, form.Document, at.Field("file").Field("file_data"))
	} else if media.Type == "" {
		media.Type = pdf // the vendor's default for such data
	}
	media.Title = title
	return media
}

// pdf is the media type of the documents that this dialect accepts.
const pdf = "application/pdf"
