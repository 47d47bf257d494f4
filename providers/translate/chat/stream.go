package chat

import (
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

const (
	// maxOutput is the most that is held of an answer, in bytes: of a whole one, and of calls that are given at their end.
	maxOutput = 16 << 20
	// keptMemory is how much memory for what is to be sent outlives the sending, in bytes.
	keptMemory = 64 << 10
	// idDigits follow the prefix of an answer's id.
	idDigits = 24
)

// NewWriter returns the writer of a client's answer: the chunks of a chat completion, or the completion.
func NewWriter(ask form.Ask) form.AnswerWriter {
	w := &writer{ask: ask, id: form.NewID("chatcmpl-", idDigits), created: time.Now().Unix()}
	if !ask.Stream {
		return w
	}
	out := new(form.Out)
	w.head(out, "chat.completion.chunk")
	out.Key("choices")
	w.chunkHead = "data: {" + string(out.Bytes()) + `[{"index":`
	w.chunkTail = `}]`
	if ask.WantsUsage {
		w.chunkTail += `,"usage":null`
	}
	w.chunkTail += "}\n\n"
	return w
}

type writer struct {
	ask     form.Ask
	out     form.Out // to be sent
	id      string
	created int64
	choices []*said
	counts  form.Counts
	held    int // bytes
	taken   bool
	over    bool
	fault   *providers.Fault
	// What stands around the index and the delta of each chunk.
	chunkHead, chunkTail string
}

// said is what one choice has said.
type said struct {
	index int
	calls []*saidCall
	// signature is Google's of the block that begins next.
	signature []byte
	// Of a whole completion: the insides of its texts, and the elements of the list of probabilities.
	text, thought, refusal, logprobs []byte
	// annotations are the elements of the list of citations.
	annotations form.Out
	stop        form.StopReason
	refused     bool
}

// head writes the first members of a chunk or a completion.
func (w *writer) head(out *form.Out, object string) {
	out.KeyString("id", w.id)
	out.KeyString("object", object)
	out.KeyInt("created", w.created)
	out.KeyString("model", w.ask.Model)
}

// Take implements form.AnswerWriter.
func (w *writer) Take() []byte {
	if w.taken || w.out.Len() == 0 {
		return nil
	}
	w.taken = true
	return w.out.Bytes()
}

// Fault implements form.AnswerWriter.
func (w *writer) Fault() *providers.Fault { return w.fault }

// Write implements form.AnswerWriter.
func (w *writer) Write(event *form.Event) {
	if w.taken {
		w.out.Reset(keptMemory)
		w.taken = false
	}
	if w.over {
		return
	}
	switch event.Kind {
	case form.EventCounts:
		w.counts = *event.Counts
	case form.EventPing:
		if w.ask.Stream {
			w.out.Plain(": ping\n\n")
		}
	case form.EventFailed:
		w.over = true
	case form.EventEnd:
		w.over = true
		w.end()
	case form.EventMedia: // what else there is stands for the answer
	default:
		w.choice(event)
	}
	if w.held > maxOutput {
		w.over, w.fault = true, providers.Faultf(providers.Upstream, "The upstream's answer is too long to translate.")
	}
}

// choice takes an event of one choice, which it begins where it is the first.
func (w *writer) choice(event *form.Event) {
	var c *said
	for _, known := range w.choices {
		if known.index == event.Choice {
			c = known
		}
	}
	if c == nil {
		c = &said{index: event.Choice}
		w.choices = append(w.choices, c)
		if w.ask.Stream {
			w.chunk(c)
			w.out.Literal(`"role":"assistant","content":""`)
			w.close("")
		}
	}
	switch event.Kind {
	case form.EventText:
		c.signature = nil
		w.text(c, "content", &c.text, event)
	case form.EventThought:
		w.text(c, "reasoning_content", &c.thought, event)
	case form.EventRefusal:
		c.refused = true
		w.text(c, "refusal", &c.refusal, event)
	case form.EventCitation:
		c.cite(event.Citation)
	case form.EventState:
		if event.State.Kind == form.StateGemini {
			c.signature = append([]byte(nil), event.State.Data...)
		}
	case form.EventCallBegin:
		w.beginCall(c, event)
	case form.EventCallArgs, form.EventCallEnd:
		for _, call := range c.calls {
			if call.block != event.Block || call.ended {
				continue
			}
			if event.Kind == form.EventCallArgs {
				w.arguments(c, call, event.Text)
			} else {
				w.endCall(c, call)
			}
		}
	case form.EventStop:
		w.stop(c, event.Stop)
	}
}

// chunk opens a chunk and the delta of its choice.
func (w *writer) chunk(c *said) {
	w.out.Plain(w.chunkHead)
	w.out.Int(int64(c.index))
	w.out.Object("delta")
}

// close ends the delta and the chunk. Members of the choice may stand before its end.
func (w *writer) close(finish string) {
	w.out.End()
	w.closeChoice(finish, nil)
}

func (w *writer) closeChoice(finish string, logprobs rawjson.Value) {
	w.writeLogprobs(logprobs)
	w.out.Key("finish_reason")
	if finish == "" {
		w.out.Literal("null")
	} else {
		w.out.String(finish)
	}
	w.out.Plain(w.chunkTail)
}

// writeLogprobs writes the probabilities of a text.
func (w *writer) writeLogprobs(content rawjson.Value) {
	w.out.Key("logprobs")
	if content.Absent() {
		w.out.Literal("null")
		return
	}
	w.out.Begin()
	w.out.Field("content", content)
	w.out.Literal(`"refusal":null`)
	w.out.End()
}

// text writes a piece of text, or keeps it.
func (w *writer) text(c *said, key string, kept *[]byte, event *form.Event) {
	if event.Text.Empty() {
		return
	}
	if w.ask.Stream {
		w.chunk(c)
		w.out.KeyText(key, event.Text)
		w.out.End()
		w.closeChoice("", event.Logprobs)
		return
	}
	w.keep(kept, event.Text.Inner())
	for _, item := range event.Logprobs.Items() {
		if len(c.logprobs) > 0 {
			c.logprobs = append(c.logprobs, ',')
		}
		w.keep(&c.logprobs, item)
	}
}

// keep appends to what is held.
func (w *writer) keep(kept *[]byte, more []byte) {
	*kept = append(*kept, more...)
	w.held += len(more)
}

// stop ends a choice.
func (w *writer) stop(c *said, stop form.Stop) {
	for _, call := range c.calls {
		if !call.ended {
			w.endCall(c, call)
		}
	}
	c.stop = stop.Reason
	if w.ask.Stream && c.annotations.Len() > 0 {
		w.chunk(c)
		w.out.KeyRaw("annotations", []byte("["), c.annotations.Bytes(), []byte("]"))
		w.close("")
	}
	if w.ask.Stream {
		w.chunk(c)
		w.close(w.finishReason(c))
	}
}

// cite adds a citation, whose range is one of all of the text.
func (c *said) cite(citation *form.Citation) {
	out := &c.annotations
	out.Begin()
	out.Literal(`"type":"url_citation"`)
	out.Object("url_citation")
	out.KeyInt("start_index", int64(citation.Base+citation.From))
	out.KeyInt("end_index", int64(citation.Base+citation.To))
	out.KeyString("title", citation.Title)
	out.KeyString("url", citation.URL)
	out.End()
	out.End()
}

func (w *writer) finishReason(c *said) string {
	switch c.stop {
	case form.StopMaxTokens, form.StopContextFull, form.StopPaused:
		return "length"
	case form.StopRefusal, form.StopFiltered:
		return "content_filter"
	case form.StopCalls:
		if w.ask.Legacy {
			return "function_call"
		}
		return "tool_calls"
	}
	return "stop"
}

// end writes what follows the last choice: the counts, and the end of the stream, or the whole completion.
func (w *writer) end() {
	if !w.ask.Stream {
		w.completion()
		return
	}
	if w.ask.WantsUsage {
		w.out.Plain("data: ")
		w.out.Begin()
		w.head(&w.out, "chat.completion.chunk")
		w.out.Literal(`"choices":[]`)
		writeUsage(&w.out, &w.counts)
		w.out.End()
		w.out.Plain("\n\n")
	}
	w.out.Plain("data: [DONE]\n\n")
}
