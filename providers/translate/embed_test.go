package translate_test

import (
	"encoding/base64"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate"
	"modelrelay/providers/translate/form"
)

// texts counts the texts of a prompt, which is estimate enough.
func texts(p *form.Prompt) int64 { return int64(len(p.System)) }

func openAIEmbeddings() providers.Endpoint {
	return providers.Endpoint{Format: providers.OpenAI, Operation: providers.Embeddings}
}

func geminiEmbeddings(operation providers.Operation) providers.Endpoint {
	return providers.Endpoint{Format: providers.Gemini, Operation: operation}
}

// compact takes the spaces out of a document.
func compact(t *testing.T, document string) string {
	t.Helper()
	value := jsontext.Value(document)
	if err := value.Compact(); err != nil {
		t.Fatalf("%s: %v", document, err)
	}
	return string(value)
}

// The shapes are those of CreateEmbeddingRequest on https://platform.openai.com/docs/api-reference/embeddings and of
// https://ai.google.dev/api/embeddings.
func TestEmbeds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		from               providers.Endpoint
		body               string
		to                 providers.Operation
		sent               string
		dropped            []string
		answer, translated string
	}{
		"one text": {
			from: openAIEmbeddings(), body: `{"model":"m","input":"a","user":"u","encoding_format":"float"}`,
			to: providers.Embeddings, sent: `{"model":"models/up","content":{"parts":[{"text":"a"}]}}`, dropped: []string{"user"},
			answer:     `{"embedding":{"values":[0.1, -2e-3]},"usageMetadata":{"promptTokenCount":7}}`,
			translated: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-2e-3]}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}`,
		},
		// QuantumNous/new-api#1500: all of several texts.
		"several texts": {
			from: openAIEmbeddings(), body: `{"model":"m","input":["a","b"],"dimensions":2}`,
			to:   providers.BatchEmbeddings,
			sent: `{"requests":[{"model":"models/up","content":{"parts":[{"text":"a"}]},"outputDimensionality":2},{"model":"models/up","content":{"parts":[{"text":"b"}]},"outputDimensionality":2}]}`,
			// A vector of a size that was asked for is of length one.
			answer: `{"embeddings":[{"values":[3,4]},{"values":[0,0]}]}`,
			translated: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]},{"object":"embedding","index":1,"embedding":[0,0]}],
				"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}`,
		},
		"base64": {
			from: openAIEmbeddings(), body: `{"model":"m","input":["a"],"encoding_format":"base64"}`,
			to: providers.Embeddings, sent: `{"model":"models/up","content":{"parts":[{"text":"a"}]}}`,
			answer: `{"embedding":{"values":[1,-2]}}`,
			translated: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + base64.StdEncoding.EncodeToString([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}) + `"}],
				"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`,
		},
		"one content": {
			from: geminiEmbeddings(providers.Embeddings),
			body: `{"model":"models/m","content":{"parts":[{"text":"a"},{"text":"b"}]},"taskType":"RETRIEVAL_QUERY","title":"t","output_dimensionality":8}`,
			to:   providers.Embeddings, sent: `{"model":"up","input":"a\nb","encoding_format":"float","dimensions":8}`,
			dropped:    []string{"taskType", "title"},
			answer:     `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,0.2]}],"model":"up","usage":{"prompt_tokens":7,"total_tokens":7}}`,
			translated: `{"embedding":{"values":[0.1,0.2]},"usageMetadata":{"promptTokenCount":7}}`,
		},
		"several contents": {
			from: geminiEmbeddings(providers.BatchEmbeddings),
			body: `{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"embedContentConfig":{"taskType":"X","outputDimensionality":2}},{"content":{"parts":[{"text":"b"}]},"outputDimensionality":2}]}`,
			to:   providers.Embeddings, sent: `{"model":"up","input":["a","b"],"encoding_format":"float","dimensions":2}`,
			dropped:    []string{"requests[].taskType"},
			answer:     `{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1]}]}`,
			translated: `{"embeddings":[{"values":[1]},{"values":[2]}],"usageMetadata":{"promptTokenCount":2}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var loss form.Loss
			e, fault := translate.EmbedRequest(&providers.Call{Endpoint: test.from, Model: "m", Content: providers.Content{Body: []byte(test.body)}},
				"up", texts, &loss)
			if fault != nil {
				t.Fatal(fault)
			}
			if got := string(slices.Concat(e.Pieces...)); got != test.sent || e.Endpoint.Operation != test.to ||
				e.Endpoint.Format == test.from.Format {
				t.Errorf("got %v %s, want %s", e.Endpoint, got, test.sent)
			}
			if !slices.Equal(loss.Dropped, test.dropped) || loss.Changed != nil {
				t.Errorf("got %+v, want %v", loss, test.dropped)
			}
			got, fault := translate.EmbedAnswer(e, rawjson.Value(test.answer))
			if fault != nil {
				t.Fatal(fault)
			}
			if want := compact(t, test.translated); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestEmbedRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from        providers.Endpoint
		body, param string
	}{
		{openAIEmbeddings(), `{"input":[1,2]}`, "input"},
		{openAIEmbeddings(), `{"input":[[1,2]]}`, "input"},
		{openAIEmbeddings(), `{"input":[]}`, "input"},
		{geminiEmbeddings(providers.Embeddings), `{"content":{"parts":[{"text":"a"},{"inlineData":{}}]}}`, "content.parts[1]"},
		{geminiEmbeddings(providers.Embeddings), `{"content":{"parts":[]}}`, "content"},
		{
			geminiEmbeddings(providers.BatchEmbeddings),
			`{"requests":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"a"}]},"outputDimensionality":3}]}`,
			"requests[1].outputDimensionality",
		},
		{geminiEmbeddings(providers.BatchEmbeddings), `{"requests":[{"content":{"parts":[{"inlineData":{}}]}}]}`, "requests[0].content.parts[0]"},
	} {
		var loss form.Loss
		_, fault := translate.EmbedRequest(&providers.Call{Endpoint: test.from, Content: providers.Content{Body: []byte(test.body)}}, "up", texts,
			&loss)
		if fault == nil || fault.Kind != providers.Invalid || fault.Param != test.param {
			t.Errorf("%s: got %+v, want one of %s", test.body, fault, test.param)
		}
	}
}

func TestEmbedAnswersFail(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		from   providers.Endpoint
		body   string
		answer string
	}{
		{openAIEmbeddings(), `{"input":["a","b"]}`, `{"embeddings":[{"values":[1]}]}`},
		{openAIEmbeddings(), `{"input":"a"}`, `{"embeddings":[{"values":1}]}`},
		{openAIEmbeddings(), `{"input":"a"}`, `{}`},
		{geminiEmbeddings(providers.Embeddings), `{"content":{"parts":[{"text":"a"}]}}`, `{"data":[]}`},
		{geminiEmbeddings(providers.Embeddings), `{"content":{"parts":[{"text":"a"}]}}`, `{"data":[{"index":4,"embedding":[1]}]}`},
		{geminiEmbeddings(providers.Embeddings), `{"content":{"parts":[{"text":"a"}]}}`, `{"data":[{"index":0,"embedding":"AACAPw=="}]}`},
	} {
		var loss form.Loss
		e, fault := translate.EmbedRequest(&providers.Call{Endpoint: test.from, Content: providers.Content{Body: []byte(test.body)}}, "up", texts,
			&loss)
		if fault != nil {
			t.Fatal(fault)
		}
		if got, fault := translate.EmbedAnswer(e, rawjson.Value(test.answer)); fault == nil || fault.Kind != providers.Upstream {
			t.Errorf("%s: got %s, %v", test.answer, got, fault)
		}
	}
}

func FuzzEmbedAnswer(f *testing.F) {
	f.Add([]byte(`{"embedding":{"values":[1e400,"x",-0.5]}}`), []byte(`{"input":"a","dimensions":2}`))
	f.Add([]byte(`{"data":[{"index":0,"embedding":[1]}]}`), []byte(`{"content":{"parts":[{"text":"a"}]}}`))
	f.Fuzz(func(t *testing.T, answer, body []byte) {
		if !rawjson.Valid(answer) || !rawjson.Valid(body) {
			return
		}
		for _, from := range []providers.Endpoint{
			openAIEmbeddings(), geminiEmbeddings(providers.Embeddings),
			geminiEmbeddings(providers.BatchEmbeddings),
		} {
			var loss form.Loss
			e, fault := translate.EmbedRequest(&providers.Call{Endpoint: from, Model: "m", Content: providers.Content{Body: body}}, "up", texts,
				&loss)
			if fault != nil {
				continue
			}
			if sent := slices.Concat(e.Pieces...); !rawjson.Valid(sent) {
				t.Errorf("sent %s", sent)
			}
			if got, fault := translate.EmbedAnswer(e, rawjson.Trim(answer)); fault == nil && !rawjson.Valid(got) {
				t.Errorf("got %s", got)
			}
		}
	})
}
