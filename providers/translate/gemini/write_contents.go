package gemini

import (
	"cmp"
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// StandIn is the signature of a call that has none, for models that require one: the vendor checks the calls since the user's last text.
// See https://ai.google.dev/gemini-api/docs/thought-signatures.
const StandIn = "skip_thought_signature_validator"

// turn writes a content. If the vendor checks the turn, its first call has a signature.
func (w *writing) turn(turn *form.Turn, checked bool) {
	role := "user"
	if turn.Role == form.Assistant {
		role = "model"
	}
	w.out.JSON(`{"role":?,"parts":[`, role)
	first := true
	for i := range turn.Blocks {
		block := &turn.Blocks[i]
		if i > 0 && block.Kind != form.BlockResult && turn.Blocks[i-1].Kind == form.BlockResult {
			w.apart(turn.Blocks[:i])
		}
		w.p.DropMarks(block, w.loss)
		switch block.Kind {
		case form.BlockText, form.BlockThought:
			w.say(block)
		case form.BlockMedia:
			w.media(block)
		case form.BlockCall:
			w.call(block, first && checked && turn.Role == form.Assistant && w.to.Traits.Gemini.Level)
			first = false
		case form.BlockResult:
			w.result(block)
		case form.BlockState: // there is none
		}
	}
	if n := len(turn.Blocks); n > 0 && turn.Blocks[n-1].Kind == form.BlockResult {
		w.apart(turn.Blocks)
	}
	w.out.JSON("]}")
}

// apart writes the media that cannot be in their results, after all results.
func (w *writing) apart(results []form.Block) {
	for i := range results {
		for _, medium := range results[i].Result.Media() {
			if !w.inResult(&medium) {
				w.media(&medium)
			}
		}
	}
}

// say writes a text, or a thought of this vendor.
func (w *writing) say(block *form.Block) {
	w.out.JSON(`{"text":?`, block.Text)
	if block.Kind == form.BlockThought {
		w.out.JSON(`"thought":true`)
	}
	w.signature(block, false)
	w.out.End()
}

// signature writes this vendor's state of a block, or its replacement.
func (w *writing) signature(block *form.Block, must bool) {
	at := slices.IndexFunc(block.State, func(s form.State) bool { return s.Kind == form.StateGemini })
	if at < 0 && !must {
		return
	}
	w.out.Key("thoughtSignature")
	if at < 0 {
		w.out.String(StandIn)
		return
	}
	w.out.Quoted(block.State[at].Data)
}

func (w *writing) call(block *form.Block, signed bool) {
	w.out.JSON(`{"functionCall":{`)
	w.id(block.Call.ID)
	input := block.Call.Input
	if !input.IsObject() {
		input = rawjson.Value("{}")
	}
	w.out.JSON(`"name":?,"args":?}`, w.p.ToolName(block.Call.Name, nameRule()), input)
	w.signature(block, signed)
	w.out.End()
}

func (w *writing) id(id string) {
	if id != "" {
		w.out.KeyString("id", id)
	}
}

func (w *writing) result(block *form.Block) {
	r := block.Result
	w.out.JSON(`{"functionResponse":{`)
	w.id(r.ID)
	w.out.JSON(`"name":?,"response":`, w.p.ToolName(r.Name, nameRule()))
	if r.Object.IsObject() && !r.Failed {
		w.out.Raw(r.Object)
	} else if text, failed := r.Texts(); failed {
		w.out.JSON(`{"error":?}`, text)
	} else {
		w.out.JSON(`{"output":?}`, text)
	}
	first := true
	for _, medium := range r.Media() {
		if !w.inResult(&medium) {
			continue
		}
		if first {
			w.out.Array("parts")
			first = false
		}
		w.media(&medium)
	}
	if !first {
		w.out.EndArray()
	}
	w.out.JSON("}}")
}

// inResult reports whether a medium may be in its result: images and documents within the request, for models that accept them there. See
// https://ai.google.dev/gemini-api/docs/function-calling, multimodal function responses.
func (w *writing) inResult(block *form.Block) bool {
	return w.to.Traits.Gemini.Level && len(block.Media.Data) > 0 && (block.Media.Kind == form.Image || block.Media.Kind == form.Document)
}

func (w *writing) media(block *form.Block) {
	m := &block.Media
	switch {
	case m.Kind == form.PlainText && m.Text != nil:
		w.text(m.Plain())
	case len(m.Data) > 0:
		w.out.JSON(`{"inlineData":{"mimeType":?,"data":?}}`, m.Type, m.Data)
	case !m.File.Empty() && w.p.From == form.Gemini:
		w.file(m.Type, m.File)
	case !m.URL.Empty():
		if !w.to.Traits.Gemini.URLs {
			w.Fail(form.Refusedf(block.At.String(), form.Gemini, "and this model does not accept media by URL."))
		}
		w.file(typeAt(m), m.URL)
	default:
		w.Fail(form.Refused(block.At.String(), form.Gemini))
	}
}

func (w *writing) file(mediaType string, uri rawjson.Text) {
	w.out.JSON(`{"fileData":{`)
	if mediaType != "" {
		w.out.KeyString("mimeType", mediaType)
	}
	w.out.JSON(`"fileUri":?}}`, uri)
}

// typeAt returns the media type of an address: its own, that of its name, or the usual one of its kind.
func typeAt(m *form.Media) string {
	usual := [...]string{
		form.Image: "image/jpeg", form.Document: "application/pdf", form.PlainText: "text/plain", form.Audio: "audio/mpeg",
		form.Video: "video/mp4",
	}
	return cmp.Or(m.Type, form.TypeByName(m.URL.String()), usual[m.Kind])
}
