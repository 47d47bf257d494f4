package fakeopenai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"net/http"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
)

type embeddingRequest struct {
	Model      string `json:"model"`
	Input      texts  `json:"input"`
	Format     string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`
}

func parseEmbedding(x *fake.Exchange) *fake.Problem {
	q := new(embeddingRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, strings.Join(q.Input, " ")
	if p := CheckModel(x); p != nil {
		return p
	}
	if len(q.Input) == 0 {
		return Missing("input")
	}
	return oneOf("encoding_format", q.Format, "float", "base64")
}

func answerEmbedding(x *fake.Exchange) {
	q := fake.RequestOf[embeddingRequest](x)
	x.Accept()
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
	answer.Usage.Prompt = chat.Tokens(q.Input.size())
	answer.Usage.Total = answer.Usage.Prompt
	dimensions := q.Dimensions
	if dimensions <= 0 {
		dimensions = 1536
	}
	for i, text := range q.Input {
		e := entry{"embedding", i, chat.VectorOf(text, dimensions)}
		if q.Format == "base64" {
			e.Embedding = floatBytes(chat.VectorOf(text, dimensions))
		}
		answer.Data = append(answer.Data, e)
	}
	setHeaders(x)
	limitHeaders(x)
	if x.JSON(http.StatusOK, answer) {
		x.Served(fake.Made{Input: answer.Usage.Prompt})
	}
}

// floatBytes is the vendor's base64 form: little-endian float32.
func floatBytes(v []float32) string {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}
