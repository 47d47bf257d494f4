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
	// from has the upstream's bytes; stream reads its events, nil for a document.
	from   io.Reader
	length int64 // of a document; 0 or less: unknown
	stream *sse.Reader
	reader form.AnswerReader
	writer form.AnswerWriter

	events []form.Event
	out    []byte // written, and not read by the client yet
	err    error  // ends the answer after out

	begun bool // the client may receive the written bytes, because content has arrived
	pings int  // before that
	ended bool // everything was written
	progress
	thought thought
	cited   cited        // of a call with a web search
	states  []form.State // for the next call of a tool
}

// progress describes the upstream's answer so far.
type progress struct {
	// shown: the answer has content that the client's format can show; media: it has content that the format cannot show.
	shown, media bool
	// counts are the upstream's latest counts. images is the number of images that it made.
	counts form.Counts
	images int64
}

// thought is the text of the current thinking block, for its signature.
type thought struct {
	block int
	text  []byte
}

// usualEvents is how many events one event or short document of an upstream usually becomes.
const usualEvents = 4

// Answer translates the upstream's answer to the client's. stream: from has server-sent events, also if a document was requested. length
// is the number of its bytes, 0 or less if unknown. Answer releases the body of the call, because the call was sent.
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

// maxPings is how many heartbeats Begin skips before content.
const maxPings = 1

// Begin waits until content has arrived. Its fault arrived before any content, so the call may be sent to another upstream.
func (a *Answer) Begin() *providers.Fault {
	for !a.begun && a.err == nil {
		a.step()
	}
	if a.err != nil && !a.begun && !errors.Is(a.err, io.EOF) {
		return providers.AsFault(a.err)
	}
	return nil
}

// Counts reports whether Usage counts: it does so for chats, and not for the documents of other calls.
func (t *Translation) Counts() bool { return t.document == nil }

// Usage returns the upstream's usage as far as the answer was read. false: no tokens were counted; images may be nevertheless.
func (a *Answer) Usage() (providers.Usage, bool) {
	used := providers.Usage{Input: a.counts.Input, Cached: a.counts.Read, Output: a.counts.Output, Images: a.images}
	return used, used.Input > 0 || used.Output > 0
}

// Ended reports whether the answer was read and written to its end, so that its usage is known.
func (a *Answer) Ended() bool { return a.ended }

// Read implements io.Reader. It translates one event of the upstream, or several that arrived together. Its errors are *providers.Fault.
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

// step reads the next event or the document of the upstream, and writes its translation.
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
			return // before any content, each event is checked separately
		}
	}
}

// done is the data after the last event of OpenAI's streams.
const done = "[DONE]"

// isDone reports whether the data of an event is done, with or without white space after it.
func isDone(data []byte) bool {
	return bytes.HasPrefix(data, []byte(done)) && string(bytes.TrimSpace(data)) == done
}

func (a *Answer) event(sent sse.Event) {
	a.events = a.events[:0]
	switch {
	case a.ended:
		return // events after the end do not belong to the answer
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
		return // the stream broke off; end reports it
	default:
		a.fail(broken(nil))
		return
	}
	if a.write() && a.err == nil {
		a.finish()
	}
}

// end ends a stream: err is io.EOF, or the reason that it broke off.
func (a *Answer) end(err error) {
	switch {
	case a.ended:
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

// whole reads a document. After one that breaks off, the call is not repeated, because the upstream may bill it.
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
			a.writeEnd()
		}
	}
	if a.err == nil {
		a.err = io.EOF
	}
}

// The size of a document's first buffer, in bytes: its length if that is known, at most maxFirstRoom, otherwise firstRoom.
const (
	firstRoom    = 4 << 10
	maxFirstRoom = 1 << 20
)

