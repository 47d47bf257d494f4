package chat

import (
	"time"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewWriter returns the writer of a client's answer: the chunks of a chat completion, or the completion.
func NewWriter(ask form.Ask) form.AnswerWriter {
	w := &writer{ask: ask, id: form.NewID("chatcmpl-"), created: time.Now().Unix()}
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
	form.Sending

	ask     form.Ask
	id      string
	created int64
	choices []*choiceAnswer
	counts  form.Counts
	held    int // bytes
	over    bool
	// The texts before and after the index and the delta of each chunk.
	chunkHead, chunkTail string
}

// choiceAnswer is the answer of one choice so far.
type choiceAnswer struct {
	index int
	calls []*toolCall
	// signature is Google's signature of the next block.
	signature []byte
	// Of a whole completion: the insides of its texts, and the elements of the list of probabilities.
	text, thought, refusal, logprobs []byte
	// annotations are the elements of the list of citations.
	annotations form.Out
	stop        form.StopReason
	refused     bool
}

func (w *writer) head(out *form.Out, object string) {
	out.JSON(`"id":?,"object":?,"created":?,"model":?`, w.id, object, w.created, w.ask.Model)
}

// Write implements form.AnswerWriter.
func (w *writer) Write(event *form.Event) {
	if w.over {
		return
	}
	switch event.Kind {
	case form.EventCounts:
		w.counts = *event.Counts
	case form.EventPing:
		if w.ask.Stream {
			w.Out.Plain(": ping\n\n")
		}
	case form.EventFailed:
		w.over = true
	case form.EventEnd:
		w.over = true
		w.end()
	case form.EventMedia: // the rest is the answer
	default:
		w.choice(event)
	}
	if w.held > form.MaxAnswer {
		w.over = true
		w.Failed(form.TooLong())
	}
}

// choice writes an event of one choice. The first one begins the choice.
func (w *writer) choice(event *form.Event) {
	var c *choiceAnswer
	for _, known := range w.choices {
		if known.index == event.Choice {
			c = known
		}
	}
	if c == nil {
		c = &choiceAnswer{index: event.Choice}
		w.choices = append(w.choices, c)
		if w.ask.Stream {
			w.chunk(c)
			w.Out.JSON(`"role":"assistant","content":""`)
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

func (w *writer) chunk(c *choiceAnswer) {
	w.Out.Plain(w.chunkHead)
	w.Out.Int(int64(c.index))
	w.Out.Object("delta")
}

// close ends the delta and the chunk. finish is the finish_reason, "" for null.
func (w *writer) close(finish string) {
	w.Out.End()
	w.closeChoice(finish, nil)
}

func (w *writer) closeChoice(finish string, logprobs rawjson.Value) {
	w.writeLogprobs(logprobs)
	if finish == "" {
		w.Out.JSON(`"finish_reason":null`)
	} else {
		w.Out.KeyString("finish_reason", finish)
	}
	w.Out.Plain(w.chunkTail)
}

func (w *writer) writeLogprobs(content rawjson.Value) {
	if content.Absent() {
		w.Out.JSON(`"logprobs":null`)
		return
	}
	w.Out.JSON(`"logprobs":{"content":?,"refusal":null}`, content)
}

func (w *writer) text(c *choiceAnswer, key string, kept *[]byte, event *form.Event) {
	if event.Text.Empty() {
		return
	}
	if w.ask.Stream {
		w.chunk(c)
		w.Out.KeyText(key, event.Text)
		w.Out.End()
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

func (w *writer) keep(kept *[]byte, more []byte) {
	*kept = append(*kept, more...)
	w.held += len(more)
}

func (w *writer) stop(c *choiceAnswer, stop form.Stop) {
	for _, call := range c.calls {
		if !call.ended {
			w.endCall(c, call)
		}
	}
	c.stop = stop.Reason
	if w.ask.Stream && c.annotations.Len() > 0 {
		w.chunk(c)
		w.Out.KeyRaw("annotations", []byte("["), c.annotations.Bytes(), []byte("]"))
		w.close("")
	}
	if w.ask.Stream {
		w.chunk(c)
		w.close(w.finishReason(c))
	}
}

// cite adds a citation. Its range is in the whole text.
func (c *choiceAnswer) cite(citation *form.Citation) {
	c.annotations.JSON(`{"type":"url_citation","url_citation":{"start_index":?,"end_index":?,"title":?,"url":?}}`,
		int64(citation.Base+citation.From), int64(citation.Base+citation.To), citation.Title, citation.URL)
}

func (w *writer) finishReason(c *choiceAnswer) string {
	if c.stop == form.StopCalls && w.ask.Legacy {
		return "function_call"
	}
	return [...]string{
		form.StopEnd: "stop", form.StopSequence: "stop", form.StopMaxTokens: "length", form.StopCalls: "tool_calls",
		form.StopRefusal: "content_filter", form.StopFiltered: "content_filter", form.StopContextFull: "length", form.StopPaused: "length",
		form.StopOther: "stop",
	}[c.stop]
}

// end writes the counts and the end of the stream, or the whole completion.
func (w *writer) end() {
	if !w.ask.Stream {
		w.completion()
		return
	}
	if w.ask.WantsUsage {
		w.Out.Plain("data: ")
		w.Out.Begin()
		w.head(&w.Out, "chat.completion.chunk")
		w.Out.JSON(`"choices":[]`)
		writeUsage(&w.Out, &w.counts)
		w.Out.End()
		w.Out.Plain("\n\n")
	}
	w.Out.Plain("data: [DONE]\n\n")
}
