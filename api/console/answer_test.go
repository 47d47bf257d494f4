package console

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestAnswersOfCalls: the text and the pictures of every format, once; anything else as it is, and never more than the bound.
func TestAnswersOfCalls(t *testing.T) {
	t.Parallel()
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n0123456789"))
	page := base64.StdEncoding.EncodeToString([]byte("<html><script>alert(1)</script>"))
	const stream = "text/event-stream"
	for name, test := range map[string]struct {
		kind, body, text string
		images, links    int
	}{
		"chat":             {"application/json", `{"choices":[{"message":{"role":"assistant","content":"Hello"}}]}`, "Hello", 0, 0},
		"chat stream":      {stream, "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}\n\ndata: [DONE]\n\n", "Hello", 0, 0},
		"responses":        {"application/json", `{"instructions":"x","output":[{"type":"message","content":[{"type":"output_text","text":"Hello"}]}]}`, "Hello", 0, 0},
		"responses stream": {stream, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"content\":[{\"text\":\"Hello\"}]}]}}\n\n", "Hello", 0, 0},
		"messages":         {"application/json", `{"content":[{"type":"text","text":"Hello"}]}`, "Hello", 0, 0},
		"messages stream":  {stream, "data: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n", "Hello", 0, 0},
		"gemini":           {"application/json", `{"candidates":[{"content":{"parts":[{"text":"Hel"},{"text":"lo"},{"inlineData":{"mimeType":"image/png","data":"` + png + `"}}]}}]}`, "Hello", 1, 0},
		"interaction":      {"application/json", `{"steps":[{"type":"thought","signature":"x"},{"type":"model_output","content":[{"type":"text","text":"Hello"},{"type":"image","data":"` + png + `"}]}]}`, "Hello", 1, 0},
		"its stream":       {stream, "event: step.delta\ndata: {\"event_type\":\"step.delta\",\"delta\":{\"type\":\"text\",\"text\":\"Hello\"}}\n\nevent: interaction.completed\ndata: {\"event_type\":\"interaction.completed\",\"interaction\":{\"id\":\"call_0\"}}\n\nevent: done\ndata: [DONE]\n\n", "Hello", 0, 0},
		"image":            {"application/json", `{"data":[{"b64_json":"` + png + `"},{"url":"https://cdn.test/a.png"},{"url":"javascript:alert(1)"}]}`, "", 1, 1},
		"no image":         {"application/json", `{"data":[{"b64_json":"` + page + `"}]}`, "{\n  \"data\": [\n    {\n      \"b64_json\": \"" + page + "\"\n    }\n  ]\n}", 0, 0},
		"transcription":    {"application/json", `{"text":"Hello","segments":[{"text":"Hello"}]}`, "Hello", 0, 0},
		"plain":            {"text/plain", "Hello", "Hello", 0, 0},
		"error":            {"application/json", `{"error":{"code":1}}`, "{\n  \"error\": {\n    \"code\": 1\n  }\n}", 0, 0},
	} {
		answer := &callAnswer{Type: test.kind}
		answer.show([]byte(test.body))
		if answer.Text != test.text || len(answer.Images) != test.images || len(answer.Links) != test.links || answer.Cut {
			t.Errorf("%s: got %+v", name, answer)
		}
	}
	long := &callAnswer{Type: "text/plain"}
	if long.show([]byte(strings.Repeat("x", 2*answerText))); len(long.Text) != answerText || !long.Cut {
		t.Errorf("a long answer: %d bytes, cut %t", len(long.Text), long.Cut)
	}
}
