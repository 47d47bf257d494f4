package upstream

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
)

type embeddingRequest struct {
	Model      string `json:"model"`
	Input      texts  `json:"input"`
	Format     string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`
}

func parseEmbedding(x *exchange) *problem {
	q := new(embeddingRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.Model, strings.Join(q.Input, " ")
	if p := checkModel(x); p != nil {
		return p
	}
	if len(q.Input) == 0 {
		return missing("input")
	}
	return oneOf("encoding_format", q.Format, "float", "base64")
}

func answerEmbedding(x *exchange) {
	q := requestOf[embeddingRequest](x)
	x.accept()
	type entry struct {
		Object    string `json:"object"`
		Index     int    `json:"index"`
		Embedding any    `json:"embedding"`
	}
	var answer struct {
		Object string  `json:"object"`
		Data   []entry `json:"data"`
		Model  string  `json:"model"`
		Usage  struct {
			Prompt int `json:"prompt_tokens"`
			Total  int `json:"total_tokens"`
		} `json:"usage"`
	}
	answer.Object, answer.Model = "list", q.Model
	answer.Usage.Prompt = tokens(q.Input.size())
	answer.Usage.Total = answer.Usage.Prompt
	dimensions := q.Dimensions
	if dimensions <= 0 {
		dimensions = 1536
	}
	for i, text := range q.Input {
		e := entry{"embedding", i, vectorOf(text, dimensions)}
		if q.Format == "base64" {
			e.Embedding = floatBytes(vectorOf(text, dimensions))
		}
		answer.Data = append(answer.Data, e)
	}
	openAIHeaders(x)
	limitHeaders(x)
	x.json(http.StatusOK, answer)
}

// vectorOf returns a vector of length one that depends on the text alone.
func vectorOf(text string, dimensions int) []float32 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))                  // never fails
	source := rand.New(rand.NewPCG(h.Sum64(), 1)) //nolint:gosec // the same in every run is what is wanted
	v := make([]float32, dimensions)
	var sum float64
	for i := range v {
		v[i] = float32(source.Float64()*2 - 1)
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// floatBytes is the vendor's base64 form: little-endian float32.
func floatBytes(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
