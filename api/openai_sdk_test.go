package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"modelrelay/api"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// wasSent checks what the upstream got in JSON: the path, and members as they must be in the body.
func wasSent(t *testing.T, up *fakeOpenAI, path string, members ...string) {
	t.Helper()
	got := up.took()
	if got.path != path || got.contentType != "application/json" || !json.Valid(got.body) {
		t.Errorf("upstream got %s as %s, want JSON at %s", got.path, got.contentType, path)
	}
	for _, member := range members {
		if !bytes.Contains(got.body, []byte(member)) {
			t.Errorf("upstream got %.500s, want %s", got.body, member)
		}
	}
}

// counted checks the ledger's last entry.
func counted(t *testing.T, g *gateway, input, cached, output int64) {
	t.Helper()
	var got ledger.Entry
	// An answer whose length is known is read to its end before its call is settled.
	if testwait.InTime(t, patience, func() bool {
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		if len(g.ledger.entries) == 0 {
			return false
		}
		got = g.ledger.entries[len(g.ledger.entries)-1]
		got.Images, got.Audio = 0, 0 // relay's tests check them
		return got == ledger.Entry{
			Token: "good", Model: got.Model, Channel: "main", Requests: 1, InputTokens: input, CachedTokens: cached,
			OutputTokens: output,
		}
	}) {
		return
	}
	t.Errorf("got ledger %+v, want %d, %d and %d tokens", got, input, cached, output)
}

// drain reads a stream of the SDK to its end and counts its events.
func drain[T any](t *testing.T, stream *ssestream.Stream[T]) (events []T) {
	t.Helper()
	defer stream.Close()
	for stream.Next() {
		events = append(events, stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Errorf("stream: %v", err)
	}
	return events
}

func TestSDKResponses(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	ask := responses.ResponseNewParams{Model: "fast", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")}}
	answer, err := client.Responses.New(t.Context(), ask)
	if err != nil || answer.OutputText() != "hello" || answer.Usage.TotalTokens != 12 {
		t.Errorf("got %+v, %v", answer, err)
	}
	wasSent(t, up, "/responses", `"model":"up/fast:1"`, `"input":"hi"`)
	counted(t, g, 5, 2, 7)

	events := drain(t, client.Responses.NewStreaming(t.Context(), ask))
	if len(events) != 3 || events[1].Delta != "hello" || events[2].Response.OutputText() != "hello" {
		t.Errorf("got %d events %+v", len(events), events)
	}
	wasSent(t, up, "/responses", `"stream":true`)
	if body := string(up.took().body); strings.Contains(body, "include_usage") {
		t.Errorf("upstream got %s: a response reports usage unasked", body)
	}
	counted(t, g, 5, 2, 7)

	compacted, err := client.Responses.Compact(t.Context(),
		responses.ResponseCompactParams{Model: "fast", Input: responses.ResponseCompactParamsInputUnion{OfString: openai.String("hi")}})
	if err != nil || compacted.ID != "resp_2" || len(compacted.Output) != 1 {
		t.Errorf("got %+v, %v", compacted, err)
	}
	wasSent(t, up, "/responses/compact", `"model":"up/fast:1"`)
	counted(t, g, 5, 2, 7)
}

// TestSDKResponseStreamError: the SDK raises the error event, which has the shape of the vendor's document too.
func TestSDKResponseStreamError(t *testing.T) {
	t.Parallel()
	g, _ := newOpenAI(t, nil)
	client := sdk(t, g)
	stream := client.Responses.NewStreaming(t.Context(),
		responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("break off")}})
	n := 0
	for stream.Next() {
		n++
	}
	var failed *ssestream.StreamError
	if err := stream.Err(); !errors.As(err, &failed) || n != 3 {
		t.Fatalf("got %d events, %v", n, err)
	}
	var event struct {
		Type, Code, Message string
		Number              int `json:"sequence_number"`
		Error               struct{ Code, Type string }
	}
	decode(t, failed.Event.Data, &event)
	if failed.Event.Type != "error" || event.Type != "error" || event.Code != "upstream_error" || event.Message == "" || event.Number != 3 ||
		event.Error.Type != "server_error" {
		t.Errorf("got event %s %s", failed.Event.Type, failed.Event.Data)
	}
	_ = stream.Close()
}

func TestSDKEmbeddings(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	for _, input := range []openai.EmbeddingNewParamsInputUnion{
		{OfString: openai.String("hi")},
		{OfArrayOfStrings: []string{"a", "b"}},
		{OfArrayOfTokens: []int64{1, 2}},
		{OfArrayOfTokenArrays: [][]int64{{1}, {2}}},
	} {
		answer, err := client.Embeddings.New(t.Context(),
			openai.EmbeddingNewParams{Model: "fast", Input: input, EncodingFormat: "float", Dimensions: openai.Int(2)})
		if err != nil || len(answer.Data) != 1 || answer.Data[0].Embedding[1] != -1 {
			t.Errorf("got %+v, %v", answer, err)
		}
		wasSent(t, up, "/embeddings", `"model":"up/fast:1"`, `"dimensions":2`)
	}
	counted(t, g, 5, 0, 0)
	var raw *http.Response
	_, _ = client.Embeddings.New(t.Context(), openai.EmbeddingNewParams{ // this SDK does not decode base64, it shows it
		Model: "fast", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hi")}, EncodingFormat: "base64",
	}, option.WithResponseBodyInto(&raw))
	defer raw.Body.Close()
	if body, err := io.ReadAll(raw.Body); err != nil || !strings.Contains(string(body), `"embedding":"AAAAPwAAgL8="`) {
		t.Errorf("got %s, %v", body, err)
	}
}

