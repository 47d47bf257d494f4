package chat

import (
	"bytes"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// blocks reads the content of a message: a text, which has the path of its message, or parts.
func (r *reading) blocks(content rawjson.Value, at form.Path) ([]form.Block, *providers.Fault) {
	if text := content.Text(); text != nil {
		return []form.Block{{Kind: form.BlockText, Text: text, At: at}}, nil
	}
	if !content.IsArray() {
		return nil, nil
	}
	blocks := make([]form.Block, 0, content.Len())
	for i, part := range content.Items() {
		block, fault := r.part(part, at.Item("content", i))
		if fault != nil {
			return nil, fault
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

func (r *reading) part(part rawjson.Value, at form.Path) (form.Block, *providers.Fault) {
	block := form.Block{Kind: form.BlockText, At: at}
	if text := part.Text(); text != nil {
		block.Text = text
		return block, nil
	}
	kind := part.Get("type").Text()
	var fault *providers.Fault
	switch {
	case kind.Is("text"):
		block.Text = part.Get("text").Text()
	case kind.Is("refusal"):
		block.Text = part.Get("refusal").Text()
	case kind.Is("image_url"):
		block.Kind = form.BlockMedia
		block.Media, fault = r.image(part.Get("image_url"), at)
	case kind.Is("input_audio"):
		block.Kind = form.BlockMedia
		block.Media, fault = sound(part.Get("input_audio"), at)
	case kind.Is("file"):
		block.Kind = form.BlockMedia
		block.Media, fault = file(part.Get("file"), at)
	default:
		return block, providers.InvalidField(at.Field("type").String(), "This kind of content cannot be translated for the model's upstream.")
	}
	for name, value := range part.Members() {
		switch {
		case name.Is("cache_control"), name.Is("prompt_cache_breakpoint"):
			block.Cache = max(block.Cache, mark(value))
		case !name.Is("type") && !bytes.Equal(name.Decoded(), kind.Decoded()):
			dropUnknown(r.loss, at, name, value)
		}
	}
	return block, fault
}

// image reads the address of an image, which some clients put in place of the object that holds it.
func (r *reading) image(value rawjson.Value, at form.Path) (form.Media, *providers.Fault) {
	address := value.Text()
	if value.IsObject() {
		address = value.Get("url").Text()
		if detail := value.Get("detail"); !detail.Absent() && !detail.Text().Is("auto") {
			r.loss.Drop(at.Field("image_url").Field("detail").Name())
		}
	}
	return linked(address, form.Image, at.Field("image_url").Field("url"))
}

// linked is a medium by its address or its data URL.
func linked(address rawjson.Text, kind form.MediaKind, at form.Path) (form.Media, *providers.Fault) {
	if address.Blank() {
		return form.Media{}, providers.InvalidField(at.String(), "An address or a data URL is needed.")
	}
	if !form.IsDataURL(address) {
		return form.Media{Kind: kind, Type: form.TypeByName(address.String()), URL: address}, nil
	}
	mediaType, data, ok := form.ParseDataURL(address)
	if !ok {
		return form.Media{}, providers.InvalidField(at.String(), "This is no valid data URL.")
	}
	return form.Inline(mediaType, data), nil
}

func sound(value rawjson.Value, at form.Path) (form.Media, *providers.Fault) {
	data, format := value.Get("data").Text(), value.Get("format").Text()
	if data.Empty() || format.Empty() {
		return form.Media{}, providers.InvalidField(at.Field("input_audio").String(), "The data and their format are needed.")
	}
	return form.Media{Kind: form.Audio, Type: form.AudioType(format.String()), Data: data.Inner()}, nil
}

func file(value rawjson.Value, at form.Path) (form.Media, *providers.Fault) {
	title := value.Get("filename").Text()
	if id := value.Get("file_id").Text(); !id.Empty() {
		return form.Media{Kind: form.Document, File: id, Title: title}, nil
	}
	data := value.Get("file_data").Text()
	if data.Empty() {
		return form.Media{}, providers.InvalidField(at.Field("file").String(), "The data of the file or its id are needed.")
	}
	media := form.Inline(form.TypeByName(title.String()), data.Inner())
	if form.IsDataURL(data) {
		var fault *providers.Fault
		if media, fault = linked(data, form.Document, at.Field("file").Field("file_data")); fault != nil {
			return media, fault
		}
	} else if media.Type == "" {
		media.Type = pdf // what the vendor takes such data for
	}
	media.Title = title
	return media, nil
}

// pdf is the media type of the documents that this dialect takes.
const pdf = "application/pdf"
