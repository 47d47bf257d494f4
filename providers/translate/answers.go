package translate

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
	"modelrelay/providers/translate/form"
)

// MaxDocument bounds an upstream's answer of one piece, in bytes.
const MaxDocument = 64 << 20

// Answer is an upstream's answer on its way to a client of another format. One goroutine uses it.
type Answer struct {
	t *Translation
	// from gives the upstream's bytes; stream reads its events, nil of a document.
	from   io.Reader
	length int64 // of a document; 0 or less: not known
	stream *sse.Reader
	reader form.AnswerReader
	writer form.AnswerWriter

	events []form.Event
	out    []byte // what the writer has written, and the client has not got
	err    error  // ends the answer once out is empty

	begun bool // the client gets what was written: something was said
	pings int  // before that
	over  bool // everything was written
	heard
	thought thought
	cited   cited        // of a call with a web search
	states  []form.State // for the next call of a tool
}

// heard is what the upstream has said so far.
type heard struct {
	// said: there was content that the client can be shown; media: there was some that it cannot.
	said, media bool
	// counts are what the upstream counted last, images those that it made.
	counts form.Counts
	images int64
}

// thought is the text of the block that is being thought, for its signature.
type thought struct {
	block int
	text  []byte
}

// usualEvents is how many events one event or short document of an upstream gives rise to.
const usualEvents = 4

// Answer makes the client's answer of the upstream's bytes. stream: they are server-sent events, whatever was asked for.
// length is how many bytes there are, 0 or less where that is not known. The call was sent: its body is let go.
func (t *Translation) Answer(from io.Reader, stream bool, length int64) *Answer {
	t.Call.Pieces, t.Call.Header = nil, nil
	a := &Answer{t: t, from: from, length: length, events: make([]form.Event, 0, usualEvents)}
	if t.document == nil {
		a.reader, a.writer = t.reader.reader(), t.writer.writer(t.ask)
	}
	if stream {
		a.stream = sse.NewReader(from)
	}
	return a
}

// patience is how many signs of life are waited through for the first word.
const patience = 1

// Begin waits until there is something to show. Its fault is what came in place of that: nothing was shown yet, so another
// upstream may be asked.
func (a *Answer) Begin() *providers.Fault {
	for !a.begun && a.err == nil {
		a.step()
	}
	if a.err != nil && !a.begun && !errors.Is(a.err, io.EOF) {
		return providers.AsFault(a.err)
	}
	return nil
}

// Counts reports whether Usage can say anything: chats count, and other calls' documents are not read for it.
func (t *Translation) Counts() bool { return t.document == nil }

// Usage is what the upstream counted so far, as it is read for the client; false when it counted no tokens. Images may be
// counted all the same.
func (a *Answer) Usage() (providers.Usage, bool) {
	used := providers.Usage{Input: a.counts.Input, Cached: a.counts.Read, Output: a.counts.Output, Images: a.images}
	return used, used.Input > 0 || used.Output > 0
}

// Over reports whether the answer was read and written to its end, so that what it used is known.
func (a *Answer) Over() bool { return a.over }

// Read implements io.Reader: it gives what one event of the upstream, or several that came together, give rise to. Its errors
// are *providers.Fault.
func (a *Answer) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if len(a.out) > 0 {
			n := copy(p, a.out)
			a.out = a.out[n:]
			return n, nil
		}
		if a.writer != nil && a.begun {
			if a.out = a.writer.Take(); len(a.out) > 0 {
				continue
			}
		}
		if a.err != nil {
			return 0, a.err
		}
		a.step()
	}
	return 0, nil
}

// step reads what comes next of the upstream, and writes what comes of it.
func (a *Answer) step() {
	if a.stream == nil {
		a.whole()
		return
	}
	sent, err := a.stream.Next()
	if err != nil {
		a.end(err)
		return
	}
	for more := true; more && a.err == nil; sent, more = a.stream.Whole() {
		a.event(sent)
		if !a.begun {
			return // before anything is shown each event counts by itself
		}
	}
}

// done is the word behind the last event of OpenAI's streams.
const done = "[DONE]"