func TestSDKCompletions(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	ask := openai.CompletionNewParams{
		Model: "fast", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("hi")},
		Echo: openai.Bool(true),
	}
	answer, err := client.Completions.New(t.Context(), ask)
	if err != nil || answer.Choices[0].Text != "hello" || answer.Usage.TotalTokens != 12 {
		t.Errorf("got %+v, %v", answer, err)
	}
	wasSent(t, up, "/completions", `"model":"up/fast:1"`, `"echo":true`)
	counted(t, g, 5, 0, 7)
	for _, asks := range []bool{false, true} {
		if asks {
			ask.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		}
		events := drain(t, client.Completions.NewStreaming(t.Context(), ask))
		if want := map[bool]int{false: 2, true: 3}[asks]; len(events) != want || events[0].Choices[0].Text != "hel" {
			t.Errorf("asks %v: got %+v", asks, events)
		}
		wasSent(t, up, "/completions", `"include_usage":true`)
		counted(t, g, 5, 0, 7)
	}
}

// file is an upload under a name that is no ASCII.
func file(content string) io.Reader {
	return openai.File(strings.NewReader(content), "cät \"1\".wav", "audio/wav")
}

// sentForm reads the form the upstream got: name, file name, type and content of each part, in order.
func sentForm(t *testing.T, up *fakeOpenAI, path string) (parts []string, contents map[string]string) {
	t.Helper()
	got := up.took()
	kind, params, err := mime.ParseMediaType(got.contentType)
	if err != nil || kind != "multipart/form-data" || got.path != path {
		t.Fatalf("upstream got %s as %s, %v", got.path, got.contentType, err)
	}
	contents = make(map[string]string)
	form := multipart.NewReader(bytes.NewReader(got.body), params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		text := part.FormName()
		if part.FileName() != "" {
			text += "=" + part.FileName() + ";" + part.Header.Get("Content-Type")
		} else {
			text += "=" + string(content)
		}
		parts = append(parts, text)
		contents[part.FormName()] += string(content)
	}
}

func TestSDKAudio(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	large := strings.Repeat("RIFF\x00\xff\r\n--", 2_500_000) // 25 MB
	answer, err := client.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
		File: file(large), Model: "fast", Language: openai.String("de"), Temperature: openai.Float(0.5), ResponseFormat: "verbose_json",
		TimestampGranularities: []string{"word", "segment"}, Prompt: openai.String("grüß Gott"),
	})
	if err != nil || answer.Text != "hello" {
		t.Errorf("got %+v, %v", answer, err)
	}
	parts, contents := sentForm(t, up, "/audio/transcriptions")
	got := strings.Join(parts, "\n")
	for _, want := range []string{
		"file=cät \"1\".wav;audio/wav", "model=up/fast:1", "language=de", "prompt=grüß Gott", "temperature=0.5",
		"timestamp_granularities[]=word\ntimestamp_granularities[]=segment",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("upstream got %s, want %s", got, want)
		}
	}
	if contents["file"] != large {
		t.Errorf("the file of %d bytes arrived with %d", len(large), len(contents["file"]))
	}
	counted(t, g, 5, 0, 7)

	events := drain(t, client.Audio.Transcriptions.NewStreaming(t.Context(), openai.AudioTranscriptionNewParams{File: file("x"), Model: "m"}))
	if len(events) != 2 || events[0].Delta != "hello" {
		t.Errorf("got %+v", events)
	}
	counted(t, g, 5, 0, 7)

	var srt *http.Response
	_, err = client.Audio.Transcriptions.New(t.Context(),
		openai.AudioTranscriptionNewParams{File: file("x"), Model: "m", ResponseFormat: "srt"}, option.WithResponseBodyInto(&srt))
	if err != nil {
		t.Fatal(err)
	}
	defer srt.Body.Close()
	if text, err := io.ReadAll(srt.Body); err != nil || !strings.HasPrefix(string(text), "1\n00:00") {
		t.Errorf("got %q, %v", text, err)
	}

	translated, err := client.Audio.Translations.New( //nolint:staticcheck // deprecated by the vendor, part of the contract
		t.Context(), openai.AudioTranslationNewParams{File: file("x"), Model: "fast"})
	if err != nil || translated.Text != "hello" {
		t.Errorf("got %+v, %v", translated, err)
	}
	if parts, _ := sentForm(t, up, "/audio/translations"); len(parts) != 2 {
		t.Errorf("upstream got %s", parts)
	}

	for _, format := range []openai.AudioSpeechNewParamsStreamFormat{"", "sse"} {
		speech, err := client.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{
			Model: "fast", Input: "hello", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("marin")}, StreamFormat: format,
		})
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(speech.Body)
		speech.Body.Close()
		want, kind := sound, "audio/mpeg"
		if format == "sse" {
			want, kind = streamOf("/audio/speech"), "text/event-stream"
		}
		if err != nil || string(content) != want || speech.Header.Get("Content-Type") != kind {
			t.Errorf("got %d bytes of %s, %v", len(content), speech.Header.Get("Content-Type"), err)
		}
		wasSent(t, up, "/audio/speech", `"model":"up/fast:1"`, `"voice":"marin"`)
	}
	counted(t, g, 5, 0, 7)
}

