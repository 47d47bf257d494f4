package responses

import (
	"bytes"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// piece has the members of an event.
type piece struct {
	kind        rawjson.Text
	id          rawjson.Text
	index, part int64
	open        bool
	delta, text rawjson.Text
	logprobs    rawjson.Value
	item        rawjson.Value
}

// pieceOf reads an event.
func pieceOf(event rawjson.Object) piece {
	p := piece{
		kind: event.Get("type").Text(), id: event.Get("item_id").Text(), index: -1,
		delta: event.Get("delta").Text(), text: event.Get("text").Text(), logprobs: filled(event.Get("logprobs")), item: event.Get("item"),
	}
	if n, ok := event.Get("output_index").Int(); ok {
		p.index = n
	}
	if part := event.Get("content_index"); part != nil {
		p.part, _ = part.Int()
		p.open = true
	} else {
		p.part, _ = event.Get("summary_index").Int()
	}
	if p.id == nil {
		p.id = p.item.Get("id").Text()
	}
	return p
}

// filled returns an array with elements, absent for any other value.
func filled(array rawjson.Value) rawjson.Value {
	if array.Len() == 0 {
		return nil
	}
	return array
}

// find returns the item of a piece, nil if it has not begun: by its id, its index, or the open one. Some servers change the id.
func (a *answer) find(p *piece) *readItem {
	for i := len(a.items) - 1; i >= 0; i-- {
		if item := &a.items[i]; !p.id.Empty() && p.id.Is(item.id) {
			return item
		}
	}
	for i := len(a.items) - 1; i >= 0; i-- {
		item := &a.items[i]
		if p.index >= 0 && item.index == p.index || p.index < 0 && p.id.Empty() && !item.ended {
			return item
		}
	}
	return nil
}

// item returns the item of a piece, which it begins if necessary.
func (a *answer) item(p *piece, to []form.Event) (*readItem, []form.Event) {
	if known := a.find(p); known != nil {
		return known, to
	}
	item := readItem{index: p.index, id: p.id.String(), kind: form.EventPing, block: -1}
	switch kind := p.item.Get("type").Text(); {
	case kind.Is("message"):
		item.kind = form.EventText
	case kind.Is("reasoning"):
		item.kind = form.EventThought
	case kind.Is("web_search_call"):
		item.kind = form.EventSearch
	case kind.Is("image_generation_call"):
		to = append(to, form.Event{Kind: form.EventMedia, Block: a.block()})
	case kind.Is("function_call"), kind.Is("custom_tool_call"):
		item.kind, item.custom = form.EventCallArgs, kind.Is("custom_tool_call")
		item.block, a.calls = a.block(), true
		space := form.Space{Namespace: p.item.Get("namespace").Text().String(), Name: p.item.Get("name").Text().String()}
		call := form.Call{ID: p.item.Get("call_id").Text().String(), Name: space.Flat(), Custom: item.custom}
		if call.ID == "" {
			call.ID = item.id // of compatible servers
		}
		to = append(to, form.Event{Kind: form.EventCallBegin, Block: item.block, Call: call})
	}
	a.items = append(a.items, item)
	return &a.items[len(a.items)-1], to
}

func (a *answer) block() int {
	a.blocks++
	return a.blocks - 1
}

// text appends a piece of a text, a refusal or a thought.
func (a *answer) text(p *piece, kind form.EventKind, text rawjson.Text, to []form.Event) []form.Event {
	if text.Empty() {
		return to
	}
	item, to := a.item(p, to)
	if item.kind == form.EventPing { // its first event is missing
		if item.kind = form.EventText; kind == form.EventThought {
			item.kind = kind
		}
	}
	part, begins := item.partOf(p)
	if begins {
		switch {
		case kind != form.EventThought:
			part.block = a.block()
		case len(item.parts) == 1:
			part.block = a.block()
			item.block = part.block
		default: // the parts of a thought are one
			part.block = item.block
			to = append(to, form.Event{Kind: kind, Block: part.block, Text: rawjson.Text(`"\n\n"`)})
		}
	}
	a.refused = a.refused || kind == form.EventRefusal
	event := form.Event{Kind: kind, Block: part.block, Text: text}
	if kind == form.EventText {
		event.Logprobs = p.logprobs
	}
	return append(to, event)
}

// partOf returns the part of a piece, and reports whether it begins with the piece.
func (i *readItem) partOf(p *piece) (part *readPart, begins bool) {
	for n := range i.parts {
		if i.parts[n].index == p.part && i.parts[n].open == p.open {
			return &i.parts[n], false
		}
	}
	i.parts = append(i.parts, readPart{index: p.part, open: p.open})
	return &i.parts[len(i.parts)-1], true
}

// rest appends the text of a part without pieces.
func (a *answer) rest(p *piece, kind form.EventKind, text rawjson.Text, to []form.Event) []form.Event {
	if known := a.find(p); known != nil {
		for _, part := range known.parts {
			if part.index == p.part && part.open == p.open {
				return to
			}
		}
	}
	return a.text(p, kind, text, to)
}

func (a *answer) input(p *piece, text rawjson.Text, to []form.Event) []form.Event {
	item := a.find(p)
	if item == nil || item.kind != form.EventCallArgs || item.ended || text.Empty() {
		return to // the end of the item has the whole text
	}
	if item.custom {
		to, text = item.opens(to), form.CustomArgs(text)
	}
	item.begun = true
	return append(to, form.Event{Kind: form.EventCallArgs, Block: item.block, Text: text})
}

// opens appends the beginning of a custom tool's input, once.
func (i *readItem) opens(to []form.Event) []form.Event {
	if i.begun {
		return to
	}
	i.begun = true
	return append(to, form.Event{Kind: form.EventCallArgs, Block: i.block, Text: rawjson.Text(form.CustomOpens)})
}

// endItem appends the content of a complete item that the pieces did not have, and its end.
func (a *answer) endItem(p *piece, to []form.Event) []form.Event {
	item, to := a.item(p, to)
	if item.ended {
		return to
	}
	switch item.kind {
	case form.EventText:
		to = a.restOf(p, "content", true, to)
	case form.EventThought:
		to = a.restOf(p, "summary", false, to)
		if len(item.parts) == 0 || item.parts[0].open {
			to = a.restOf(p, "content", true, to)
		}
		if sealed := p.item.Get("encrypted_content").Text(); !sealed.Empty() && !bytes.HasPrefix(sealed.Inner(), []byte(form.Unsigned)) {
			block := item.block
			if block < 0 {
				block = a.block()
			}
			to = append(to, form.Event{Kind: form.EventState, Block: block, State: form.State{
				Kind: form.StateOpenAI, Data: sealed.Inner(), ID: item.id,
			}})
		}
	case form.EventCallArgs:
		to = a.endCall(p, item, to)
	case form.EventSearch:
		to = searched(p.item, item.id, to)
	}
	item.ended = true
	return to
}

// restOf appends the parts of an item without pieces.
func (a *answer) restOf(p *piece, list string, open bool, to []form.Event) []form.Event {
	for i, part := range p.item.Get(list).Items() {
		at := piece{id: p.id, index: p.index, part: int64(i), open: open, logprobs: filled(part.Get("logprobs"))}
		switch kind := part.Get("type").Text(); {
		case kind.Is("output_text"):
			to = a.rest(&at, form.EventText, part.Get("text").Text(), to)
			if item := a.find(&at); item != nil {
				if seen, begins := item.partOf(&at); !begins && !seen.cited {
					for _, annotation := range part.Get("annotations").Items() {
						to = a.cite(&at, annotation, to)
					}
				}
			}
		case kind.Is("refusal"):
			to = a.rest(&at, form.EventRefusal, part.Get("refusal").Text(), to)
		case kind.Is("summary_text"), kind.Is("reasoning_text"):
			to = a.rest(&at, form.EventThought, part.Get("text").Text(), to)
		}
	}
	return to
}

// searched appends a web search. A page that the vendor opened or searched is not one.
func searched(item rawjson.Value, id string, to []form.Event) []form.Event {
	action := item.Get("action")
	if kind := action.Get("type").Text(); !kind.Empty() && !kind.Is("search") {
		return to
	}
	step := &form.SearchStep{ID: id, Query: action.Get("query").Text().String()}
	for _, query := range action.Get("queries").Items() {
		if step.Query == "" {
			step.Query = query.Text().String()
		}
	}
	for _, source := range action.Get("sources").Items() {
		if address := source.Get("url").Text(); !address.Empty() {
			step.Sources = append(step.Sources, form.Source{URL: address.String()})
		}
	}
	return append(to, form.Event{Kind: form.EventSearch, Search: step})
}

func (a *answer) cite(p *piece, annotation rawjson.Value, to []form.Event) []form.Event {
	item := a.find(p)
	if item == nil || !annotation.Get("type").Text().Is("url_citation") {
		return to
	}
	part, begins := item.partOf(p)
	if begins {
		item.parts = item.parts[:len(item.parts)-1]
		return to
	}
	part.cited = true
	return append(to, form.Event{Kind: form.EventCitation, Block: part.block, Citation: form.URLCitation(annotation)})
}

func (a *answer) endCall(p *piece, item *readItem, to []form.Event) []form.Event {
	name := "arguments"
	if item.custom {
		name = "input"
	}
	if !item.begun {
		to = a.input(p, p.item.Get(name).Text(), to)
	}
	if item.custom {
		to = append(item.opens(to), form.Event{Kind: form.EventCallArgs, Block: item.block, Text: rawjson.Text(form.CustomCloses)})
	}
	return append(to, form.Event{Kind: form.EventCallEnd, Block: item.block})
}
