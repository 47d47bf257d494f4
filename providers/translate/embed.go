package translate

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
)

// Embedding is a call for vectors in the upstream's format.
type Embedding struct {
	// Endpoint is that of the call, Pieces its body.
	Endpoint providers.Endpoint
	Pieces   providers.Payload

	from  providers.Endpoint
	model string // the public name
	// inputs is the number of requested vectors, estimated the approximate number of tokens of their texts.
	inputs    int
	estimated int64
	// scaled: the vectors must have length one; coded: each is the base64 of its numbers.
	scaled, coded bool

	texts []rawjson.Text // until they are written
	size  rawjson.Value  // of each vector; absent: the model's default
}

// EmbedRequest translates a client's call of OpenAI's embeddings to Gemini's embedContent or batchEmbedContents, or the other way round.
// model is the upstream's name. loss and the fault have the client's names of fields. estimate returns the tokens of a prompt.
func EmbedRequest(call *providers.Call, model string, estimate func(*form.Prompt) int64, loss *form.Loss) (*Embedding, *providers.Fault) {
	e := &Embedding{from: call.Endpoint, model: call.Model}
	var fault *providers.Fault
	body := rawjson.Trim(call.Body)
	switch {
	case call.Endpoint.Format == providers.OpenAI:
		fault = e.readOpenAI(body, loss)
	case call.Endpoint.Operation == providers.BatchEmbeddings:
		for i, request := range body.GetCamel("requests").Items() {
			if fault = e.readGemini(request, form.In("requests", i), loss); fault != nil {
				break
			}
		}
	default:
		fault = e.readGemini(body, form.Path{}, loss)
	}
	if fault != nil {
		return nil, fault
	}
	e.inputs = len(e.texts)
	prompt := &form.Prompt{System: make([]form.Block, e.inputs)}
	for i, text := range e.texts {
		prompt.System[i].Text = text
	}
	e.estimated = estimate(prompt)
	if call.Endpoint.Format == providers.OpenAI {
		e.writeGemini(model)
	} else {
		e.writeOpenAI(model)
	}
	e.texts, e.size = nil, nil
	return e, nil
}

func (e *Embedding) readOpenAI(body rawjson.Value, loss *form.Loss) *providers.Fault {
	for name, value := range body.Members() {
		switch {
		case value.Absent(), name.Is("model"):
		case name.Is("input"):
			if text := value.Text(); text != nil {
				e.texts = []rawjson.Text{text}
				continue
			}
			e.texts = nil
			for _, item := range value.Items() {
				text := item.Text()
				if text == nil {
					return form.Refusedf("input", form.Gemini, "which takes texts, not tokens.")
				}
				e.texts = append(e.texts, text)
			}
		case name.Is("dimensions"):
			e.size, e.scaled = value, true
		case name.Is("encoding_format"):
			e.coded = value.Text().Is("base64")
		default:
			loss.Drop(name.String())
		}
	}
	if len(e.texts) == 0 {
		return providers.InvalidField("input", "There is nothing to embed.")
	}
	return nil
}

// readGemini reads an EmbedContentRequest, with or without its separate configuration object.
func (e *Embedding) readGemini(request rawjson.Value, at form.Path, loss *form.Loss) *providers.Fault {
	var texts []rawjson.Text
	size := rawjson.Value(nil)
	lose := func(name rawjson.Text) { loss.Drop(at.Field(rawjson.Camel(name.String())).Name()) }
	for name, value := range request.Members() {
		switch {
		case value.Absent(), name.IsCamel("model"):
		case name.IsCamel("content"):
			for i, part := range value.GetCamel("parts").Items() {
				text := part.GetCamel("text").Text()
				if text == nil {
					return form.Refusedf(at.Field("content").Item("parts", i).String(), form.Chat, "which can only embed texts.")
				}
				texts = append(texts, text)
			}
		case name.IsCamel("outputDimensionality"):
			size = value
		case name.IsCamel("embedContentConfig"):
			for name, value := range value.Members() {
				switch {
				case value.Absent():
				case name.IsCamel("outputDimensionality"):
					size = value
				default:
					lose(name)
				}
			}
		default:
			lose(name)
		}
	}
	if len(e.texts) > 0 && string(size) != string(e.size) {
		return form.Refusedf(at.Field("outputDimensionality").String(), form.Chat, "which returns vectors of one size per call.")
	}
	if len(texts) == 0 {
		return providers.InvalidField(at.Field("content").String(), "There is nothing to embed.")
	}
	e.texts, e.size = append(e.texts, rawjson.Join("\n", texts...)), size
	return nil
}

// writeGemini writes embedContent for one text, and batchEmbedContents for several.
func (e *Embedding) writeGemini(model string) {
	out := form.NewPayload()
	request := func(text rawjson.Text) {
		out.JSON(`{"model":?,"content":{"parts":[{"text":?}]}`, gemini.Resource(model), text)
		out.Field("outputDimensionality", e.size)
		out.End()
	}
	e.Endpoint = providers.Endpoint{Format: providers.Gemini, Operation: providers.Embeddings}
	if len(e.texts) == 1 {
		request(e.texts[0])
	} else {
		e.Endpoint.Operation = providers.BatchEmbeddings
		out.JSON(`{"requests":[`)
		for _, text := range e.texts {
			request(text)
		}
		out.JSON("]}")
	}
	e.Pieces = out.Payload()
}

