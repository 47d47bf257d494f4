package fakeopenai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/fake"
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

func parseImage(x *fake.Exchange) *fake.Problem {
	q := new(imageRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	for _, m := range q.Input.Messages {
		q.Prompt += chat.TextOf(m.Content)
	}
	q.N = max(q.N, q.Parameters.N)
	if q.Size == "" {
		q.Size = strings.Replace(q.Parameters.Size, "*", "x", 1)
	}
	return checkImage(x, q)
}

func parseImageEdit(x *fake.Exchange) *fake.Problem {
	if !strings.HasPrefix(x.HTTP.Header.Get("Content-Type"), "multipart/") {
		return parseImage(x)
	}
	f, p := fake.ParseForm(x)
	if p != nil {
		return p
	}
	q := &imageRequest{Model: f.Value("model"), Prompt: f.Value("prompt"), Size: f.Value("size"), Format: f.Value("response_format")}
	q.N, _ = strconv.Atoi(f.Value("n"))
	q.Partial, _ = strconv.Atoi(f.Value("partial_images"))
	q.Stream = f.Value("stream") == "true"
	if f.File("image", "image[]") == nil {
		return Missing("image")
	}
	return checkImage(x, q)
}

func checkImage(x *fake.Exchange, q *imageRequest) *fake.Problem {
	x.Request, x.Model, x.Prompt = q, q.Model, q.Prompt
	if p := CheckModel(x); p != nil {
		return p
	}
	if q.Prompt == "" {
		return Missing("prompt")
	}
	return oneOf("response_format", q.Format, "url", "b64_json")
}

// MaxImages bounds n, as the vendor does.
const MaxImages = 10

func (s *api) answerImage(x *fake.Exchange) {
	q := fake.RequestOf[imageRequest](x)
	x.Accept()
	setHeaders(x)
	if q.Stream && strings.HasPrefix(q.Model, "gpt-image") {
		q.stream(x)
		return
	}
	count := min(max(1, q.N), MaxImages)
	data := make([]map[string]string, 0, count)
	for i := range count {
		picture := clip.Paint(q.Prompt, i)
		if q.Format == "url" {
			name := base64.RawURLEncoding.EncodeToString([]byte(q.Prompt[:min(len(q.Prompt), 100)]))
			data = append(data, map[string]string{"url": s.Link(x, fmt.Sprintf("/media/images/%s/%d.png", name, i), s.UsualLinkLife())})
			continue
		}
		data = append(data, map[string]string{"b64_json": base64.StdEncoding.EncodeToString(picture)})
	}
	if x.JSON(http.StatusOK, map[string]any{
		"created": unixNow(), "data": data, "background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024",
		"usage": q.usage(count),
	}) {
		x.Served(q.made(count))
	}
}

// maxPartial bounds partial_images, as the vendor does.
const maxPartial = 3

// stream answers with one image in events. Models other than gpt-image ignore the wish for a stream.
func (q *imageRequest) stream(x *fake.Exchange) {
	kind := strings.TrimSuffix("image_"+strings.TrimPrefix(x.Operation.Name, "images."), "s") // image_generation, image_edit
	event := func(name string, picture int) map[string]any {
		return map[string]any{
			"type": kind + "." + name, "b64_json": base64.StdEncoding.EncodeToString(clip.Paint(q.Prompt, picture)), "created_at": unixNow(),
			"background": "opaque", "output_format": "png", "quality": "low", "size": "1024x1024",
		}
	}
	x.Stream()
	for i := range min(max(0, q.Partial), maxPartial) {
		partial := event("partial_image", i+1)
		partial["partial_image_index"] = i
		if !x.Event(kind+".partial_image", partial) || !x.Pause() {
			return
		}
	}
	completed := event("completed", 0)
	completed["usage"] = q.usage(1)
	if x.Event(kind+".completed", completed) {
		x.Served(q.made(1))
	}
}

func (q *imageRequest) made(images int) fake.Made {
	const perImage = 272
	return fake.Made{Input: chat.Tokens(len(q.Prompt)), Output: perImage * images, Images: images}
}

func (q *imageRequest) usage(images int) map[string]any {
	made := q.made(images)
	return map[string]any{
		"input_tokens": made.Input, "output_tokens": made.Output, "total_tokens": made.Input + made.Output,
		"input_tokens_details": map[string]int{"image_tokens": 0, "text_tokens": made.Input},
	}
}

// routeImageLinks serves the links to images. The prompt is in the link: the image is painted anew.
func (s *api) routeImageLinks() {
	v := &fake.Vendor{Name: "openai", Authenticate: fake.LinkKey, Refuse: fake.RefuseLink}
	s.Handle("GET /media/images/{name}/{index}", fake.Operation{Vendor: v, Name: "images.content", Answer: answerImageLink})
}

func answerImageLink(x *fake.Exchange) {
	prompt, err := base64.RawURLEncoding.DecodeString(x.HTTP.PathValue("name"))
	index, indexErr := strconv.Atoi(strings.TrimSuffix(x.HTTP.PathValue("index"), ".png"))
	if err != nil || indexErr != nil {
		fake.RefuseLink(x, fake.Problem{Status: http.StatusNotFound, Message: "The specified key does not exist."})
		return
	}
	x.Accept()
	x.Bytes(http.StatusOK, "image/png", clip.Paint(string(prompt), index))
}
