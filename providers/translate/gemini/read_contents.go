package gemini

import (
	"bytes"
	"encoding/base64"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// contents reads the turns. Consecutive contents of the model are one turn: SDKs keep each piece of a stream as a separate content.
func (r *reading) contents(value rawjson.Value) {
	p := r.p
	for i, content := range r.items(value, form.Path{}.Field(r.prefix+"contents")) {
		turn := form.Turn{At: form.In(r.prefix+"contents", i)}
		var parts rawjson.Value
		for name, value := range content.Members() {
			switch {
			case value.Absent():
			case name.IsCamel("parts"):
				parts = value
			case name.IsCamel("role"):
				switch role := value.Text(); {
				case role.Is("model"):
					turn.Role = form.Assistant
				case role.Is("user"), role.Is("function"), role.Empty():
				default:
					r.Refuse(turn.At.Field("role").String(), "It is user or model.")
				}
			default:
				r.unknown(turn.At.Name()+".", name, value)
			}
		}
		if n := len(p.Turns) - 1; turn.Role == form.Assistant && n >= 0 && p.Turns[n].Role == form.Assistant {
			r.parts(&p.Turns[n], parts, turn.At)
			continue
		}
		r.parts(&turn, parts, turn.At)
		p.Turns = append(p.Turns, turn)
	}
	for i := range p.Turns {
		if p.Turns[i].Role == form.Assistant {
			p.Turns[i].Blocks = arrange(p.Turns[i].Blocks)
		}
		p.Turns[i].Settle()
	}
}

func (r *reading) parts(turn *form.Turn, parts rawjson.Value, at form.Path) {
	for i, part := range r.items(parts, at.Field("parts")) {
		r.part(turn, part, at.Item("parts", i))
	}
}

// part appends the block of one part. Another vendor's state becomes a separate block after it.
func (r *reading) part(turn *form.Turn, part rawjson.Value, at form.Path) {
	block := form.Block{Kind: -1, At: at}
	var signature rawjson.Text
	thought := false
	for name, value := range part.Members() {
		if value.Absent() {
			continue
		}
		switch {
		case name.IsCamel("text"):
			block.Kind, block.Text = form.BlockText, value.Text()
		case name.IsCamel("thought"):
			thought = value.True()
		case name.IsCamel("thoughtSignature"):
			signature = value.Text()
		case name.IsCamel("inlineData"):
			block.Kind, block.Media = form.BlockMedia, r.inline(value, at)
		case name.IsCamel("fileData"):
			block.Kind, block.Media = form.BlockMedia, r.file(value, at)
		case name.IsCamel("functionCall"):
			block.Kind, block.Call = form.BlockCall, r.call(value, at)
			if turn.Role != form.Assistant {
				r.Refuse(at.Field("functionCall").String(), "Functions are called by contents of the role model.")
			}
		case name.IsCamel("functionResponse"):
			block.Kind, block.Result = form.BlockResult, r.result(value, at)
		case name.IsCamel("executableCode"), name.IsCamel("codeExecutionResult"), name.IsCamel("toolCall"), name.IsCamel("toolResponse"):
			r.p.Keep(at.Field(rawjson.Camel(name.String())).String(), value, true)
		case name.IsCamel("videoMetadata"), name.IsCamel("mediaResolution"), name.IsCamel("mediaProcessing"), name.IsCamel("partMetadata"),
			name.IsCamel("speechMetadata"), name.IsCamel("audioTranscription"):
			r.p.Keep(at.Field(rawjson.Camel(name.String())).Name(), value, false)
		default:
			r.unknown(at.Name()+".", name, value)
		}
	}
	if thought && (block.Kind == form.BlockText || block.Kind == -1) {
		block.Kind = form.BlockThought
	}
	foreign := r.sign(&block, signature)
	if len(foreign) > 0 {
		turn.Blocks = append(turn.Blocks, form.Block{Kind: form.BlockState, State: foreign, At: at})
	}
	// A part with only another vendor's state has no block.
	if block.Kind >= 0 && (len(foreign) == 0 || block.Kind == form.BlockCall || !block.Text.Empty()) {
		turn.Blocks = append(turn.Blocks, block)
	}
}

// sign puts Google's own signature on its block, and returns other vendors' state: envelopes separated by spaces, in base64.
func (r *reading) sign(block *form.Block, signature rawjson.Text) (foreign []form.State) {
	if signature.Empty() {
		return nil
	}
	for _, state := range openSignature(signature.Decoded()) {
		if state.Kind == form.StateGemini || state.Kind == form.StateGeminiBefore {
			state.Kind = form.StateGemini
			block.State = append(block.State, state)
			continue
		}
		foreign = append(foreign, state)
	}
	if len(foreign) == 0 && len(block.State) == 0 {
		block.State = []form.State{{Kind: form.StateGemini, Data: signature.Inner()}}
	}
	if block.Kind < 0 && len(block.State) > 0 {
		block.Kind = form.BlockText // of a part with only a signature
	}
	return foreign
}

// SealedPrefix is the beginning of the base64 of every envelope.
const SealedPrefix = "bXIxL"

// openSignature reads the envelopes of a signature, none for Google's own.
func openSignature(signature []byte) (states []form.State) {
	if !bytes.HasPrefix(signature, []byte(SealedPrefix)) {
		return nil
	}
	envelopes, ok := form.DecodeBase64(signature)
	if !ok {
		return nil
	}
	for envelope := range bytes.FieldsSeq(envelopes) {
		if state, ok := form.OpenEnvelope(envelope); ok {
			states = append(states, state)
		}
	}
	return states
}

// seal returns the signature that openSignature reads.
func seal(states []form.State) string {
	envelopes := make([]string, len(states))
	for i, state := range states {
		envelopes[i] = state.Envelope()
	}
	return base64.StdEncoding.EncodeToString([]byte(strings.Join(envelopes, " ")))
}

func (r *reading) call(value rawjson.Value, at form.Path) form.Call {
	call := form.Call{Input: rawjson.Value("{}")}
	for name, value := range value.Members() {
		switch {
		case value.Absent():
		case name.IsCamel("id"):
			call.ID = value.Text().String()
		case name.IsCamel("name"):
			call.Name = value.Text().String()
		case name.IsCamel("args"):
			if value.IsObject() {
				call.Input = value
			}
		default:
			r.p.Keep(at.Field("functionCall."+rawjson.Camel(name.String())).String(), value, true)
		}
	}
	if call.Name == "" {
		r.Refuse(at.Field("functionCall.name").String(), "A call names its function.")
	}
	return call
}

func (r *reading) result(value rawjson.Value, at form.Path) *form.Result {
	result := new(form.Result)
	below := at.Field("functionResponse")
	for name, value := range value.Members() {
		switch {
		case value.Absent():
		case name.IsCamel("id"):
			result.ID = value.Text().String()
			r.ids = r.ids || result.ID != ""
		case name.IsCamel("name"):
			result.Name = value.Text().String()
		case name.IsCamel("response"):
			if value.IsObject() {
				result.Object = value
			} else {
				r.Refuse(below.Field("response").String(), "It is an object.")
			}
		case name.IsCamel("parts"):
			for i, part := range value.Items() {
				at := below.Item("parts", i)
				block := form.Block{Kind: form.BlockMedia, At: at}
				if inline := part.GetCamel("inlineData"); inline != nil {
					block.Media = r.inline(inline, at)
				} else {
					block.Media = r.file(part.GetCamel("fileData"), at)
				}
				result.Blocks = append(result.Blocks, block)
			}
		default:
			r.p.Keep(below.Field(rawjson.Camel(name.String())).Name(), value, false)
		}
	}
	return result
}

func (r *reading) inline(value rawjson.Value, at form.Path) form.Media {
	data := value.GetCamel("data").Text()
	if data == nil {
		r.Refuse(at.Field("inlineData").String(), "It has data.")
	}
	media := form.Inline(value.GetCamel("mimeType").Text().String(), data.Inner())
	if title := value.GetCamel("displayName").Text(); !title.Empty() {
		media.Title = title
	}
	return media
}

// file reads a medium by its address. An address at Google is not valid at another vendor.
func (r *reading) file(value rawjson.Value, at form.Path) form.Media {
	address := value.GetCamel("fileUri").Text()
	if address.Empty() {
		r.Refuse(at.Field("fileData").String(), "It has a fileUri.")
	}
	uri := address.String()
	media := form.Media{Type: value.GetCamel("mimeType").Text().String(), Title: value.GetCamel("displayName").Text()}
	if media.Type == "" {
		media.Type = form.TypeByName(uri)
	}
	if media.Kind = form.KindOf(media.Type); media.Kind == form.PlainText {
		media.Kind = form.Document
	}
	switch {
	case isVideoSite(uri):
		media.Kind, media.File = form.Video, address
	case strings.HasPrefix(uri, "https://generativelanguage.googleapis.com/"), !strings.HasPrefix(uri, "https://") &&
		!strings.HasPrefix(uri, "http://"):
		media.File = address
	default:
		media.URL = address
	}
	return media
}

// isVideoSite reports whether an address is that of a video on the vendor's own video site.
func isVideoSite(uri string) bool {
	_, rest, _ := strings.Cut(uri, "://")
	host, _, _ := strings.Cut(strings.TrimPrefix(rest, "www."), "/")
	return host == "youtube.com" || host == "youtu.be" || host == "m.youtube.com"
}
