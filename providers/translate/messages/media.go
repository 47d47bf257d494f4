package messages

import (
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// medium reads an image or a document. A document of blocks becomes these blocks.
func (r *reader) medium(to []form.Block, block form.Block, kind string, fields rawjson.Object) []form.Block {
	block.Kind = form.BlockMedia
	m := &block.Media
	if m.Kind = form.Image; kind == "document" {
		m.Kind, m.Title = form.Document, fields.Get("title").Text()
	}
	source := fields.Get("source").Object()
	switch source.Get("type").Text().String() {
	case "base64":
		title := m.Title
		*m = form.Inline(source.Get("media_type").Text().String(), source.Get("data").Text().Inner())
		if m.Title = title; kind == "image" {
			m.Kind = form.Image
		}
	case "url":
		if m.URL = source.Get("url").Text(); kind == "document" {
			m.Type = "application/pdf" // the only type of URLPDFSource
		}
	case "file":
		m.File = source.Get("file_id").Text()
	case "text":
		m.Kind, m.Type, m.Text = form.PlainText, "text/plain", source.Get("data").Text()
	case "content":
		return r.documentBlocks(to, block, source.Get("content"))
	default:
		r.invalid(block.At.Field("source.type"), "It must be base64, url, file, text or content.")
	}
	return append(to, block)
}

// documentBlocks reads a document of blocks, with its title before them.
func (r *reader) documentBlocks(to []form.Block, block form.Block, content rawjson.Value) []form.Block {
	if text := content.Text(); text != nil {
		block.Media = form.Media{Kind: form.PlainText, Type: "text/plain", Text: text, Title: block.Media.Title}
		return append(to, block)
	}
	if !block.Media.Title.Empty() {
		to = append(to, form.Block{Kind: form.BlockText, Text: block.Media.Title, At: block.At})
	}
	from := len(to)
	for i, part := range content.Items() {
		if kind := part.Get("type").Text(); !kind.Is("text") && !kind.Is("image") {
			r.invalid(block.At.Item("source.content", i).Field("type"), "It must be text or image.")
			return to
		}
		to = r.block(to, form.User, block.At.Item("source.content", i), part)
	}
	if len(to) > from {
		to[len(to)-1].Cache = max(to[len(to)-1].Cache, block.Cache)
	}
	return to
}

// searchResult reads a result of the client's own search as a document of text: its source, then its content.
func searchResult(fields rawjson.Object) form.Media {
	m := form.Media{Kind: form.PlainText, Type: "text/plain", Title: fields.Get("title").Text()}
	var texts []rawjson.Text
	if source := fields.Get("source").Text(); !source.Empty() {
		texts = append(texts, source)
	}
	m.Text = rawjson.Join("\n", append(texts, form.PartTexts(fields.Get("content"))...)...)
	return m
}

// imageType returns the vendor's word for the type of an image, "" for one that it does not accept. See the type Base64ImageSourceParam.
func imageType(mediaType string) string {
	switch strings.ToLower(mediaType) {
	case "image/jpeg", "image/jpg":
		return "image/jpeg"
	case "image/png", "image/gif", "image/webp":
		return strings.ToLower(mediaType)
	}
	return ""
}

// media writes a medium as a block. The caller ends the block.
func (w *writer) media(m *form.Media, at form.Path) {
	kind := "image"
	switch m.Kind {
	case form.Image:
	case form.Document, form.PlainText:
		kind = "document"
	default:
		w.Fail(form.Refused(at.String(), form.Messages))
	}
	out := w.out
	out.JSON(`{"type":?,"source":{`, kind)
	switch {
	case m.Kind == form.PlainText && m.Text != nil:
		out.JSON(`"type":"text","media_type":"text/plain","data":?`, m.Text)
	case len(m.Data) > 0:
		mediaType := imageType(m.Type)
		if m.Kind != form.Image {
			if mediaType = strings.ToLower(m.Type); mediaType != "application/pdf" {
				mediaType = ""
			}
		}
		if mediaType == "" {
			w.Fail(form.Refusedf(at.String(), form.Messages, "which takes JPEG, PNG, GIF, WebP, PDF and text."))
		}
		out.JSON(`"type":"base64","media_type":?,"data":?`, mediaType, m.Data)
	case isWeb(m.URL):
		out.JSON(`"type":"url","url":?`, m.URL)
	default: // another vendor's file, or an address of another vendor's store
		w.Fail(form.Refused(at.String(), form.Messages))
	}
	out.End()
	if kind == "document" && !m.Title.Empty() {
		out.KeyText("title", m.Title)
	}
}

func isWeb(address rawjson.Text) bool {
	inner := string(address.Inner()[:min(len(address.Inner()), len("https://")+1)])
	return strings.HasPrefix(inner, "https:") || strings.HasPrefix(inner, "http:")
}