// read reads a document, but no more than one byte above MaxDocument.
func (a *Answer) read() ([]byte, error) {
	room := int64(firstRoom)
	if a.length > 0 {
		room = min(a.length, maxFirstRoom) + bytes.MinRead // so that the read of the end does not grow the buffer
	}
	document := bytes.NewBuffer(make([]byte, 0, room))
	_, err := document.ReadFrom(io.LimitReader(a.from, MaxDocument+1))
	return document.Bytes(), err
}

// documentOf translates the upstream's document of a call that is not a chat.
func (a *Answer) documentOf(document rawjson.Value) {
	out, fault := a.t.document(document)
	if fault != nil {
		a.fail(fault)
		return
	}
	a.out, a.begun, a.ended = out, true, true
}

// finish ends the answer: everything has stopped, or the stream has ended.
func (a *Answer) finish() {
	if a.reader == nil {
		a.fail(broken(nil))
		return
	}
	a.events = a.reader.End(a.events[:0])
	if a.write(); a.err == nil {
		a.writeEnd()
	}
}

// writeEnd writes the end of the answer.
func (a *Answer) writeEnd() {
	a.ended, a.begun = true, true
	a.writer.Write(&form.Event{Kind: form.EventEnd})
	a.check()
}

// write passes the events to the writer. It reports whether one of them was a stop.
func (a *Answer) write() (stopped bool) {
	for i := range a.events {
		e := &a.events[i]
		switch e.Kind {
		case form.EventPing:
			a.pings++
			a.begun = a.begun || a.pings > maxPings
		case form.EventStart:
		case form.EventCounts:
			a.counts = e.Counts.MergedOver(a.counts)
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
			if a.media && !a.shown {
				a.fail(&providers.Fault{Kind: providers.Upstream, Message: "The answer contains media, which the format of the call cannot represent."})
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

// check ends the answer if its writer failed.
func (a *Answer) check() {
	if fault := a.writer.Fault(); fault != nil {
		a.begun, a.err = true, fault
	}
}

// content completes an event with content for the writer.
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
		if a.t.storeStates != nil && e.State.Kind != form.StateGeminiBefore {
			a.states = append(a.states, form.State{
				Kind: e.State.Kind, Data: bytes.Clone(e.State.Data), Text: bytes.Clone(e.State.Text), ID: e.State.ID,
			})
		}
	case form.EventCallBegin:
		a.shown = true
		e.Call.Name = a.t.name(e.Call.Name)
		e.Call.ID = a.callID(e.Call.ID)
		if len(a.states) > 0 && e.Call.ID != "" {
			a.t.storeStates(e.Call.ID, a.states)
			a.states = nil
		}
	case form.EventText:
		a.shown = true
		if a.t.ask.Search && e.Choice == 0 {
			a.cited.add(e)
		}
		a.states = slices.DeleteFunc(a.states, func(s form.State) bool { return s.Kind == form.StateGemini }) // that of the text
	default:
		a.shown = true
	}
}

// callID returns the client's id of a call. It replaces an id that the conversation already has, because some upstreams number the calls of
// each answer from the start, or send the same id for several calls. The client sends the new id back with the result.
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

// add appends a piece of the text.
func (t *thought) add(e *form.Event) {
	if t.block != e.Block {
		t.block, t.text = e.Block, t.text[:0]
	}
	if len(t.text) == 0 {
		t.text = append(t.text, '"')
	}
	t.text = append(t.text, e.Text.Inner()...)
}

// take returns the text of a block; it is valid until the next piece.
func (t *thought) take(block int) rawjson.Text {
	if t.block != block || len(t.text) == 0 {
		return nil
	}
	text := append(t.text, '"')
	t.text = text[:0]
	return rawjson.Text(text)
}

// name returns the client's name of a tool.
func (t *Translation) name(sent string) string {
	if name, renamed := t.ask.Names[sent]; renamed {
		return name
	}
	if t.ask.Declared[sent] {
		return sent
	}
	// Gemini sometimes adds a prefix.
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

// fail ends the answer with a fault. If the client has received content, the writer writes the error event.
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
