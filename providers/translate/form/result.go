package form

import (
	"bytes"
	"slices"

	"modelrelay/providers/rawjson"
)

// Say is all that a tool answered as one text, behind "Error: " where it failed and the text does not begin so: for dialects
// whose results can neither fail nor be objects. Media are left out.
func (r *Result) Say() rawjson.Text {
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

// Texts is what a tool answered as one text without its media, and whether it failed. The texts are joined by line ends. Of an
// object it is the text of its member "output" or "result", or of "error", which failed, where that is the only member; JSON
// otherwise.
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

// Media are the media that a result holds but for plain documents, which Texts has.
func (r *Result) Media() []Block {
	var media []Block
	for _, block := range r.Blocks {
		if block.Kind == BlockMedia && block.Media.Kind != PlainText {
			media = append(media, block)
		}
	}
	return media
}
