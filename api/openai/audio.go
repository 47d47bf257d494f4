package openai

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// The bodies of the audio calls. They are never filled: the schemas and the field checks are compiled from them.
type (
	openAITranscription struct {
		File                   body.File `json:"file" doc:"The sound"`
		Model                  string    `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Language               string    `json:"language,omitempty" doc:"ISO-639-1 code"`
		Prompt                 string    `json:"prompt,omitempty"`
		ResponseFormat         string    `json:"response_format,omitempty" enum:"json,text,srt,verbose_json,vtt,diarized_json" default:"json"`
		Temperature            float64   `json:"temperature,omitempty"`
		TimestampGranularities []string  `json:"timestamp_granularities,omitempty" nullable:"false" enum:"word,segment" doc:"timestamp_granularities[] works too"`
		Stream                 bool      `json:"stream,omitempty" doc:"Stream the transcript as server-sent events"`
	}
	openAITranslation struct {
		File           body.File `json:"file" doc:"The sound"`
		Model          string    `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Prompt         string    `json:"prompt,omitempty"`
		ResponseFormat string    `json:"response_format,omitempty"`
		Temperature    float64   `json:"temperature,omitempty"`
	}
	openAISpeech struct {
		Model          string      `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Input          string      `json:"input" doc:"Text to convert"`
		Voice          openAIVoice `json:"voice"`
		ResponseFormat string      `json:"response_format,omitempty" enum:"mp3,opus,aac,flac,wav,pcm"`
		Speed          float64     `json:"speed,omitempty"`
		StreamFormat   string      `json:"stream_format,omitempty" enum:"audio,sse" doc:"sse streams the sound as server-sent events"`
	}
)

// openAIVoice is the name of a voice, or an object with the name of a custom voice.
type openAIVoice struct{}

// Schema implements huma.SchemaProvider.
func (openAIVoice) Schema(huma.Registry) *huma.Schema {
	return body.AnyOf(&huma.Schema{Type: huma.TypeString, Enum: []any{
		"alloy", "echo", "fable", "onyx", "nova", "shimmer", "ash", "ballad", "cedar", "coral", "marin", "sage", "verse",
	}}, body.AnyObject())
}

func (a adder) addAudio() {
	tags := []string{"Audio"}
	texts := []string{"application/json", "text/plain", "text/vtt"}
	addAudioForm[openAITranscription](a, providers.Transcriptions, huma.Operation{
		OperationID: "createTranscription", Path: "/v1/audio/transcriptions", Tags: tags, Summary: "Transcription",
		Description: "Parts that are not listed here reach the upstream untouched.",
		Responses:   calls.DeclareContent("The text", append(texts, "text/event-stream")...),
	})
	addAudioForm[openAITranslation](a, providers.Translations, huma.Operation{
		OperationID: "createTranslation", Path: "/v1/audio/translations", Tags: tags, Summary: "Translation",
		Description: "Translates audio into English text.",
		Responses:   calls.DeclareContent("The text", texts...),
	})
	addCall[openAISpeech](a, relayed{
		name: providers.Speech, finish: speechStream,
		Operation: huma.Operation{
			OperationID: "createSpeech", Path: "/v1/audio/speech", Tags: tags, Summary: "Speech synthesis",
			Responses: calls.DeclareContent("The sound", "audio/mpeg", "audio/opus", "audio/aac", "audio/flac", "audio/wav", "audio/pcm",
				"text/event-stream"),
		},
	})
}

func addAudioForm[Form any](a adder, name providers.Operation, op huma.Operation) {
	registry := a.registry()
	fields := body.NewChecker[Form](registry)
	op.Method, op.RequestBody = http.MethodPost, body.DeclareForm[Form](registry)
	a.group.With(calls.Access()).Handle(op, a.calls.Relayed(func(_ *edge.Request, r *http.Request, raw []byte) (*calls.Call, error) {
		boundary, form := body.IsForm(r.Header.Get("Content-Type"))
		if !form {
			return nil, providers.InvalidField("", "The request body must be multipart/form-data.")
		}
		return readForm(r, raw, boundary, fields, name, nil)
	}))
}

// speechStream reports whether the answer is a stream of events.
func speechStream(_ *http.Request, call *calls.Call, b *body.JSON) error {
	call.Stream = b.Text("stream_format") == "sse"
	return nil
}
