package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
)

// recording is an upload of several MB under a name that is not ASCII.
func recording() (file io.Reader, heard string) {
	sound := picture()
	return openai.File(bytes.NewReader(sound), "lighthöuse.wav", "audio/wav"), fmt.Sprintf("Heard lighthöuse.wav of %d bytes.", len(sound))
}

func testOpenAIMedia(t *testing.T, g *stack.Gateway) {
	t.Helper()
	f := overWire(g)
	sdk := f.openai()
	t.Run("transcriptions", func(t *testing.T) { f.transcriptions(t, sdk) })
	t.Run("translations", func(t *testing.T) {
		file, heard := recording()
		answer, err := sdk.Audio.Translations.New( //nolint:staticcheck // deprecated by the vendor, part of the contract
			t.Context(), openai.AudioTranslationNewParams{File: file, Model: "whisper-1", Prompt: openai.String("a lighthouse")})
		if err != nil || answer.Text != heard {
			t.Fatalf("got %+v, %v", answer, err)
		}
		f.passed(t, "audio.translations", "whisper-1")
	})
	t.Run("speech", func(t *testing.T) { f.speech(t, sdk) })
	t.Run("images", func(t *testing.T) { f.images(t, sdk) })
	t.Run("image edits", func(t *testing.T) { f.imageEdits(t, sdk) })
}

func (f *formats) transcriptions(t *testing.T, sdk openai.Client) {
	t.Helper()
	file, heard := recording()
	answer, err := sdk.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
		File: file, Model: "whisper-1", Language: openai.String("de"), Prompt: openai.String("Wo ist der lighthouse, Käpt'n?"),
		ResponseFormat: openai.AudioResponseFormatVerboseJSON, TimestampGranularities: []string{"word", "segment"},
	})
	if err != nil || answer.Text != heard || answer.AsTranscriptionVerbose().Language != "de" ||
		len(answer.AsTranscriptionVerbose().Words) != 5 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "audio.transcriptions", "whisper-1")

	file, heard = recording()
	text := ""
	for _, event := range drain(t, sdk.Audio.Transcriptions.NewStreaming(t.Context(),
		openai.AudioTranscriptionNewParams{File: file, Model: "whisper-1"})) {
		text += event.Delta
	}
	if text != heard {
		t.Errorf("streamed: got %q, want %q", text, heard)
	}
	f.passed(t, "audio.transcriptions", "whisper-1")

	file, heard = recording()
	var raw *http.Response
	_, err = sdk.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
		File: file, Model: "whisper-1", ResponseFormat: openai.AudioResponseFormatSRT,
	}, option.WithResponseBodyInto(&raw))
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Body.Close()
	if got, err := io.ReadAll(raw.Body); err != nil || !strings.HasPrefix(string(got), "1\n00:00:00,000") ||
		!strings.Contains(string(got), heard) {
		t.Errorf("got %q, %v", got, err)
	}
}

func (f *formats) speech(t *testing.T, sdk openai.Client) {
	t.Helper()
	params := openai.AudioSpeechNewParams{
		Model: "tts-1", Input: "The lighthouse.", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("nova")},
		ResponseFormat: "wav",
	}
	var sound []byte
	for _, streamed := range []bool{false, true} {
		if streamed {
			params.StreamFormat = "sse"
		}
		answer, err := sdk.Audio.Speech.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		kind := answer.Header.Get("Content-Type")
		switch {
		case err != nil:
			t.Error(err)
		case !streamed && (kind != "audio/wav" || !bytes.HasPrefix(got, []byte("RIFF"))):
			t.Errorf("got %d bytes of %s", len(got), kind)
		case streamed && (!strings.HasPrefix(kind, "text/event-stream") || !bytes.Contains(got, []byte("speech.audio.done")) ||
			!bytes.Contains(got, []byte(base64.StdEncoding.EncodeToString(sound[:4096])))):
			t.Errorf("got %.300q of %s", got, kind)
		}
		sound = got
		f.passed(t, "audio.speech", "tts-1")
	}
}

// isPicture reports whether the only image of an answer is a PNG.
func isPicture(answer *openai.ImagesResponse) bool {
	if len(answer.Data) != 1 {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(answer.Data[0].B64JSON)
	return err == nil && bytes.HasPrefix(data, []byte("\x89PNG"))
}

// nestedImage is the contract's own shape of a call about images.
func nestedImage(part map[string]string) map[string]any {
	return map[string]any{
		"model": "gpt-image-1", "parameters": map[string]any{"negative_prompt": "people", "watermark": false},
		"input": map[string]any{"messages": []any{map[string]any{
			"role":    "user",
			"content": []any{part, map[string]string{"text": "a lighthouse"}},
		}}},
	}
}

func (f *formats) images(t *testing.T, sdk openai.Client) {
	t.Helper()
	answer, err := sdk.Images.Generate(t.Context(),
		openai.ImageGenerateParams{Model: "gpt-image-1", Prompt: "a lighthouse", N: openai.Int(1), Size: "1024x1024"})
	if err != nil || !isPicture(answer) || answer.Usage.TotalTokens == 0 {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "images.generations", "gpt-image-1")
	var nested openai.ImagesResponse
	if err := sdk.Post(t.Context(), "images/generations", nestedImage(map[string]string{"text": "Paint"}), &nested); err != nil ||
		!isPicture(&nested) {
		t.Fatalf("got %+v, %v", nested, err)
	}
	f.passed(t, "images.generations", "gpt-image-1")
}

func (f *formats) imageEdits(t *testing.T, sdk openai.Client) {
	t.Helper()
	answer, err := sdk.Images.Edit(t.Context(), openai.ImageEditParams{
		Model: "gpt-image-1", Prompt: "more lighthouse",
		Mask: openai.File(strings.NewReader("mask"), "mask.png", "image/png"),
		Image: openai.ImageEditParamsImageUnion{OfFileArray: []io.Reader{
			openai.File(bytes.NewReader(picture()), "låmp.png", "image/png"), openai.File(strings.NewReader("2"), "tower.webp", "image/webp"),
		}},
	})
	if err != nil || !isPicture(answer) {
		t.Fatalf("got %+v, %v", answer, err)
	}
	f.passed(t, "images.edits", "gpt-image-1")
	var nested openai.ImagesResponse
	body := nestedImage(map[string]string{"image": dataURL(picture())})
	if err := sdk.Post(t.Context(), "images/edits", body, &nested); err != nil || !isPicture(&nested) {
		t.Fatalf("got %+v, %v", nested, err)
	}
	f.passed(t, "images.edits", "gpt-image-1")
	err = sdk.Post(t.Context(), "images/edits", map[string]any{"model": "gpt-image-1"}, &nested)
	if stack.ErrorStatus(err) != http.StatusBadRequest {
		t.Errorf("neither input nor prompt: got %v, want 400", err)
	}
}
