package usage_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/relay/usage"
)

// chatShape is that of a chat whose client did not ask for the counts.
func chatShape() *usage.Shape {
	return usage.Compile(providers.UsageShape{
		Input: []string{"usage.prompt_tokens"}, Output: []string{"usage.completion_tokens"},
		Cached:  []string{"usage.prompt_tokens_details.cached_tokens"},
		Content: "choices",
	})
}

// read reads a stream in pieces of so many bytes, through a hider, and returns what the client sees.
func read(t *testing.T, stream []byte, piece int) (shown []byte, counted providers.Usage) {
	t.Helper()
	scanner := usage.NewScanner(chatShape(), true)
	shown, err := io.ReadAll(usage.NewHider(scanner, pieces{bytes.NewReader(stream), piece}))
	if err != nil {
		t.Fatal(err)
	}
	counted, _ = scanner.Usage()
	return shown, counted
}

// pieces reads so many bytes at a time.
type pieces struct {
	io.Reader

	size int
}

func (p pieces) Read(b []byte) (int, error) { return p.Reader.Read(b[:min(len(b), p.size)]) }

// TestSkippedEvents: events that are passed over as a whole mean what they mean byte by byte.
func TestSkippedEvents(t *testing.T) {
	t.Parallel()
	events := []string{
		`data: {"choices":[{"delta":{"content":"Hel"}}],"usage":null}` + "\n\n",
		`data: {"choices":[{"delta":{"content":"tokens \"prompt_tokens\":99"}}]}` + "\n\n",
		`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}` + "\n\n",
		`data: {"choices":[{"delta":{}}],"usage":{"prompt_tokens":8,"completion_tokens":3}}` + "\n\n",
		`data: {"choices":[]}` + "\n\n",
		"event: ping\ndata: {}\n\n",
		": sign of life\n\n", "\n", "\n\n\n", "\r\n", "data: x\r\n\r\n", "data: x\r\r", "data: a\ndata: b\n\n", "data: [DONE]\n\n", "broken",
		"\ndata",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var stream bytes.Buffer
		for range 1 + random.IntN(6) {
			stream.WriteString(events[random.IntN(len(events))])
		}
		want, counts := read(t, stream.Bytes(), 1)
		for _, piece := range []int{2, 7, 64, 4096} {
			got, counted := read(t, stream.Bytes(), piece)
			if !bytes.Equal(got, want) || counted != counts {
				t.Fatalf("%q in pieces of %d: got %q and %+v, want %q and %+v", stream.Bytes(), piece, got, counted, want, counts)
			}
		}
	}
}

// TestImageOfUnfinishedAnswer: an image counts as soon as it has come, also if the client leaves before the answer ends.
func TestImageOfUnfinishedAnswer(t *testing.T) {
	t.Parallel()
	shape := usage.Compile(providers.UsageShape{
		Input: []string{"usageMetadata.promptTokenCount"}, MediaTypes: []string{"candidates[].content.parts[].inlineData.mimeType"},
	})
	for _, stream := range []bool{false, true} {
		scanner := usage.NewScanner(shape, stream)
		answer := `{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}},`
		if stream {
			answer = "data: " + answer
		}
		scanner.Observe([]byte(answer))
		if counted, _ := scanner.Usage(); counted.Images != 1 {
			t.Errorf("stream %t: counted %d images", stream, counted.Images)
		}
	}
}
