package upstream

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

func (s *server) routeOpenAIMedia(v *vendor, prefix string) {
	s.handle("POST "+prefix+"/images/generations", operation{v, "images.generations", parseImage, s.answerImage})
	s.handle("POST "+prefix+"/images/edits", operation{v, "images.edits", parseImageEdit, s.answerImage})
	s.handle("POST "+prefix+"/audio/speech", operation{v, "audio.speech", parseSpeech, answerSpeech})
	s.handle("POST "+prefix+"/audio/transcriptions", operation{v, "audio.transcriptions", parseAudio, answerAudio})
	s.handle("POST "+prefix+"/audio/translations", operation{v, "audio.translations", parseAudio, answerAudio})
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
