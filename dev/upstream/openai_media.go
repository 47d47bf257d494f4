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

func (s *server) routeOpenAIMedia(v *vendor, prefix string) {
	s.handle("POST "+prefix+"/images/generations", operation{v, "images.generations", parseImage, s.answerImage})
	s.handle("POST "+prefix+"/images/edits", operation{v, "images.edits", parseImageEdit, s.answerImage})
	s.handle("POST "+prefix+"/audio/speech", operation{v, "audio.speech", parseSpeech, answerSpeech})
	s.handle("POST "+prefix+"/audio/transcriptions", operation{v, "audio.transcriptions", parseAudio, answerAudio})
	s.handle("POST "+prefix+"/audio/translations", operation{v, "audio.translations", parseAudio, answerAudio})
}

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

type speechRequest struct {
	Model        string          `json:"model"`
	Input        string          `json:"input"`
	Voice        json.RawMessage `json:"voice"`
	Format       string          `json:"response_format"`
	StreamFormat string          `json:"stream_format"`
}

func parseSpeech(x *exchange) *problem {
	q := new(speechRequest)
	if p := needJSON(x); p != nil {
		return p
	}
	if p := x.decode(q); p != nil {
		return p
	}
	x.request, x.model, x.prompt = q, q.Model, q.Input
	if p := checkModel(x); p != nil {
		return p
	}
	switch {
	case q.Input == "":
		return missing("input")
	case len(q.Voice) == 0:
		return missing("voice")
	}
	if q.Format == "" {
		q.Format = "mp3"
	}
	return oneOf("response_format", q.Format, "mp3", "opus", "aac", "flac", "wav", "pcm")
}

// answerSpeech says one second of tone, whatever the input.
func answerSpeech(x *exchange) {
	q := requestOf[speechRequest](x)
	x.accept()
	openAIHeaders(x)
	var sound []byte
	contentType := "audio/" + q.Format
	switch q.Format {
	case "mp3":
		sound, contentType = clipFile("tone.mp3"), "audio/mpeg"
	case "pcm":
		const wavHead = 44
		sound = clipFile("tone.wav")[wavHead:]
	default:
		sound = clipFile("tone." + q.Format)
	}
	const piece = 4096
	if q.StreamFormat == "sse" {
		x.stream()
		for len(sound) > 0 && x.pause() {
			n := min(piece, len(sound))
			x.event("", map[string]string{"type": "speech.audio.delta", "audio": base64.StdEncoding.EncodeToString(sound[:n])})
			sound = sound[n:]
		}
		x.event("", map[string]any{"type": "speech.audio.done", "usage": map[string]int{
			"input_tokens": tokens(len(q.Input)), "output_tokens": 24, "total_tokens": tokens(len(q.Input)) + 24,
		}})
		return
	}
	x.bytes(http.StatusOK, contentType, sound)
}

type audioRequest struct {
	text     string
	format   string
	language string
	words    bool
	stream   bool
}

func parseAudio(x *exchange) *problem {
	f, p := parseForm(x)
	if p != nil {
		return p
	}
	x.model = f.value("model")
	if p := checkModel(x); p != nil {
		return p
	}
	file := f.file("file")
	if file == nil {
		return missing("file")
	}
	q := &audioRequest{format: f.value("response_format"), language: f.value("language"), stream: f.value("stream") == "true"}
	if q.format == "" {
		q.format = "json"
	}
	for _, name := range []string{"timestamp_granularities", "timestamp_granularities[]"} {
		for _, v := range f.values[name] {
			q.words = q.words || v == "word"
		}
	}
	q.text = fmt.Sprintf("Heard %s of %d bytes.", file.name, len(file.data))
	x.request, x.prompt = q, f.value("prompt")
	return oneOf("response_format", q.format, "json", "text", "srt", "verbose_json", "vtt", "diarized_json")
}

// answerAudio hears the name and the size of the file in one segment of one second.
func answerAudio(x *exchange) {
	q := requestOf[audioRequest](x)
	x.accept()
	openAIHeaders(x)
	usage := map[string]any{"type": "duration", "seconds": 1}
	if q.stream {
		x.stream()
		for piece, rest := nextPiece(q.text); piece != "" && x.pause(); piece, rest = nextPiece(rest) {
			x.event("", map[string]string{"type": "transcript.text.delta", "delta": piece})
		}
		x.event("", map[string]any{"type": "transcript.text.done", "text": q.text, "usage": usage})
		x.send([]byte("data: [DONE]\n\n"))
		return
	}
	switch q.format {
	case "text":
		x.bytes(http.StatusOK, "text/plain; charset=utf-8", []byte(q.text+"\n"))
	case "srt":
		x.bytes(http.StatusOK, "text/plain; charset=utf-8", []byte("1\n00:00:00,000 --> 00:00:01,000\n"+q.text+"\n\n\n"))
	case "vtt":
		x.bytes(http.StatusOK, "text/plain; charset=utf-8", []byte("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n"+q.text+"\n\n"))
	case "verbose_json":
		x.json(http.StatusOK, q.verbose(x.operation.name, usage))
	case "diarized_json":
		x.json(http.StatusOK, map[string]any{
			"task": "transcribe", "duration": 1.0, "text": q.text, "usage": usage,
			"segments": []any{map[string]any{"type": "transcript.text.segment", "id": "seg_0", "start": 0.0, "end": 1.0, "speaker": "A", "text": q.text}},
		})
	default:
		x.json(http.StatusOK, map[string]any{"text": q.text, "usage": usage})
	}
}

func (q *audioRequest) verbose(operation string, usage any) map[string]any {
	task, language := "transcribe", "english"
	if operation == "audio.translations" {
		task = "translate"
	} else if q.language != "" {
		language = q.language
	}
	answer := map[string]any{
		"task": task, "language": language, "duration": 1.0, "text": q.text, "usage": usage,
		"segments": []any{map[string]any{
			"id": 0, "seek": 0, "start": 0.0, "end": 1.0, "text": q.text, "tokens": []int{50364, 50414}, "temperature": 0.0,
			"avg_logprob": -0.2, "compression_ratio": 1.1, "no_speech_prob": 0.01,
		}},
	}
	if q.words {
		words := []any{}
		fields := strings.Fields(q.text)
		for i, w := range fields {
			n := float64(len(fields))
			words = append(words, map[string]any{"word": w, "start": float64(i) / n, "end": float64(i+1) / n})
		}
		answer["words"] = words
	}
	return answer
}
