package fakeopenai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/clip"
	"modelrelay/dev/upstream/fake"
)

func (s *api) routeMedia(v *fake.Vendor, prefix string) {
	s.Handle("POST "+prefix+"/images/generations",
		fake.Operation{Vendor: v, Name: "images.generations", Parse: parseImage, Answer: s.answerImage})
	s.Handle("POST "+prefix+"/images/edits", fake.Operation{Vendor: v, Name: "images.edits", Parse: parseImageEdit, Answer: s.answerImage})
	s.Handle("POST "+prefix+"/audio/speech", fake.Operation{Vendor: v, Name: "audio.speech", Parse: parseSpeech, Answer: answerSpeech})
	s.Handle("POST "+prefix+"/audio/transcriptions",
		fake.Operation{Vendor: v, Name: "audio.transcriptions", Parse: parseAudio, Answer: answerAudio})
	s.Handle("POST "+prefix+"/audio/translations",
		fake.Operation{Vendor: v, Name: "audio.translations", Parse: parseAudio, Answer: answerAudio})
}

type speechRequest struct {
	Model        string          `json:"model"`
	Input        string          `json:"input"`
	Voice        json.RawMessage `json:"voice"`
	Format       string          `json:"response_format"`
	StreamFormat string          `json:"stream_format"`
}

func parseSpeech(x *fake.Exchange) *fake.Problem {
	q := new(speechRequest)
	if p := NeedJSON(x); p != nil {
		return p
	}
	if p := x.Decode(q); p != nil {
		return p
	}
	x.Request, x.Model, x.Prompt = q, q.Model, q.Input
	if p := CheckModel(x); p != nil {
		return p
	}
	switch {
	case q.Input == "":
		return Missing("input")
	case len(q.Voice) == 0:
		return Missing("voice")
	}
	if q.Format == "" {
		q.Format = "mp3"
	}
	return oneOf("response_format", q.Format, "mp3", "opus", "aac", "flac", "wav", "pcm")
}

// answerSpeech says one second of tone, whatever the input.
func answerSpeech(x *fake.Exchange) {
	q := fake.RequestOf[speechRequest](x)
	x.Accept()
	setHeaders(x)
	var sound []byte
	contentType := "audio/" + q.Format
	switch q.Format {
	case "mp3":
		sound, contentType = clip.File("tone.mp3"), "audio/mpeg"
	case "pcm":
		const wavHead = 44
		sound = clip.File("tone.wav")[wavHead:]
	default:
		sound = clip.File("tone." + q.Format)
	}
	const piece = 4096
	if q.StreamFormat == "sse" {
		x.Stream()
		for len(sound) > 0 && x.Pause() {
			n := min(piece, len(sound))
			x.Event("", map[string]string{"type": "speech.audio.delta", "audio": base64.StdEncoding.EncodeToString(sound[:n])})
			sound = sound[n:]
		}
		made := fake.Made{Input: chat.Tokens(len(q.Input)), Output: 24} //nolint:mnd // the tokens of the tone
		if x.Event("", map[string]any{"type": "speech.audio.done", "usage": map[string]int{
			"input_tokens": made.Input, "output_tokens": made.Output, "total_tokens": made.Input + made.Output,
		}}) {
			x.Served(made)
		}
		return
	}
	if x.Bytes(http.StatusOK, contentType, sound) {
		x.Served(fake.Made{}) // the vendor names no tokens
	}
}

type audioRequest struct {
	text     string
	format   string
	language string
	words    bool
	stream   bool
}

func parseAudio(x *fake.Exchange) *fake.Problem {
	f, p := fake.ParseForm(x)
	if p != nil {
		return p
	}
	x.Model = f.Value("model")
	if p := CheckModel(x); p != nil {
		return p
	}
	file := f.File("file")
	if file == nil {
		return Missing("file")
	}
	q := &audioRequest{format: f.Value("response_format"), language: f.Value("language"), stream: f.Value("stream") == "true"}
	if q.format == "" {
		q.format = "json"
	}
	for _, name := range []string{"timestamp_granularities", "timestamp_granularities[]"} {
		for _, v := range f.Values[name] {
			q.words = q.words || v == "word"
		}
	}
	q.text = fmt.Sprintf("Heard %s of %d bytes.", file.Name, len(file.Data))
	x.Request, x.Prompt = q, f.Value("prompt")
	return oneOf("response_format", q.format, "json", "text", "srt", "verbose_json", "vtt", "diarized_json")
}

// answerAudio hears the name and the size of the file in one segment of one second.
func answerAudio(x *fake.Exchange) {
	q := fake.RequestOf[audioRequest](x)
	x.Accept()
	setHeaders(x)
	if q.answer(x) {
		x.Served(fake.Made{Audio: time.Second})
	}
}

func (q *audioRequest) answer(x *fake.Exchange) bool {
	usage := map[string]any{"type": "duration", "seconds": 1}
	if q.stream {
		x.Stream()
		for piece, rest := chat.NextPiece(q.text); piece != "" && x.Pause(); piece, rest = chat.NextPiece(rest) {
			x.Event("", map[string]string{"type": "transcript.text.delta", "delta": piece})
		}
		x.Event("", map[string]any{"type": "transcript.text.done", "text": q.text, "usage": usage})
		return x.Sent([]byte("data: [DONE]\n\n"))
	}
	switch q.format {
	case "text":
		return x.Bytes(http.StatusOK, "text/plain; charset=utf-8", []byte(q.text+"\n"))
	case "srt":
		return x.Bytes(http.StatusOK, "text/plain; charset=utf-8", []byte("1\n00:00:00,000 --> 00:00:01,000\n"+q.text+"\n\n\n"))
	case "vtt":
		return x.Bytes(http.StatusOK, "text/plain; charset=utf-8", []byte("WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n"+q.text+"\n\n"))
	case "verbose_json":
		return x.JSON(http.StatusOK, q.verbose(x.Operation.Name, usage))
	case "diarized_json":
		return x.JSON(http.StatusOK, map[string]any{
			"task": "transcribe", "duration": 1.0, "text": q.text, "usage": usage,
			"segments": []any{map[string]any{
				"type": "transcript.text.segment", "id": "seg_0", "start": 0.0, "end": 1.0, "speaker": "A",
				"text": q.text,
			}},
		})
	default:
		return x.JSON(http.StatusOK, map[string]any{"text": q.text, "usage": usage})
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
