package translatetest

import (
	"bytes"
	"testing"

	"modelrelay/providers/rawjson"
)

// CheckGemini fails the test unless Gemini's SDKs accept an answer: server-sent events, one JSON array, or one document. Each piece has
// candidates with parts, no candidate continues after its finishReason, all have one, the counts add up and do not change, and all pieces
// have one responseId and one modelVersion. See GenerateContentResponse in google.golang.org/genai and validateResponse in its chats.
func CheckGemini(tb testing.TB, answer []byte) {
	tb.Helper()
	c := geminiCheck{t: tb, finished: make(map[int64]bool)}
	for i, piece := range geminiPieces(tb, answer) {
		c.piece(i, piece)
	}
	if len(c.finished) == 0 {
		tb.Error("the answer has no candidate")
	}
	for index, finished := range c.finished {
		if !finished {
			tb.Errorf("candidate %d has no finishReason", index)
		}
	}
}

// geminiPieces splits an answer.
func geminiPieces(tb testing.TB, answer []byte) (pieces []rawjson.Value) {
	tb.Helper()
	if bytes.HasPrefix(answer, []byte("data: ")) {
		for event := range bytes.SplitSeq(bytes.TrimSuffix(answer, []byte("\r\n\r\n")), []byte("\r\n\r\n")) {
			data, found := bytes.CutPrefix(event, []byte("data: "))
			if !found || bytes.ContainsAny(data, "\r\n") {
				tb.Fatalf("%q is no event", event)
			}
			pieces = append(pieces, rawjson.Trim(data))
		}
	} else if document := rawjson.Trim(answer); document.IsArray() && rawjson.Valid(document) {
		for _, piece := range document.Items() {
			pieces = append(pieces, piece)
		}
	} else {
		pieces = append(pieces, document)
	}
	for _, piece := range pieces {
		if !rawjson.Valid(piece) || !piece.IsObject() {
			tb.Fatalf("%q is no JSON object", piece)
		}
	}
	return pieces
}

type geminiCheck struct {
	t        testing.TB
	finished map[int64]bool
	id       string
	counted  bool
}

func (c *geminiCheck) piece(n int, v rawjson.Value) {
	c.t.Helper()
	id := v.Get("responseId").Text().String() + " of " + v.Get("modelVersion").Text().String()
	if v.Get("responseId").Text().Empty() || v.Get("modelVersion").Text().Empty() || n > 0 && id != c.id {
		c.t.Errorf("piece %d: got the id %q behind %q", n, id, c.id)
	}
	c.id = id
	usage := v.Get("usageMetadata")
	if c.counted && usage == nil {
		c.t.Errorf("piece %d: the counts are gone", n)
	}
	if usage != nil {
		c.counted = true
		input, _ := usage.Get("promptTokenCount").Int()
		output, _ := usage.Get("candidatesTokenCount").Int()
		thoughts, _ := usage.Get("thoughtsTokenCount").Int()
		if total, ok := usage.Get("totalTokenCount").Int(); !ok || total != input+output+thoughts || output < 0 {
			c.t.Errorf("piece %d: the counts %s do not add up", n, usage)
		}
	}
	if v.Get("candidates").Len() == 0 {
		c.t.Errorf("piece %d has no candidates: %s", n, v)
	}
	for _, candidate := range v.Get("candidates").Items() {
		c.candidate(n, candidate)
	}
}

func (c *geminiCheck) candidate(n int, v rawjson.Value) {
	c.t.Helper()
	index, ok := v.Get("index").Int()
	if !ok || index < 0 {
		c.t.Errorf("piece %d: a candidate has no index", n)
	}
	if c.finished[index] {
		c.t.Errorf("piece %d: candidate %d goes on behind its finishReason", n, index)
	}
	c.finished[index] = !v.Get("finishReason").Text().Empty()
	if !v.At("content", "role").Text().Is("model") || v.At("content", "parts").Len() == 0 {
		c.t.Errorf("piece %d: the content %s has no role or no parts", n, v.Get("content"))
	}
	for _, part := range v.At("content", "parts").Items() {
		c.part(n, part)
	}
}

// part checks that a part has one of text and functionCall.
func (c *geminiCheck) part(n int, v rawjson.Value) {
	c.t.Helper()
	call, text := v.Get("functionCall"), v.Get("text")
	switch {
	case call == nil && text.Text() != nil:
	case text == nil && call.IsObject():
		if call.Get("name").Text().Empty() || !call.Get("args").IsObject() {
			c.t.Errorf("piece %d: the call %s has no name or no args", n, call)
		}
		if v.Get("thought") != nil {
			c.t.Errorf("piece %d: a call is no thought", n)
		}
	default:
		c.t.Errorf("piece %d: the part %s is neither a text nor a call", n, v)
	}
	if signature := v.Get("thoughtSignature"); signature != nil && signature.Text().Empty() {
		c.t.Errorf("piece %d: the signature %s is empty", n, signature)
	}
}
