package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"modelrelay/activities"
	"modelrelay/api/console/inprocess"
)

const (
	// answerMost bounds the bytes of an answer that are read for a page, and answerText the bytes of the text that it shows.
	answerMost, answerText = 8 << 20, 64 << 10
	// answerLinks bounds the number of links.
	answerLinks = 20
)

// callAnswer is the answer of a call on a page: its text, pictures and links. All of it is untrusted.
type callAnswer struct {
	Type   string
	Size   int64
	Text   string
	Images []template.URL
	Links  []string
	// Prose: the text is a model's. Sound: the answer is audio. Cut: the answer is longer than the shown text.
	Prose, Sound, Cut bool
}

// readAnswer reads the answer of an ended call; nil if there is none yet.
func readAnswer(v *View, id string, outputs []activities.Output) *callAnswer {
	if len(outputs) == 0 {
		return nil
	}
	kind, _, _ := strings.Cut(outputs[0].ContentType, ";")
	answer := &callAnswer{Type: strings.TrimSpace(kind), Size: outputs[0].Size}
	if answer.Sound = strings.HasPrefix(answer.Type, "audio/"); answer.Sound {
		return answer
	}
	r, err := inprocess.NewRequest(v.asCaller(v.User), v.R, http.MethodGet, v.contentPath(id), nil)
	if err != nil {
		return answer
	}
	got, err := inprocess.Transport{Handler: v.s.o.API}.RoundTrip(r)
	if err != nil {
		return answer
	}
	defer func() { _ = got.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(got.Body, answerMost+1)) // after an error, the page shows what arrived
	if answer.Cut = len(body) > answerMost; !answer.Cut {
		answer.show(body)
	}
	return answer
}

// show extracts the texts and pictures of JSON or events. Without any it shows the whole body.
func (a *callAnswer) show(body []byte) {
	var text strings.Builder
	document := body
	switch {
	case a.Type == "text/event-stream":
		a.events(body, &text)
	case json.Valid(body):
		var value any
		_ = json.Unmarshal(body, &value) // it is valid
		a.walk(value, &text)
		var indented bytes.Buffer
		_ = json.Indent(&indented, body, "", "  ")
		document = indented.Bytes()
	}
	a.Text = text.String()
	if a.Prose = a.Text != ""; !a.Prose && len(a.Images) == 0 && len(a.Links) == 0 {
		a.Text = string(document)
	}
	if len(a.Text) > answerText {
		a.Text, a.Cut = a.Text[:answerText], true
	}
	a.Text = strings.ToValidUTF8(a.Text, "\uFFFD")
}

func (a *callAnswer) events(stream []byte, text *strings.Builder) {
	for line := range bytes.Lines(stream) {
		if data, is := bytes.CutPrefix(line, []byte("data:")); is {
			a.event(data, text)
		}
	}
}

// event adds the text of one event. In the Responses API and in transcriptions it uses only deltas, because other events repeat them.
func (a *callAnswer) event(data []byte, text *strings.Builder) {
	var event map[string]any
	if json.Unmarshal(data, &event) != nil {
		return // [DONE]
	}
	kind, _ := event["type"].(string)
	if kind != "transcript.text.done" && (!strings.HasPrefix(kind, "response.") || kind == "response.output_text.delta") {
		a.walk(event, text)
	}
}

// walk collects the texts, pictures and links of a JSON value.
func (a *callAnswer) walk(value any, text *strings.Builder) {
	switch value := value.(type) {
	case []any:
		for _, one := range value {
			a.walk(one, text)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			word, isText := value[name].(string)
			switch {
			case name == "segments" || name == "words" || name == "logprobs": // they repeat the text
			case !isText:
				a.walk(value[name], text)
			case name == "text" || name == "content" || name == "delta":
				text.WriteString(word)
			case name == "b64_json" || name == "data" || name == "result":
				a.image(word)
			case name == "url" && len(a.Links) < answerLinks && (strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://")):
				a.Links = append(a.Links, word)
			}
		}
	}
}

// image adds a picture in Base64 if its type cannot contain a script.
func (a *callAnswer) image(encoded string) {
	content, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(content) == 0 {
		return
	}
	switch kind := http.DetectContentType(content); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		a.Images = append(a.Images, template.URL("data:"+kind+";base64,"+encoded)) //nolint:gosec // the type is read from the bytes
	}
}
