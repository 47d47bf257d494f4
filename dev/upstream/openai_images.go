package upstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"strconv"
	"strings"
)

// imageRequest takes the vendor's own fields and the nested ones other vendors behind the same path use.
type imageRequest struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	N      int    `json:"n"`
	Size   string `json:"size"`
	Format string `json:"response_format"`
	Stream bool   `json:"stream"`
	// Partial is how many unfinished images a stream shows before.
	Partial int `json:"partial_images"`
	Input   struct {
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	} `json:"input"`
	Parameters struct {
		N    int    `json:"n"`
		Size string `json:"size"`
	} `json:"parameters"`
}

func parseImage(x *exchange) *problem {
	q := new(imageRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	for _, m := range q.Input.Messages {
		q.Prompt += textOf(m.Content)
	}
	q.N = max(q.N, q.Parameters.N)
	if q.Size == "" {
		q.Size = strings.Replace(q.Parameters.Size, "*", "x", 1)
	}
	return checkImage(x, q)
}

func parseImageEdit(x *exchange) *problem {
	if !strings.HasPrefix(x.r.Header.Get("Content-Type"), "multipart/") {
		return parseImage(x)
	}
	f, p := parseForm(x)
	if p != nil {
		return p
	}
	q := &imageRequest{Model: f.value("model"), Prompt: f.value("prompt"), Size: f.value("size"), Format: f.value("response_format")}
	q.N, _ = strconv.Atoi(f.value("n"))
	q.Partial, _ = strconv.Atoi(f.value("partial_images"))
	q.Stream = f.value("stream") == "true"
	if f.file("image", "image[]") == nil {
		return missing("image")
	}
	return checkImage(x, q)
}

func checkImage(x *exchange, q *imageRequest) *problem {
	x.request, x.model, x.prompt = q, q.Model, q.Prompt
	if p := checkModel(x); p != nil {
		return p
	}
	if q.Prompt == "" {
		return missing("prompt")
	}
	return oneOf("response_format", q.Format, "url", "b64_json")
}

// maxImages bounds n, as the vendor does.
const maxImages = 10

func (s *server) answerImage(x *exchange) {
	q := requestOf[imageRequest](x)
	x.accept()
	openAIHeaders(x)
	if q.Stream && strings.HasPrefix(q.Model, "gpt-image") {
		q.stream(x)
		return
	}
	count := min(max(1, q.N), maxImages)
	data := make([]map[string]string, 0, count)
	for i := range count {
		picture := paint(q.Prompt, i)
		if q.Format == "url" {
			name := base64.RawURLEncoding.EncodeToString([]byte(q.Prompt[:min(len(q.Prompt), 100)]))
			data = append(data, map[string]string{"url": s.link(x, fmt.Sprintf("/media/images/%s/%d.png", name, i), s.options.LinkLife)})
			continue
		}
		data = append(data, map[string]string{"b64_json": base64.StdEncoding.EncodeToString(picture)})
	}
	x.json(http.StatusOK, map[string]any{
		"created": unixNow(), "data": data, "background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024",
		"usage": q.usage(count),
	})
}

// maxPartial bounds partial_images, as the vendor does.
const maxPartial = 3

// stream answers with one image in events. Models other than gpt-image ignore the wish for a stream.
func (q *imageRequest) stream(x *exchange) {
	kind := strings.TrimSuffix("image_"+strings.TrimPrefix(x.operation.name, "images."), "s") // image_generation, image_edit
	event := func(name string, picture int) map[string]any {
		return map[string]any{
			"type": kind + "." + name, "b64_json": base64.StdEncoding.EncodeToString(paint(q.Prompt, picture)), "created_at": unixNow(),
			"background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024",
		}
	}
	x.stream()
	for i := range min(max(0, q.Partial), maxPartial) {
		partial := event("partial_image", i+1)
		partial["partial_image_index"] = i
		if !x.event(kind+".partial_image", partial) || !x.pause() {
			return
		}
	}
	completed := event("completed", 0)
	completed["usage"] = q.usage(1)
	x.event(kind+".completed", completed)
}

func (q *imageRequest) usage(images int) map[string]any {
	const perImage = 272
	input, output := tokens(len(q.Prompt)), perImage*images
	return map[string]any{
		"input_tokens": input, "output_tokens": output, "total_tokens": input + output,
		"input_tokens_details": map[string]int{"image_tokens": 0, "text_tokens": input},
	}
}

// paint returns a small PNG whose colour depends on the prompt and the index.
func paint(prompt string, index int) []byte {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, index, prompt[:min(len(prompt), 100)]) // never fails
	sum := h.Sum32()
	picture := image.NewRGBA(image.Rect(0, 0, 32, 32))
	fill := color.RGBA{uint8(sum), uint8(sum >> 8), uint8(sum >> 16), 255}
	draw.Draw(picture, picture.Bounds(), image.NewUniform(fill), image.Point{}, draw.Src)
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // a buffer takes it all
	return b.Bytes()
}
