package translate

import (
	"bytes"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/responses"
)

// The beginnings of state of other vendors' that is in a place of the client's format, as JSON; that of Gemini's format is
// base64 of the others.
const (
	enveloped       = `"mr1.`
	envelopedBase64 = `"` + gemini.SealedPrefix
)

// Without are the edits that take out of a call in its upstream's own format what translations of earlier answers put there
// for other vendors. There are none where the conversation has always been with one.
func Without(call providers.Call) []providers.Edit {
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
		edits = take(call.Body, messages, isForeign) // the vendor takes no turn without content
		for _, message := range messages.Items() {
			if !isForeign(message) {
				edits = append(edits, take(call.Body, message.Get("content"), foreignBlocks(message.Get("content")))...)
				edits = append(edits, uncited(call.Body, message.Get("content"))...)
			}
		}
	case providers.Responses, providers.CompactResponse:
		input := root.Get("input")
		edits = take(call.Body, input, func(item rawjson.Value) bool {
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

// isForeignThought reports whether a block of a message holds another vendor's state.
func isForeignThought(block rawjson.Value) bool {
	return bytes.HasPrefix(block.Get("signature"), []byte(enveloped))
}

// foreignBlocks knows the blocks of a message that another vendor's answer left: its state, and its searches of the web.
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

// uncited are the edits that take the citations of another vendor's pages out of texts.
func uncited(body []byte, content rawjson.Value) (edits []providers.Edit) {
	for _, block := range content.Items() {
		if citations := block.Get("citations"); bytes.Contains(citations, []byte(`"`+form.OpaqueSearch)) {
			edits = append(edits, providers.Edit{At: spanOf(body, citations), Text: []byte("null")})
		}
	}
	return edits
}

// isForeign reports whether a message holds nothing but other vendors' state.
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

// take are the edits that take elements out of an array of the body.
func take(body []byte, array rawjson.Value, out func(rawjson.Value) bool) (edits []providers.Edit) {
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
		switch { // with the comma on one side
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

// unsigned are the edits that put Google's stand-in in place of signatures that are not Google's.
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

// spanOf is where a value is in the body that it was found in: it is a part of the same array, whose end both share.
func spanOf(body []byte, value rawjson.Value) providers.Span {
	from := cap(body) - cap(value)
	return providers.Span{From: from, To: from + len(value)}
}