// isDone reports whether an event is that word, with or without white space after it.
func isDone(data []byte) bool {
	return bytes.HasPrefix(data, []byte(done)) && string(bytes.TrimSpace(data)) == done
}

func (a *Answer) event(sent sse.Event) {
	a.events = a.events[:0]
	switch {
	case a.over:
		return // what follows the end of an answer is none of it
	case len(bytes.TrimSpace(sent.Data)) == 0:
		a.events = append(a.events, form.Event{Kind: form.EventPing})
	case isDone(sent.Data), rawjson.Valid(sent.Data):
		if a.reader == nil {
			a.documentOf(rawjson.Trim(sent.Data))
			return
		}
		data := sent.Data
		if isDone(data) {
			data = []byte(done)
		}
		a.events = a.reader.Event(sent.Name, data, a.events)
	case sent.Unended:
		return // it broke off: the end reports it
	default:
		a.fail(broken(nil))
		return
	}
	if a.write() && a.err == nil {
		a.finish()
	}
}

// end ends a stream: err is io.EOF, or why there is no more of it.
func (a *Answer) end(err error) {
	switch {
	case a.over:
		a.err = io.EOF
	case errors.Is(err, io.EOF):
		a.finish()
		if a.err == nil {
			a.err = io.EOF
		}
	case errors.Is(err, sse.ErrTooLong):
		a.fail(broken(err))
	default:
		a.fail(providers.AsFault(err))
	}
}

// whole reads a document. One that breaks off is not asked for again: its upstream wants to be paid for it.
func (a *Answer) whole() {
	document, err := a.read()
	switch {
	case err != nil:
		a.begun, a.err = true, providers.AsFault(err)
		return
	case len(document) > MaxDocument || !rawjson.Valid(document):
		a.fail(broken(nil))
		return
	case a.reader == nil:
		a.documentOf(rawjson.Trim(document))
	default:
		a.events = a.reader.Document(rawjson.Trim(document), a.events[:0])
		if a.write(); a.err == nil {
			a.ended()
		}
	}
	if a.err == nil {
		a.err = io.EOF
	}
}

// A document is read into memory of its length: at once where that is known and no more than mostAtOnce, in bytes, and else
// beginning with firstRoom.
const (
	firstRoom  = 4 << 10
	mostAtOnce = 1 << 20
)

// read reads a document, or as much of one that is too long as shows that.
func (a *Answer) read() ([]byte, error) {
	room := int64(firstRoom)
	if a.length > 0 {
		room = min(a.length, mostAtOnce) + bytes.MinRead // for the end of what comes
	}
	document := bytes.NewBuffer(make([]byte, 0, room))
	_, err := document.ReadFrom(io.LimitReader(a.from, MaxDocument+1))
	return document.Bytes(), err
}

// documentOf makes the client's document of the upstream's, of calls that are no chats.
func (a *Answer) documentOf(document rawjson.Value) {
	out, fault := a.t.document(document)
	if fault != nil {
		a.fail(fault)
		return
	}
	a.out, a.begun, a.over = out, true, true
}

// finish ends the answer: everything has stopped, or the stream has ended.
func (a *Answer) finish() {
	if a.reader == nil {
		a.fail(broken(nil))
		return
	}
	a.events = a.reader.End(a.events[:0])
	if a.write(); a.err == nil {
		a.ended()
	}
}

// ended writes what is after all content.
func (a *Answer) ended() {
	a.over, a.begun = true, true
	a.writer.Write(&form.Event{Kind: form.EventEnd})
	a.check()
}

