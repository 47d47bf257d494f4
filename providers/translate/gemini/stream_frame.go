package gemini

import (
	"cmp"
	"slices"

	"modelrelay/providers/translate/form"
)

// begin writes the beginning of a piece of a stream up to the parts of its candidate. finish ends the piece.
func (w *writer) begin() {
	switch {
	case !w.ask.Array:
		w.Out.Plain("data: ")
	case w.begun:
		w.Out.Plain(",\r\n")
	default:
		w.Out.Plain("[")
	}
	w.begun = true
	w.Out.JSON(`{"candidates":[` + opensCandidate)
}

func (w *writer) finish(a *answer) {
	w.closeCandidate(a)
	w.Out.EndArray()
	w.tail()
	w.Out.End()
	if !w.ask.Array {
		w.Out.Plain("\r\n\r\n")
	}
}

// opensCandidate is the beginning of a candidate up to its parts. closeCandidate ends it.
const opensCandidate = `{"content":{"parts":[`

func (w *writer) closeCandidate(a *answer) {
	w.Out.JSON(`],"role":"model"}`)
	if a.reason != "" {
		w.Out.KeyString("finishReason", a.reason)
		w.grounding(&a.ground)
	}
	w.Out.KeyInt("index", int64(a.index))
	w.Out.End()
}

// grounding writes the search, if there was one. Ranges are in bytes of the text.
func (w *writer) grounding(g *ground) {
	if len(g.queries) == 0 && len(g.supports) == 0 {
		return
	}
	out := &w.Out
	out.JSON(`"groundingMetadata":{"webSearchQueries":[`)
	for _, query := range g.queries {
		out.String(query)
	}
	out.EndArray()
	var supports form.Out
	for i := range g.supports {
		s := &g.supports[i]
		supports.JSON(`{"segment":{"startIndex":?,"endIndex":?,"text":?},"groundingChunkIndices":[?]}`,
			int64(s.BaseByte+s.FromByte), int64(s.BaseByte+s.ToByte), s.Text, int64(g.page(s.Source)))
	}
	out.Array("groundingChunks")
	for _, page := range g.pages {
		out.JSON(`{"web":{"uri":?,"title":?}}`, page.URL, cmp.Or(page.Title, page.URL))
	}
	out.EndArray()
	out.KeyRaw("groundingSupports", []byte("["), supports.Bytes(), []byte("]"))
	out.End()
}

// tail writes the members of every piece next to its candidates.
func (w *writer) tail() {
	if w.counted {
		w.usage()
	}
	w.Out.JSON(`"modelVersion":?,"responseId":?`, w.ask.Model, w.id)
}

// usage writes the counts. The candidates' tokens do not include those of thoughts.
func (w *writer) usage() {
	c := &w.counts
	w.Out.JSON(`"usageMetadata":{"promptTokenCount":?,"candidatesTokenCount":?,"totalTokenCount":?`,
		c.Input, c.Output-c.Reasoning, c.Input+c.Output)
	if c.Read > 0 {
		w.Out.KeyInt("cachedContentTokenCount", c.Read)
	}
	if c.Reasoning > 0 {
		w.Out.KeyInt("thoughtsTokenCount", c.Reasoning)
	}
	w.sound("promptTokensDetails", c.AudioIn)
	w.sound("candidatesTokensDetails", c.AudioOut)
	w.Out.End()
}

// sound writes the number of audio tokens, if any.
func (w *writer) sound(name string, tokens int64) {
	if tokens > 0 {
		w.Out.JSON(`"`+name+`":[{"modality":"AUDIO","tokenCount":?}]`, tokens)
	}
}

// end writes the end of an array, or a whole document.
func (w *writer) end() {
	w.over = true
	switch {
	case w.ask.Stream && !w.ask.Array:
		return
	case w.ask.Stream && w.begun:
		w.Out.Plain("]")
		return
	case w.ask.Stream:
		w.Out.Plain("[]")
		return
	}
	room := form.DocumentRoom
	for _, a := range w.answers {
		room += a.parts.Len()
	}
	w.Out.Grow(room)
	w.Out.Begin()
	w.Out.Array("candidates")
	slices.SortFunc(w.answers, func(a, b *answer) int { return a.index - b.index })
	for _, a := range w.answers {
		w.Out.JSON(opensCandidate)
		if parts := a.parts.Bytes(); len(parts) > 0 {
			w.Out.Raw(parts)
		} else {
			w.Out.JSON(`{"text":""}`)
		}
		w.closeCandidate(a)
	}
	w.Out.EndArray()
	w.tail()
	w.Out.End()
}
