package form

import (
	"bytes"
	"slices"

	"modelrelay/providers/rawjson"
)

// TextWithError returns the answer of a tool as one text without its media, for dialects whose results can neither fail nor be objects. The
// text of a failure begins with "Error: ".
func (r *Result) TextWithError() rawjson.Text {
	text, failed := r.Texts()
	if !failed || hasErrorPrefix(text) {
		return text
	}
	return rawjson.Wrap([]byte("Error: "), text.Inner())
}

func hasErrorPrefix(text rawjson.Text) bool {
	inner := bytes.TrimSpace(text.Inner())
	return len(inner) >= 5 && bytes.EqualFold(inner[:5], []byte("error"))
}

// Texts returns the answer of a tool as one text without its media, and whether it failed. It joins texts by line ends. For an object whose
// only member is "output", "result" or "error", it returns the text of that member, and "error" is a failure; for any other object, JSON.
func (r *Result) Texts() (text rawjson.Text, failed bool) {
	if !r.Object.Absent() {
		return r.object()
	}
	var texts []rawjson.Text
	for _, block := range r.Blocks {
		switch {
		case block.Kind == BlockText && !block.Text.Blank():
			texts = append(texts, block.Text)
		case block.Kind == BlockMedia && block.Media.Kind == PlainText:
			texts = append(texts, block.Media.Plain())
		}
	}
	if texts == nil {
		return rawjson.Text(`""`), r.Failed
	}
	return rawjson.Join("\n", texts...), r.Failed
}

func (r *Result) object() (text rawjson.Text, failed bool) {
	var names int
	var only rawjson.Text
	var value rawjson.Value
	for name, member := range r.Object.Members() {
		names++
		only, value = name, member
	}
	failed = r.Failed
	if names == 1 && slices.ContainsFunc([]string{"output", "result", "error"}, only.Is) {
		failed = failed || only.Is("error")
		if text := value.Text(); text != nil {
			return text, failed
		}
		return rawjson.Quote(string(value)), failed
	}
	return rawjson.Quote(string(r.Object)), failed
}

// Media returns the media of a result, except plain documents, which are in Texts.
func (r *Result) Media() []Block {
	var media []Block
	for _, block := range r.Blocks {
		if block.Kind == BlockMedia && block.Media.Kind != PlainText {
			media = append(media, block)
		}
	}
	return media
}
