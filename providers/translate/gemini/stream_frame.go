package gemini

import (
	"cmp"
	"slices"

	"modelrelay/providers/translate/form"
)

// begin begins a piece of a stream up to the parts of its candidate, finish ends it.
func (w *writer) begin() {
	switch {
	case !w.ask.Array:
		w.out.Plain("data: ")
	case w.begun:
		w.out.Plain(",\r\n")
	default:
		w.out.Plain("[")
	}
	w.begun = true
	w.out.Begin()
	w.out.Array("candidates")
	w.openCandidate()
}

func (w *writer) finish(a *answer) {
	w.closeCandidate(a)
	w.out.EndArray()
	w.tail()
	w.out.End()
	if !w.ask.Array {
		w.out.Plain("\r\n\r\n")
	}
}

// openCandidate begins a candidate up to its parts, closeCandidate ends it.
func (w *writer) openCandidate() {
	w.out.Begin()
	w.out.Object("content")
	w.out.Array("parts")
}

func (w *writer) closeCandidate(a *answer) {
	w.out.EndArray()
	w.out.Literal(`"role":"model"`)
	w.out.End()
	if a.reason != "" {
		w.out.KeyString("finishReason", a.reason)
		w.grounding(&a.ground)
	}
	w.out.KeyInt("index", int64(a.index))
	w.out.End()
}

// grounding writes the search, if there was one. Ranges are in bytes of the text.
func (w *writer) grounding(g *ground) {
	if len(g.queries) == 0 && len(g.supports) == 0 {
		return
	}
	out := &w.out
	out.Object("groundingMetadata")
	out.Array("webSearchQueries")
	for _, query := range g.queries {
		out.String(query)
	}
	out.EndArray()
	var supports form.Out
	for i := range g.supports {
		s := &g.supports[i]
		supports.Begin()
		supports.Object("segment")
		supports.KeyInt("startIndex", int64(s.BaseByte+s.FromByte))
		supports.KeyInt("endIndex", int64(s.BaseByte+s.ToByte))
		supports.KeyString("text", s.Text)
		supports.End()
		supports.Array("groundingChunkIndices")
		supports.Int(int64(g.page(s.Source)))
		supports.EndArray()
		supports.End()
	}
	out.Array("groundingChunks")
	for _, page := range g.pages {
		out.Begin()
		out.Object("web")
		out.KeyString("uri", page.URL)
		out.KeyString("title", cmp.Or(page.Title, page.URL))
		out.End()
		out.End()
	}
	out.EndArray()
	out.KeyRaw("groundingSupports", []byte("["), supports.Bytes(), []byte("]"))
	out.End()
}

// tail writes what every piece has next to its candidates.
func (w *writer) tail() {
	if w.counted {
		w.usage()
	}
	w.out.KeyString("modelVersion", w.ask.Model)
	w.out.KeyString("responseId", w.id)
}

// usage writes the counts. What was thought is not among the candidates' tokens.
func (w *writer) usage() {
	c := &w.counts
	w.out.Object("usageMetadata")
	number := func(name string, n int64) {
		w.out.KeyInt(name, n)
	}
	number("promptTokenCount", c.Input)
	number("candidatesTokenCount", c.Output-c.Reasoning)
	number("totalTokenCount", c.Input+c.Output)
	if c.Read > 0 {
		number("cachedContentTokenCount", c.Read)
	}
	if c.Reasoning > 0 {
		number("thoughtsTokenCount", c.Reasoning)
	}
	w.sound("promptTokensDetails", c.AudioIn)
	w.sound("candidatesTokensDetails", c.AudioOut)
	w.out.End()
}

// sound writes how many of the tokens were sound, if any.
func (w *writer) sound(name string, tokens int64) {
	if tokens > 0 {
		w.out.Array(name)
		w.out.Begin()
		w.out.Literal(`"modality":"AUDIO"`)
		w.out.KeyInt("tokenCount", tokens)
		w.out.End()
		w.out.EndArray()
	}
}

// end writes what ends an array, or all of a document.
func (w *writer) end() {
	w.over = true
	switch {
	case w.ask.Stream && !w.ask.Array:
		return
	case w.ask.Stream && w.begun:
		w.out.Plain("]")
		return
	case w.ask.Stream:
		w.out.Plain("[]")
		return
	}
	room := form.DocumentRoom
	for _, a := range w.answers {
		room += a.parts.Len()
	}
	w.out.Grow(room)
	w.out.Begin()
	w.out.Array("candidates")
	slices.SortFunc(w.answers, func(a, b *answer) int { return a.index - b.index })
	for _, a := range w.answers {
		w.openCandidate()
		if parts := a.parts.Bytes(); len(parts) > 0 {
			w.out.Raw(parts)
		} else {
			w.out.Literal(`{"text":""}`)
		}
		w.closeCandidate(a)
	}
	w.out.EndArray()
	w.tail()
	w.out.End()
}