func TestSDKImages(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	images, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "fast", Prompt: "a cat", N: openai.Int(1)})
	if err != nil || images.Data[0].B64JSON != "aGk=" {
		t.Errorf("got %+v, %v", images, err)
	}
	wasSent(t, up, "/images/generations", `"model":"up/fast:1"`, `"prompt":"a cat"`)
	counted(t, g, 5, 0, 7)
	if events := drain(t, client.Images.GenerateStreaming(t.Context(),
		openai.ImageGenerateParams{Model: "m", Prompt: "a cat"})); len(events) != 1 || events[0].B64JSON != "aGk=" {
		t.Errorf("got %+v", events)
	}

	edit := openai.ImageEditParams{
		Model: "fast", Prompt: "more cat",
		Image: openai.ImageEditParamsImageUnion{OfFileArray: []io.Reader{
			openai.File(strings.NewReader(png), "å.png", "image/png"),
			openai.File(strings.NewReader("2"), "b.png", "image/png"),
		}},
	}
	if images, err = client.Images.Edit(t.Context(), edit); err != nil || images.Data[0].B64JSON != "aGk=" {
		t.Errorf("got %+v, %v", images, err)
	}
	parts, contents := sentForm(t, up, "/images/edits")
	if got := strings.Join(parts, "\n"); !strings.Contains(got, "image[]=å.png;image/png\nimage[]=b.png;image/png") ||
		!strings.Contains(got, "model=up/fast:1") || contents["image[]"] != png+"2" {
		t.Errorf("upstream got %s", got)
	}
	if events := drain(t, client.Images.EditStreaming(t.Context(), edit)); len(events) != 1 {
		t.Errorf("got %+v", events)
	}
	counted(t, g, 5, 0, 7)
}

func TestSDKModerations(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, func(o *api.Options) { o.DefaultModerationModel = "fast" })
	client := sdk(t, g)
	for _, model := range []string{"", "other"} {
		answer, err := client.Moderations.New(t.Context(), openai.ModerationNewParams{Model: model, Input: openai.ModerationNewParamsInputUnion{
			OfModerationMultiModalArray: []openai.ModerationMultiModalInputUnionParam{{OfText: &openai.ModerationTextInputParam{Text: "fight"}}},
		}})
		if err != nil || !answer.Results[0].Flagged {
			t.Errorf("got %+v, %v", answer, err)
		}
		if model == "" {
			model = "up/fast:1"
		}
		wasSent(t, up, "/moderations", `"model":"`+model+`"`)
	}
}

// TestSDKVision: a picture of several MB passes within its message, unchanged.
func TestSDKVision(t *testing.T) {
	t.Parallel()
	g, up := newOpenAI(t, nil)
	client := sdk(t, g)
	picture := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo+", 500_000)
	answer, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "fast",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
			openai.TextContentPart("what is it?"), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: picture}),
		})},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "look"})},
	})
	if err != nil || answer.Choices[0].Message.Content != "hello" {
		t.Errorf("got %+v, %v", answer, err)
	}
	wasSent(t, up, "/chat/completions", `"model":"up/fast:1"`, picture, `"name":"look"`)
	counted(t, g, 5, 0, 7)
}

func TestSDKErrorClasses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		input, key string
		status     int
		code       string
	}{
		{"fail 400", goodKey, 400, "context_length_exceeded"},
		{"fail 429", goodKey, 429, "rate_limit_exceeded"},
		{"fail 500", goodKey, 502, "upstream_error"},
		{"fail 401", goodKey, 502, "upstream_error"},
		{"hi", "sk-wrong", 401, "invalid_api_key"},
		{"hi", "sk-few", 404, "model_not_found"},
	} {
		g, _ := newOpenAI(t, nil) // the channel cools down after a failure
		client := sdk(t, g, option.WithAPIKey(test.key), option.WithMaxRetries(0))
		_, chatErr := client.Responses.New(t.Context(),
			responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(test.input)}})
		var failed *openai.Error
		if !errors.As(chatErr, &failed) || failed.StatusCode != test.status || failed.Code != test.code {
			t.Errorf("%s: got %v, want %d %s", test.input, chatErr, test.status, test.code)
		}
		if chatErr != nil && strings.Contains(chatErr.Error(), upstreamKey) {
			t.Errorf("%s: got %v, which has the key", test.input, chatErr)
		}
	}
}
