package upstream

import (
	"net/http"
	"strings"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/gemini"
)

type geminiModelEntry struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Display string   `json:"displayName"`
	Input   int      `json:"inputTokenLimit"`
	Output  int      `json:"outputTokenLimit"`
	Methods []string `json:"supportedGenerationMethods"`
}

func newGeminiModel(id string) geminiModelEntry {
	methods := []string{"generateContent", "countTokens", "streamGenerateContent"}
	if strings.Contains(id, "embedding") {
		methods = []string{"embedContent", "batchEmbedContents", "countTokens"}
	}
	return geminiModelEntry{"models/" + id, "001", id, 1048576, 65536, methods}
}

func answerGeminiModels(x *exchange) {
	x.accept()
	var entries []geminiModelEntry
	for _, id := range []string{"gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-image", "gemini-embedding-001"} {
		entries = append(entries, newGeminiModel(id))
	}
	x.json(http.StatusOK, map[string]any{"models": entries})
}

func parseGeminiModel(x *exchange) *problem {
	x.model = x.r.PathValue("model")
	if unknownModel(x.model) {
		return &problem{status: http.StatusNotFound, kind: kindNotFound, message: "Model is not found: models/" + x.model + " for api version v1beta"}
	}
	return nil
}

func answerGeminiModel(x *exchange) {
	x.accept()
	x.json(http.StatusOK, newGeminiModel(x.model))
}

type geminiEmbedRequest struct {
	Content    *geminiContent       `json:"content"`
	Dimensions int                  `json:"outputDimensionality"`
	Requests   []geminiEmbedRequest `json:"requests"` // of a batch
}

func parseGeminiEmbed(x *exchange, checker *gemini.Checker) *problem {
	if p := geminiModel(x); p != nil {
		return p
	}
	q := new(geminiEmbedRequest)
	x.request = q
	batch := x.operation.name == "embed.batch"
	if p := readGemini(x, q, func(v map[string]any) (gemini.Body, *strict.Refusal) { return checker.Embed(v, batch) }); p != nil {
		return p
	}
	if !batch {
		q.Requests = []geminiEmbedRequest{{Content: q.Content, Dimensions: q.Dimensions}}
	}
	for _, one := range q.Requests {
		if one.Content == nil || len(one.Content.Parts) == 0 {
			return &problem{status: http.StatusBadRequest, kind: kindInvalid, message: "* EmbedContentRequest.content: contents is not specified\n"}
		}
	}
	return nil
}

type geminiEmbedding struct {
	Values []float32 `json:"values"`
}

func answerGeminiEmbed(x *exchange) {
	q := requestOf[geminiEmbedRequest](x)
	x.accept()
	embeddings := []geminiEmbedding{}
	for _, one := range q.Requests {
		var text strings.Builder
		for _, part := range one.Content.Parts {
			if part.Text != nil {
				text.WriteString(*part.Text)
			}
		}
		dimensions := one.Dimensions
		if dimensions <= 0 {
			dimensions = 3072
		}
		embeddings = append(embeddings, geminiEmbedding{vectorOf(text.String(), dimensions)})
	}
	if x.operation.name == "embed" {
		x.json(http.StatusOK, map[string]any{"embedding": embeddings[0]})
		return
	}
	x.json(http.StatusOK, map[string]any{"embeddings": embeddings})
}
