package responses

import "modelrelay/providers/translate/form"

// detail notes the fineness in which a medium is to be seen, which no other dialect has.
func (r *reading) detail(part form.Value, at form.Path) {
	if detail := part.Get("detail"); says(detail) && !detail.Text().Is("auto") {
		r.loss.Drop(at.Field("detail").Name())
	}
}

func readImage(part form.Value) (media form.Media, ok bool) {
	address, file := part.Get("image_url").Text(), part.Get("file_id").Text()
	if mediaType, data, ok := form.ParseDataURL(address); ok {
		return form.Media{Kind: form.Image, Type: mediaType, Data: data}, true
	}
	if !address.Empty() {
		return form.Media{Kind: form.Image, URL: address}, true
	}
	return form.Media{Kind: form.Image, File: file}, !file.Empty()
}

// pdf is the media type of a file that says none.
const pdf = "application/pdf"

func readFile(part form.Value) (media form.Media, ok bool) {
	title := part.Get("filename").Text()
	data, address, file := part.Get("file_data").Text(), part.Get("file_url").Text(), part.Get("file_id").Text()
	switch mediaType, inside, ok := form.ParseDataURL(data); {
	case ok:
		media = form.Inline(mediaType, inside)
	case !data.Empty(): // base64 alone, as some clients send it
		if mediaType = form.TypeByName(title.String()); mediaType == "" {
			mediaType = pdf
		}
		media = form.Inline(mediaType, data.Inner())
	case !address.Empty():
		media = form.Media{Kind: form.Document, URL: address}
		if mediaType = form.TypeByName(address.String()); mediaType != "" {
			media.Kind, media.Type = form.KindOf(mediaType), mediaType
		}
		if media.Kind == form.PlainText {
			media.Kind = form.Document // its text is not given
		}
	case !file.Empty():
		media = form.Media{Kind: form.Document, File: file}
	default:
		return form.Media{}, false
	}
	media.Title = title
	return media, true
}

func readAudio(audio form.Value) (media form.Media, ok bool) {
	data, format := audio.Get("data").Text(), audio.Get("format").Text().String()
	return form.Media{Kind: form.Audio, Type: form.AudioType(format), Data: data.Inner()}, !data.Empty() && format != ""
}
