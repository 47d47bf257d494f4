package fakegemini

import (
	"net/http"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/gemini"
)

type modelEntry struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Display string   `json:"displayName"`
	Input   int      `json:"inputTokenLimit"`
	Output  int      `json:"outputTokenLimit"`
	Methods []string `json:"supportedGenerationMethods"`
}

func newModelEntry(id string) modelEntry {
	methods := []string{"generateContent", "countTokens", "streamGenerateContent"}
	if strings.Contains(id, "embedding") {
		methods = []string{"embedContent", "batchEmbedContents", "countTokens"}
	}
	return modelEntry{"models/" + id, "001", id, 1048576, 65536, methods}
}

func answerModels(x *fake.Exchange) {
	x.Accept()
	var entries []modelEntry
	for _, id := range []string{"gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-image", "gemini-embedding-001"} {
		entries = append(entries, newModelEntry(id))
	}
	x.JSON(http.StatusOK, map[string]any{"models": entries})
}

func parseModel(x *fake.Exchange) *fake.Problem {
	x.Model = x.HTTP.PathValue("model")
	if fake.UnknownModel(x.Model) {
		return &fake.Problem{
			Status: http.StatusNotFound, Kind: fake.NotFound,
			Message: "Model is not found: models/" + x.Model + " for api version v1beta",
		}
	}
	return nil
}

func answerModel(x *fake.Exchange) {
	x.Accept()
	x.JSON(http.StatusOK, newModelEntry(x.Model))
}

type embedRequest struct {
	Content    *content       `json:"content"`
	Dimensions int            `json:"outputDimensionality"`
	Requests   []embedRequest `json:"requests"` // of a batch
}

func parseEmbed(x *fake.Exchange, checker *gemini.Checker) *fake.Problem {
	if p := parseModelAction(x); p != nil {
		return p
	}
	q := new(embedRequest)
	x.Request = q
	batch := x.Operation.Name == "embed.batch"
	if p := readBody(x, q, func(v map[string]any) (gemini.Body, *strict.Refusal) { return checker.Embed(v, batch) }); p != nil {
		return p
	}
	if !batch {
		q.Requests = []embedRequest{{Content: q.Content, Dimensions: q.Dimensions}}
	}
	for _, one := range q.Requests {
		if one.Content == nil || len(one.Content.Parts) == 0 {
			return &fake.Problem{
				Status: http.StatusBadRequest, Kind: fake.Invalid,
				Message: "* EmbedContentRequest.content: contents is not specified\n",
			}
		}
	}
	return nil
}

type embedding struct {
	Values []float32 `json:"values"`
}

func answerEmbed(x *fake.Exchange) {
	q := fake.RequestOf[embedRequest](x)
	x.Accept()
	embeddings := []embedding{}
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
		embeddings = append(embeddings, embedding{chat.VectorOf(text.String(), dimensions)})
	}
	answer := map[string]any{"embeddings": embeddings}
	if x.Operation.Name == "embed" {
		answer = map[string]any{"embedding": embeddings[0]}
	}
	if x.JSON(http.StatusOK, answer) {
		x.Served(fake.Made{}) // the vendor names no tokens
	}
}