func (e *Embedding) writeOpenAI(model string) {
	out := form.NewPayload()
	out.JSON(`{"model":?`, model)
	if e.from.Operation == providers.BatchEmbeddings {
		out.Texts("input", e.texts)
	} else {
		out.KeyText("input", e.texts[0])
	}
	out.JSON(`"encoding_format":"float"`)
	out.Field("dimensions", e.size)
	out.End()
	e.Endpoint, e.Pieces = providers.Endpoint{Format: providers.OpenAI, Operation: providers.Embeddings}, out.Payload()
}

// EmbedAnswer translates the upstream's document to the client's. It is a fault if the number of vectors is not the requested one.
func EmbedAnswer(e *Embedding, document rawjson.Value) ([]byte, *providers.Fault) {
	if e.from.Format == providers.OpenAI {
		return e.writeList(document)
	}
	return e.writeVectors(document)
}

func (e *Embedding) failed() *providers.Fault {
	return &providers.Fault{
		Kind: providers.Upstream, Message: "The upstream's answer does not contain the requested vectors.", Blame: providers.BlameChannel,
		Malformed: true,
	}
}

// writeList writes a CreateEmbeddingResponse from the answer of embedContent or batchEmbedContents.
func (e *Embedding) writeList(document rawjson.Value) ([]byte, *providers.Fault) {
	vectors := make([]rawjson.Value, 0, e.inputs)
	if one := document.At("embedding", "values"); one.IsArray() {
		vectors = append(vectors, one)
	}
	for _, embedding := range document.Get("embeddings").Items() {
		vectors = append(vectors, embedding.Get("values"))
	}
	if len(vectors) != e.inputs {
		return nil, e.failed()
	}
	var out form.Out
	out.JSON(`{"object":"list","data":[`)
	for i, vector := range vectors {
		if !vector.IsArray() {
			return nil, e.failed()
		}
		out.JSON(`{"object":"embedding","index":?,"embedding":`, int64(i))
		e.writeVector(&out, vector)
		out.End()
	}
	tokens, counted := document.At("usageMetadata", "promptTokenCount").Int()
	if !counted {
		tokens = e.estimated
	}
	out.JSON(`],"model":?,"usage":{"prompt_tokens":?,"total_tokens":?}}`, e.model, tokens, tokens)
	return out.Bytes(), nil
}

// writeVector writes a vector in the encoding that OpenAI's client requested. Gemini's shortened vectors do not have length one, and those
// of OpenAI do: see https://ai.google.dev/gemini-api/docs/embeddings.
func (e *Embedding) writeVector(out *form.Out, vector rawjson.Value) {
	if !e.scaled && !e.coded {
		out.BeginArray()
		for _, number := range vector.Items() {
			out.Raw(number)
		}
		out.EndArray()
		return
	}
	var numbers []float64
	length := 0.0
	for _, number := range vector.Items() {
		f, ok := number.Float()
		if !ok {
			f = 0
		}
		numbers = append(numbers, f)
		length += f * f
	}
	if length = math.Sqrt(length); !e.scaled || length == 0 {
		length = 1
	}
	if e.coded {
		raw := make([]byte, 0, 4*len(numbers))
		for _, f := range numbers {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(f/length)))
		}
		out.String(base64.StdEncoding.EncodeToString(raw))
		return
	}
	out.BeginArray()
	for _, f := range numbers {
		out.JSON(strconv.FormatFloat(f/length, 'g', -1, 32))
	}
	out.EndArray()
}

// writeVectors writes an EmbedContentResponse or a BatchEmbedContentsResponse from the answer of OpenAI's embeddings.
func (e *Embedding) writeVectors(document rawjson.Value) ([]byte, *providers.Fault) {
	vectors := make([]rawjson.Value, e.inputs)
	for i, embedding := range document.Get("data").Items() {
		at := int64(i)
		if n, ok := embedding.Get("index").Int(); ok {
			at = n
		}
		if at < 0 || at >= int64(len(vectors)) {
			return nil, e.failed()
		}
		vectors[at] = embedding.Get("embedding")
	}
	var out form.Out
	batch := e.from.Operation == providers.BatchEmbeddings
	out.Begin()
	if batch {
		out.Array("embeddings")
	} else {
		out.Key("embedding")
	}
	for _, vector := range vectors {
		if !vector.IsArray() {
			return nil, e.failed()
		}
		out.JSON(`{"values":?}`, vector)
	}
	if batch {
		out.EndArray()
	}
	tokens, counted := document.At("usage", "prompt_tokens").Int()
	if !counted {
		tokens = e.estimated
	}
	out.JSON(`"usageMetadata":{"promptTokenCount":?}}`, tokens)
	return out.Bytes(), nil
}
