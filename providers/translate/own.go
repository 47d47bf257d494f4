package translate

import (
	"bytes"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/responses"
)

// The beginnings, as JSON, of another vendor's state in a field of the client's format; in Gemini's format it is the base64 of the others.
const (
	enveloped       = `"mr1.`
	envelopedBase64 = `"` + gemini.SealedPrefix
)

// Without returns the edits that remove other vendors' state, which translations of earlier answers added, from a call in its upstream's
// own format. There are none for a conversation with one vendor.
func Without(call *providers.Call) []providers.Edit {
	mark := enveloped
	if call.Endpoint.Format == providers.Gemini {
		mark = envelopedBase64
	}
	if !bytes.Contains(call.Body, []byte(mark)) {
		return nil
	}
	var edits []providers.Edit
	root := rawjson.Trim(call.Body)
	switch call.Endpoint.Operation {
	case providers.Messages, providers.CountTokens:
		if call.Endpoint.Format == providers.Gemini {
			return unsigned(call.Body, root)
		}
		messages := root.Get("messages")
		edits = remove(call.Body, messages, isForeign) // the vendor accepts no turn without content
		for _, message := range messages.Items() {
			if !isForeign(message) {
				edits = append(edits, remove(call.Body, message.Get("content"), foreignBlocks(message.Get("content")))...)
				edits = append(edits, uncited(call.Body, message.Get("content"))...)
			}
		}
	case providers.Responses, providers.CompactResponse:
		input := root.Get("input")
		edits = remove(call.Body, input, func(item rawjson.Value) bool {
			return !isCompaction(item) && bytes.HasPrefix(item.Get("encrypted_content"), []byte(enveloped))
		})
		for _, item := range input.Items() {
			if !isCompaction(item) {
				continue
			}
			if text, ours := responses.Summary(call, item); ours {
				edits = append(edits, providers.Edit{At: spanOf(call.Body, item), Text: text})
			}
		}
	case providers.GenerateContent, providers.StreamContent:
		return unsigned(call.Body, root)
	}
	return edits
}

func isCompaction(item rawjson.Value) bool { return item.Get("type").Text().Is("compaction") }

// isForeignThought reports whether a block of a message contains another vendor's state.
func isForeignThought(block rawjson.Value) bool {
	return bytes.HasPrefix(block.Get("signature"), []byte(enveloped))
}

// foreignBlocks returns a function that reports blocks of a message from another vendor's answer: its state, and its web searches.
func foreignBlocks(content rawjson.Value) func(rawjson.Value) bool {
	searches := make(map[string]bool)
	for _, block := range content.Items() {
		if block.Get("type").Text().Is("web_search_tool_result") && bytes.Contains(block, []byte(`"`+form.OpaqueSearch)) {
			searches[block.Get("tool_use_id").Text().String()] = true
		}
	}
	return func(block rawjson.Value) bool {
		switch kind := block.Get("type").Text(); {
		case kind.Is("web_search_tool_result"):
			return searches[block.Get("tool_use_id").Text().String()]
		case kind.Is("server_tool_use"):
			return searches[block.Get("id").Text().String()]
		}
		return isForeignThought(block)
	}
}

// uncited returns the edits that remove the citations of another vendor's pages from texts.
func uncited(body []byte, content rawjson.Value) (edits []providers.Edit) {
	for _, block := range content.Items() {
		if citations := block.Get("citations"); bytes.Contains(citations, []byte(`"`+form.OpaqueSearch)) {
			edits = append(edits, providers.Edit{At: spanOf(body, citations), Text: []byte("null")})
		}
	}
	return edits
}

// isForeign reports whether a message contains only other vendors' state.
func isForeign(message rawjson.Value) bool {
	blocks := 0
	for _, block := range message.Get("content").Items() {
		if !isForeignThought(block) {
			return false
		}
		blocks++
	}
	return blocks > 0
}

// remove returns the edits that remove elements from an array of the body.
func remove(body []byte, array rawjson.Value, out func(rawjson.Value) bool) (edits []providers.Edit) {
	var elements []rawjson.Value
	for _, element := range array.Items() {
		elements = append(elements, element)
	}
	for i := 0; i < len(elements); i++ {
		if !out(elements[i]) {
			continue
		}
		last := i
		for last+1 < len(elements) && out(elements[last+1]) {
			last++
		}
		at := providers.Span{From: spanOf(body, elements[i]).From, To: spanOf(body, elements[last]).To}
		switch { // remove one comma, too
		case last+1 < len(elements):
			at.To = spanOf(body, elements[last+1]).From
		case i > 0:
			at.From = spanOf(body, elements[i-1]).To
		}
		edits = append(edits, providers.Edit{At: at})
		i = last
	}
	return edits
}

// unsigned returns the edits that replace signatures that are not Google's with Google's placeholder.
func unsigned(body []byte, root rawjson.Value) (edits []providers.Edit) {
	if whole := root.GetCamel("generateContentRequest"); whole.IsObject() {
		root = whole
	}
	for _, content := range root.Get("contents").Items() {
		for _, part := range content.Get("parts").Items() {
			if signature := part.GetCamel("thoughtSignature"); bytes.HasPrefix(signature, []byte(envelopedBase64)) {
				edits = append(edits, providers.Edit{At: spanOf(body, signature), Text: rawjson.Quote(gemini.StandIn)})
			}
		}
	}
	return edits
}

// spanOf returns the span of a value in its body. The value is a part of the body's array, so both have the same end of capacity.
func spanOf(body []byte, value rawjson.Value) providers.Span {
	from := cap(body) - cap(value)
	return providers.Span{From: from, To: from + len(value)}
}