// write hands the events on. It reports whether one of them was a stop.
func (a *Answer) write() (stopped bool) {
	for i := range a.events {
		e := &a.events[i]
		switch e.Kind {
		case form.EventPing:
			a.pings++
			a.begun = a.begun || a.pings > patience
		case form.EventStart:
		case form.EventCounts:
			a.counts = e.Counts.Over(a.counts)
			e.Counts = &a.counts
		case form.EventMedia:
			a.media = true
			if e.Image {
				a.images++
			}
			continue
		case form.EventFailed:
			a.fail(e.Fault)
			return stopped
		case form.EventSearch, form.EventCitation:
			if !a.t.ask.Search || e.Kind == form.EventCitation && !a.cited.resolve(e) {
				continue
			}
			a.begun = true
		case form.EventStop:
			if a.media && !a.said {
				a.fail(&providers.Fault{Kind: providers.Upstream, Message: "The answer is a medium, which the call's format cannot show."})
				return stopped
			}
			stopped, a.begun = true, true
		default:
			a.begun = true
			a.content(e)
		}
		a.writer.Write(e)
		if a.check(); a.err != nil {
			return stopped
		}
	}
	return stopped
}

// check ends the answer where its writer gave up.
func (a *Answer) check() {
	if fault := a.writer.Fault(); fault != nil {
		a.begun, a.err = true, fault
	}
}

// content completes what the writer gets of an answer's content.
func (a *Answer) content(e *form.Event) {
	switch e.Kind {
	case form.EventThought:
		if a.t.signs {
			a.thought.add(e)
		}
	case form.EventState:
		if e.State.Kind == form.StateAnthropic {
			e.State.Text = a.thought.take(e.Block)
		}
		if a.t.remember != nil && e.State.Kind != form.StateGeminiBefore {
			a.states = append(a.states, form.State{
				Kind: e.State.Kind, Data: bytes.Clone(e.State.Data), Text: bytes.Clone(e.State.Text), ID: e.State.ID,
			})
		}
	case form.EventCallBegin:
		a.said = true
		e.Call.Name = a.t.name(e.Call.Name)
		e.Call.ID = a.callID(e.Call.ID)
		if len(a.states) > 0 && e.Call.ID != "" {
			a.t.remember(e.Call.ID, a.states)
			a.states = nil
		}
	case form.EventText:
		a.said = true
		if a.t.ask.Search && e.Choice == 0 {
			a.cited.add(e)
		}
		a.states = slices.DeleteFunc(a.states, func(s form.State) bool { return s.Kind == form.StateGemini }) // it was the text's
	default:
		a.said = true
	}
}

// callID returns the client's id of a call. Some upstreams begin to count anew in each answer, or give several calls the same id: an id
// that the conversation has already is replaced by a new one, which the client sends back with the result.
func (a *Answer) callID(id string) string {
	if id == "" {
		return ""
	}
	if a.t.callIDs[id] {
		id = form.NewCallID()
	}
	if a.t.callIDs == nil {
		a.t.callIDs = make(map[string]bool)
	}
	a.t.callIDs[id] = true
	return id
}

// add takes a piece of what is thought.
func (t *thought) add(e *form.Event) {
	if t.block != e.Block {
		t.block, t.text = e.Block, t.text[:0]
	}
	if len(t.text) == 0 {
		t.text = append(t.text, '"')
	}
	t.text = append(t.text, e.Text.Inner()...)
}

// take is what was thought in a block; it is valid until the next piece.
func (t *thought) take(block int) rawjson.Text {
	if t.block != block || len(t.text) == 0 {
		return nil
	}
	text := append(t.text, '"')
	t.text = text[:0]
	return rawjson.Text(text)
}

// name is the client's name of a tool.
func (t *Translation) name(sent string) string {
	if name, renamed := t.ask.Names[sent]; renamed {
		return name
	}
	if t.ask.Declared[sent] {
		return sent
	}
	// Gemini puts a name of its own in front now and then.
	for _, prefix := range []string{"default_api:", "default_api."} {
		rest, cut := strings.CutPrefix(sent, prefix)
		if name, renamed := t.ask.Names[rest]; cut && renamed {
			return name
		}
		if cut && t.ask.Declared[rest] {
			return rest
		}
	}
	return sent
}

// fail ends the answer with a fault. What the format says before its error was written then.
func (a *Answer) fail(fault *providers.Fault) {
	if a.begun && a.writer != nil {
		a.writer.Write(&form.Event{Kind: form.EventFailed, Fault: fault})
	}
	a.err = fault
}

func broken(err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's answer is broken.", Blame: providers.BlameChannel,
		Malformed: true, Err: err,
	}
}
