package gemini

import (
	"bytes"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewReader returns a reader of an upstream's answer: its events, one document, or the array of documents of a stream without events.
func NewReader() form.AnswerReader { return new(reader) }

// maxChoice is the largest index of a candidate that is read.
const maxChoice = 127

type reader struct {
	form.Course

	blocked bool
	choices []*candidate
	counts  form.Counts
	// root and current are the members of the current document and of its current candidate.
	root, current rawjson.Object
}

// candidate is one of several answers.
type candidate struct {
	index int
	// blocks counts those that began; kind is that of the last one, -1 for none.
	blocks int
	kind   form.BlockKind
	texts  int          // the last block of text
	reason rawjson.Text // of its end, a copy
	calls  bool
	piece  rawjson.Object // the members of the current part
}

// Event implements form.AnswerReader.
func (r *reader) Event(_, data []byte, to []form.Event) []form.Event {
	v := rawjson.Trim(data)
	if v.IsArray() {
		for _, chunk := range v.Items() {
			to = r.chunk(chunk, to)
		}
		return to
	}
	return r.chunk(v, to)
}

// Document implements form.AnswerReader.
func (r *reader) Document(document rawjson.Value, to []form.Event) []form.Event {
	return r.End(r.Event(nil, document, to))
}

func (r *reader) chunk(v rawjson.Value, to []form.Event) []form.Event {
	if r.Over || !v.IsObject() {
		return to
	}
	r.root = r.root.Read(v)
	if failed := r.root.Get("error"); failed.IsObject() {
		return r.Fail(FaultOf(failed), to)
	}
	to = r.Start(to)
	for i, candidate := range r.root.Get("candidates").Items() {
		to = r.candidate(candidate, i, to)
	}
	r.blocked = r.blocked || !r.root.Get("promptFeedback").Get("blockReason").Text().Empty()
	if usage := r.root.Get("usageMetadata"); usage.IsObject() && !r.Over {
		r.counts = countsOf(usage)
		to = append(to, form.Event{Kind: form.EventCounts, Counts: &r.counts})
	}
	return to
}

func countsOf(usage rawjson.Value) form.Counts {
	count := func(name string) int64 {
		n, _ := usage.Get(name).Count()
		return n
	}
	thoughts := count("thoughtsTokenCount")
	return form.Counts{
		Input: count("promptTokenCount") + count("toolUsePromptTokenCount"), Read: count("cachedContentTokenCount"),
		Output: count("candidatesTokenCount") + thoughts, Reasoning: thoughts,
		AudioIn: soundOf(usage.Get("promptTokensDetails")), AudioOut: soundOf(usage.Get("candidatesTokensDetails")),
	}
}

// soundOf returns the number of audio tokens.
func soundOf(details rawjson.Value) (tokens int64) {
	for _, detail := range details.Items() {
		if detail.Get("modality").Text().Is("AUDIO") {
			n, _ := detail.Get("tokenCount").Count()
			tokens += n
		}
	}
	return tokens
}

func (r *reader) candidate(v rawjson.Value, index int, to []form.Event) []form.Event {
	r.current = r.current.Read(v)
	if n, ok := r.current.Get("index").Int(); ok {
		index = int(min(max(n, -1), maxChoice+1))
	}
	if !v.IsObject() || index < 0 || index > maxChoice {
		return to
	}
	at := slices.IndexFunc(r.choices, func(c *candidate) bool { return c.index == index })
	if at < 0 {
		at = len(r.choices)
		r.choices = append(r.choices, &candidate{index: index, kind: -1})
	}
	c := r.choices[at]
	from := len(to)
	for _, part := range r.current.Get("content").Get("parts").Items() {
		to = c.part(part, to)
	}
	if logprobs := r.current.Get("logprobsResult"); logprobs.IsObject() {
		for i := range to[from:] {
			if event := &to[from+i]; event.Kind == form.EventText {
				event.Logprobs = logprobsOf(logprobs)
				break
			}
		}
	}
	if grounding := r.current.Get("groundingMetadata"); grounding.IsObject() {
		to = c.grounded(grounding, to)
	}
	if reason := r.current.Get("finishReason").Text(); !reason.Empty() {
		if broken(reason) {
			r.Over = true
			return append(to, form.Event{Kind: form.EventFailed, Choice: index, Fault: &providers.Fault{
				Kind: providers.Upstream, Message: "The model's answer could not be read by its vendor.",
				Code: providers.Cut(reason.String(), providers.WordLimit),
			}})
		}
		c.reason = slices.Clone(reason)
	}
	return to
}

func (c *candidate) part(v rawjson.Value, to []form.Event) []form.Event {
	c.piece = c.piece.Read(v)
	text, signature, call := c.piece.Get("text").Text(), c.piece.Get("thoughtSignature").Text(), c.piece.Get("functionCall")
	thought, media := c.piece.Get("thought").True(), c.piece.Get("inlineData")
	if media == nil {
		media = c.piece.Get("fileData")
	}
	switch {
	case call.IsObject() && !call.Get("name").Text().Empty():
		kind, block := form.EventText, form.BlockText // Google's own models send it in a separate part
		if thought {
			kind, block = form.EventThought, form.BlockThought
		}
		to = c.say(kind, block, text, to)
		return c.call(call, c.sign(form.StateGemini, c.blocks, signature, to))
	case media != nil:
		image := bytes.HasPrefix(media.Get("mimeType").Text().Decoded(), []byte("image/"))
		return append(to, form.Event{Kind: form.EventMedia, Choice: c.index, Block: c.block(form.BlockMedia), Image: image})
	case thought:
		to = c.say(form.EventThought, form.BlockThought, text, to)
		return c.sign(form.StateGemini, c.blocks, signature, to)
	case c.kind == form.BlockText:
		to = c.say(form.EventText, form.BlockText, text, to)
		return c.sign(form.StateGeminiBefore, c.blocks-1, signature, to)
	default: // the signature is of the text that begins, or of the next part
		to = c.sign(form.StateGemini, c.blocks, signature, to)
		return c.say(form.EventText, form.BlockText, text, to)
	}
}

// say appends a piece of a text or of a thought, if it is not empty.
func (c *candidate) say(kind form.EventKind, block form.BlockKind, text rawjson.Text, to []form.Event) []form.Event {
	if text.Empty() {
		return to
	}
	at := c.block(block)
	if kind == form.EventText {
		c.texts = at
	}
	return append(to, form.Event{Kind: kind, Choice: c.index, Block: at, Text: text})
}

// sign appends a signature as the state of a block, if there is one.
func (c *candidate) sign(kind form.StateKind, block int, signature rawjson.Text, to []form.Event) []form.Event {
	if signature.Empty() {
		return to
	}
	return append(to, form.Event{
		Kind: form.EventState, Choice: c.index, Block: block, State: form.State{Kind: kind, Data: signature.Inner()},
	})
}

// grounded appends the search of an answer, and the citations of its text.
func (c *candidate) grounded(v rawjson.Value, to []form.Event) []form.Event {
	step := &form.SearchStep{ID: form.NewID("")}
	var queries []string
	for _, query := range v.Get("webSearchQueries").Items() {
		queries = append(queries, query.Text().String())
	}
	step.Query = strings.Join(queries, "; ")
	for _, chunk := range v.Get("groundingChunks").Items() {
		web := chunk.Get("web")
		step.Sources = append(step.Sources, form.Source{URL: web.Get("uri").Text().String(), Title: web.Get("title").Text().String()})
	}
	if step.Query == "" && len(step.Sources) == 0 {
		return to
	}
	for _, support := range v.Get("groundingSupports").Items() {
		from, _ := support.At("segment", "startIndex").Int()
		end, _ := support.At("segment", "endIndex").Int()
		for _, index := range support.Get("groundingChunkIndices").Items() {
			if i, ok := index.Int(); ok && i >= 0 && i < int64(len(step.Sources)) {
				to = append(to, form.Event{Kind: form.EventCitation, Choice: c.index, Block: c.texts, Citation: &form.Citation{
					Source: step.Sources[i], Unit: form.CiteBytes, From: int(from), To: int(end),
				}})
			}
		}
	}
	return append(to, form.Event{Kind: form.EventSearch, Choice: c.index, Search: step})
}

// block returns the number of a piece's block: the last block if it is of the same kind, otherwise a new one.
func (c *candidate) block(kind form.BlockKind) int {
	if c.kind != kind {
		c.kind = kind
		c.blocks++
	}
	return c.blocks - 1
}

// call reads a functionCall, which is complete in one part.
func (c *candidate) call(v rawjson.Value, to []form.Event) []form.Event {
	id, args := v.Get("id").Text().String(), v.Get("args")
	if id == "" {
		id = form.NewCallID()
	}
	c.kind, c.calls = -1, true
	block := c.block(form.BlockCall)
	c.kind = -1 // another call is another block
	text := rawjson.Text(`"{}"`)
	if args.IsObject() {
		text = form.Compact(args)
	}
	return append(to,
		form.Event{Kind: form.EventCallBegin, Choice: c.index, Block: block, Call: form.Call{ID: id, Name: v.Get("name").Text().String()}},
		form.Event{Kind: form.EventCallArgs, Choice: c.index, Block: block, Text: text},
		form.Event{Kind: form.EventCallEnd, Choice: c.index, Block: block})
}

// End implements form.AnswerReader.
func (r *reader) End(to []form.Event) []form.Event {
	if r.Over {
		return to
	}
	r.Over = true
	if !r.Begun {
		return r.Fail(form.BrokenOff(), to)
	}
	if len(r.choices) == 0 && r.blocked {
		return append(to, form.Event{Kind: form.EventStop, Stop: form.Stop{Reason: form.StopFiltered}})
	}
	if len(r.choices) == 0 || slices.ContainsFunc(r.choices, func(c *candidate) bool { return c.reason == nil && !r.blocked }) {
		return r.Fail(form.BrokenOff(), to)
	}
	for _, c := range r.choices {
		stop := form.Stop{Reason: form.StopFiltered}
		if c.reason != nil {
			stop.Reason = stopOf(c.reason)
		}
		to = append(to, form.Event{Kind: form.EventStop, Choice: c.index, Stop: stop.WithCalls(c.calls)})
	}
	return to
}

// broken reports whether an answer ended because the vendor could not read its model's output.
func broken(reason rawjson.Text) bool {
	switch string(reason.Decoded()) {
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS":
		return true
	}
	return false
}

func stopOf(reason rawjson.Text) form.StopReason {
	return form.StopReasonOf(reason, map[string]form.StopReason{
		"STOP": form.StopEnd, "MAX_TOKENS": form.StopMaxTokens, "CONTINUATION": form.StopMaxTokens, "SAFETY": form.StopFiltered,
		"RECITATION": form.StopFiltered, "BLOCKLIST": form.StopFiltered, "PROHIBITED_CONTENT": form.StopFiltered, "SPII": form.StopFiltered,
		"IMAGE_SAFETY": form.StopFiltered, "IMAGE_PROHIBITED_CONTENT": form.StopFiltered, "IMAGE_RECITATION": form.StopFiltered,
	})
}

// logprobsOf writes a LogprobsResult in the form of OpenAI's dialects.
func logprobsOf(v rawjson.Value) rawjson.Value {
	var tops []rawjson.Value
	for _, top := range v.Get("topCandidates").Items() {
		tops = append(tops, top.Get("candidates"))
	}
	var out form.Out
	token := func(v rawjson.Value) {
		out.JSON(`{"token":?,"logprob":?,"bytes":null`, v.Get("token").Text(), v.Get("logProbability"))
	}
	out.BeginArray()
	for i, chosen := range v.Get("chosenCandidates").Items() {
		token(chosen)
		out.Array("top_logprobs")
		if i < len(tops) {
			for _, other := range tops[i].Items() {
				token(other)
				out.End()
			}
		}
		out.JSON("]}")
	}
	out.EndArray()
	return out.Bytes()
}
