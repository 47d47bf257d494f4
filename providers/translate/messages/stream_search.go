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
	var query, call, result form.Out
	query.JSON(`{"query":?}`, step.Query)
	input := rawjson.Value(query.Bytes())
	if w.ask.Stream {
		input = rawjson.Value("{}") // the query follows in a delta
	}
	call.JSON(`{"type":"server_tool_use","id":?,"name":?,"input":?}`, id, searchName, input)
	w.alone(call.Bytes(), rawjson.Quote(string(query.Bytes())))
	result.JSON(`{"type":"web_search_tool_result","tool_use_id":?,"content":[`, id)
	for _, source := range step.Sources {
		title := cmp.Or(source.Title, source.URL) // OpenAI's searches have no titles, and clients show the title
		result.JSON(`{"type":"web_search_result","url":?,"title":?,"encrypted_content":?,"page_age":null}`,
			source.URL, title, form.OpaqueSearch+form.NewID(""))
	}
	result.JSON("]}")
	w.alone(result.Bytes(), nil)
}

// alone writes a separate block, in a stream with a delta of its input, unless that is nil.
func (w *message) alone(block []byte, input rawjson.Text) {
	if !w.ask.Stream {
		w.inContent().Raw(block)
		return
	}
	w.begins("content_block_start")
	w.Out.KeyRaw("content_block", block)
	w.Out.EndEvent()
	if input != nil {
		w.delta(inputDelta, input)
	}
	w.begins("content_block_stop")
	w.Out.EndEvent()
	w.index++
}

// cite writes a citation of the open text.
func (w *message) cite(event *form.Event) {
	if w.opened.kind != textBlock || w.opened.of != event.Block {
		return
	}
	var location form.Out
	location.JSON(`{"type":"web_search_result_location","url":?,"title":?,"encrypted_index":?,"cited_text":?}`, event.Citation.URL,
		event.Citation.Title, form.OpaqueSearch+form.NewID(""), providers.Cut(event.Citation.Text, maxCited))
	if w.ask.Stream {
		w.delta(`{"type":"citations_delta","citation":?}`, rawjson.Value(location.Bytes()))
	} else {
		w.opened.citations.Raw(location.Bytes())
	}
}
