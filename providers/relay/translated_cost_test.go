package relay_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/relay"
)

// pieces are how each upstream begins a text, continues with it, and ends.
func pieces() map[string][3]string {
	return map[string][3]string{
		"chat": {
			`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n",
			`data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}],"usage":null}` +
				"\n\n",
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}` + "\n\n" +
				lastWord,
		},
		"responses": {
			`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[]}}` +
				"\n\n",
			`data: {"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","content_index":0,"delta":"Hel","logprobs":[]}` + "\n\n",
			`data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Hel"}]}],"usage":{"input_tokens":7,"output_tokens":9}}}` + "\n\n",
		},
		"messages": {
			`data: {"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}` + "\n\n",
			messagesEnd,
		},
		"gemini": {
			`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}]}` + "\n\n",
			`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":7,"totalTokenCount":7}}` + "\n\n",
			`data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":9}}` + "\n\n",
		},
	}
}

// everyTranslation gives the streamed call of each client, and a relay to each upstream of another format whose answer has so many
// pieces of text, which come one by one.
func everyTranslation(tb testing.TB, texts int, each func(name string, r *relay.Relay, call *providers.Call, sent *[]request)) {
	tb.Helper()
	for source, from := range clients() {
		call := &providers.Call{Endpoint: from.endpoint, Model: "m", Stream: true, Content: providers.Content{Body: []byte(from.body)}, Token: "t"}
		if from.streams != (providers.Endpoint{}) {
			call.Endpoint = from.streams
		}
		for target, to := range servers() {
			if source == target {
				continue
			}
			said := pieces()[target]
			all := strings.SplitAfter(said[0]+strings.Repeat(said[1], texts)+said[2], "\n\n")
			answer := func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				body := io.NopCloser(&again{pieces: all})
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
			}
			r, _, sent := translating(tb, nil, scripted{
				vendor: to.vendor, answer: answer,
				change: func(c *providers.Channel) { c.Dialect = to.dialect },
			})
			each(source+" on "+target, r, call, sent)
		}
	}
}

// TestTextsAllocateNothing: a further piece of text costs no memory in any pair, except for what Responses repeats at its end.
func TestTextsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("pools do not keep what they have")
	}
	buf := make([]byte, 4<<10)
	allocations := make(map[string]float64)
	const few, many = 100, 1100
	for _, texts := range []int{few, many} {
		everyTranslation(t, texts, func(name string, r *relay.Relay, call *providers.Call, sent *[]request) {
			n := testing.AllocsPerRun(5, func() {
				*sent = (*sent)[:0]
				answer, err := r.Do(t.Context(), "default", call)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for err == nil {
					_, err = answer.Body.Read(buf)
				}
				if !errors.Is(err, io.EOF) {
					t.Fatalf("%s: %v", name, err)
				}
				answer.Body.Close()
			})
			if more := n - allocations[name]; texts == many && more > (many-few)/50 {
				t.Errorf("%s: %v allocations for %d more pieces of text", name, more, many-few)
			}
			allocations[name] = n
		})
	}
}

// TestStreamsHoldLittle: a translated stream that waits holds no more than 12 KiB in the relay, all of its call and its answer counted.
// It is alone while it runs, since it counts the process's memory.
func TestStreamsHoldLittle(t *testing.T) {
	if raceDetector {
		t.Skip("the detector has memory of its own")
	}
	const streams, most = 200, 12 << 10
	everyTranslation(t, 100, func(name string, r *relay.Relay, call *providers.Call, sent *[]request) {
		buf := make([]byte, 4<<10)
		open := func() *relay.Answer {
			answer, err := r.Do(t.Context(), "default", call)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for range 20 {
				if _, err := answer.Body.Read(buf); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			*sent = nil
			return answer
		}
		open().Body.Close()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var answers []*relay.Answer
		for range streams {
			answers = append(answers, open())
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if each := int64(after.HeapAlloc-before.HeapAlloc) / streams; each > most {
			t.Errorf("%s: %d bytes a stream, want at most %d", name, each, most)
		} else {
			t.Logf("%s: %d bytes a stream", name, each)
		}
		for _, answer := range answers {
			answer.Body.Close()
		}
	})
}
