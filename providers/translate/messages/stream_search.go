package messages

import (
	"cmp"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// maxCited bounds the text in a citation, in bytes; the vendor repeats up to 150 characters of the page.
const maxCited = 150

// search writes a web search: the call of the vendor's tool and its result. The placeholder for the vendor's encrypted content is opaque to
// clients. It is removed before a call is sent to the vendor.
func (w *message) search(step *form.SearchStep) {
	w.close()
	w.searches++
	id := form.NewID("srvtoolu_")
	w.alone(func(out *form.Out) {
		out.Literal(`"type":"server_tool_use"`)
		out.KeyString("id", id)
		out.KeyString("name", searchName)
		out.Object("input")
		if !w.ask.Stream {
			out.KeyString("query", step.Query)
		}
		out.End()
	}, func() {
		var input form.Out
		input.Begin()
		input.KeyString("query", step.Query)
		input.End()
		w.delta(inputDelta, rawjson.Quote(string(input.Bytes())))
	})
	w.alone(func(out *form.Out) {
		out.Literal(`"type":"web_search_tool_result"`)
		out.KeyString("tool_use_id", id)
		out.Array("content")
		for _, source := range step.Sources {
			out.Typed("web_search_result")
			out.KeyString("url", source.URL)
			out.KeyString("title", cmp.Or(source.Title, source.URL)) // OpenAI's searches have no titles, and clients show the title
			out.KeyString("encrypted_content", form.OpaqueSearch+form.NewID(""))
			out.Literal(`"page_age":null`)
			out.End()
		}
		out.EndArray()
	}, nil)
}

// alone writes a separate block. between, unless nil, writes the events between the block's beginning and its end.
func (w *message) alone(members func(out *form.Out), between func()) {
	out := &w.Out
	if w.ask.Stream {
		w.begins("content_block_start")
		out.Key("content_block")
	} else {
		out = w.inContent()
	}
	out.Begin()
	members(out)
	out.End()
	if !w.ask.Stream {
		return
	}
	w.ends()
	if between != nil {
		between()
	}
	w.begins("content_block_stop")
	w.ends()
	w.index++
}

// cite writes a citation of the open text.
func (w *message) cite(event *form.Event) {
	if w.opened.kind != textBlock || w.opened.of != event.Block {
		return
	}
	citation := event.Citation
	write := func(out *form.Out) {
		out.Typed("web_search_result_location")
		out.KeyString("url", citation.URL)
		out.KeyString("title", citation.Title)
		out.KeyString("encrypted_index", form.OpaqueSearch+form.NewID(""))
		out.KeyString("cited_text", providers.Cut(citation.Text, maxCited))
		out.End()
	}
	if !w.ask.Stream {
		write(&w.opened.citations)
		return
	}
	w.begins("content_block_delta")
	w.Out.Object("delta")
	w.Out.Literal(`"type":"citations_delta"`)
	w.Out.Key("citation")
	write(&w.Out)
	w.Out.End()
	w.ends()
}
