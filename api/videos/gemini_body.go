package videos

import (
	"cmp"
	"net/http"
	"slices"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// geminiVideoBody is the body of predictLongRunning. It is never filled. Its shape is that of google.golang.org/genai 1.77 for the Gemini
// API, with the seed, fps and generateAudio of Google Cloud.
type geminiVideoBody struct {
	Instances  []geminiVideoInstance `json:"instances" minItems:"1" maxItems:"1" nullable:"false" doc:"What to make"`
	Parameters geminiVideoParameters `json:"parameters,omitzero"`
	Webhook    geminiVideoWebhook    `json:"webhookConfig,omitzero"`
}

type geminiVideoInstance struct {
	Prompt          string                 `json:"prompt,omitempty" doc:"What the video shows, in 128 KiB at most"`
	Image           geminiVideoMedia       `json:"image,omitzero" doc:"Image that the video begins with"`
	LastFrame       geminiVideoMedia       `json:"lastFrame,omitzero" doc:"Image that the video ends with"`
	ReferenceImages []geminiVideoReference `json:"referenceImages,omitempty" nullable:"false" doc:"Images of what the video shows"`
	Video           geminiVideoMedia       `json:"video,omitzero" doc:"Video to continue; the uri of a video of this gateway names its task"`
}

type geminiVideoReference struct {
	Image         geminiVideoMedia `json:"image"`
	ReferenceType string           `json:"referenceType,omitempty" doc:"Has no effect: each image is a reference"`
}

// geminiVideoMedia is an image or a video: its bytes in Base64 under one of their names, or its address.
type geminiVideoMedia struct {
	Bytes    string                 `json:"bytesBase64Encoded,omitempty" doc:"Bytes in Base64"`
	Video    string                 `json:"encodedVideo,omitempty" doc:"Bytes of a video in Base64"`
	MIMEType string                 `json:"mimeType,omitempty" doc:"Not required: detected from the bytes"`
	Encoding string                 `json:"encoding,omitempty" doc:"mimeType of a video"`
	URI      string                 `json:"uri,omitempty" doc:"http or https address"`
	Inline   geminiVideoInlineBytes `json:"inlineData,omitzero"`
}

type geminiVideoInlineBytes struct {
	MIMEType string `json:"mimeType,omitempty"`
	Data     string `json:"data,omitempty" doc:"Bytes in Base64"`
}

type geminiVideoParameters struct {
	DurationSeconds textOrNumber `json:"durationSeconds,omitzero" doc:"Seconds to generate"`
	AspectRatio     string       `json:"aspectRatio,omitempty" doc:"Width to height, as in 16:9"`
	Resolution      string       `json:"resolution,omitempty" doc:"A word such as 720p or 4k"`
	NegativePrompt  string       `json:"negativePrompt,omitempty" doc:"What the video must not show"`
	GenerateAudio   textOrSwitch `json:"generateAudio,omitzero" doc:"Whether the video has sound"`
	Seed            int64        `json:"seed,omitempty"`
	SampleCount     int          `json:"sampleCount,omitempty" doc:"Number of videos; more than one only where the vendor makes several"`
	FPS             int          `json:"fps,omitempty"`
}

type geminiVideoWebhook struct {
	URIs []string `json:"uris,omitempty" nullable:"false" doc:"One address that receives the event at the task's end; requires a token with a webhook secret"`
}

// read reads a predictLongRunning. Undocumented members of the instance and the parameters reach the vendor as its own parameters.
func (f gemini) read(x *edge.Request, r *http.Request) (req providers.VideoRequest, source string, err error) {
	b, err := readJSON(x, r, f.check)
	if err != nil {
		return req, "", err
	}
	instances := b.Value("instances")
	if instances.Len() != 1 {
		return req, "", providers.InvalidField("instances", "Invalid request: 'instances' must contain one instance.")
	}
	var known, extra []byte
	for _, instance := range instances.Items() {
		if source, err = readInstance(&req, instance, &extra); err != nil {
			return req, "", err
		}
	}
	in := dialectOf(providers.Gemini)
	for name, value := range b.Value("parameters").Members() {
		parameter := rawjson.Camel(name.String())
		field := func(field string) bool { return cmp.Or(in.names[field], field) == parameter }
		fields := []string{"seconds", "aspect_ratio", "resolution", "negative_prompt", "generate_audio", "seed", "n", "fps"}
		if at := slices.IndexFunc(fields, field); at >= 0 {
			known = body.AppendMember(known, rawjson.Quote(fields[at]), value)
		} else if !value.Absent() {
			extra = body.AppendMember(extra, name, value)
		}
	}
	if req.WebhookURL, err = readWebhook(b.Value("webhookConfig"), "webhookConfig"); err != nil {
		return req, "", err
	}
	return req, source, f.service.checks.takeNamed(&req, in, known, extra)
}

// readWebhook returns the only address of a webhook configuration, "" for none.
func readWebhook(config rawjson.Value, field string) (address string, err error) {
	for _, uri := range config.Get("uris").Items() {
		if address != "" {
			return "", providers.InvalidField(field, "Invalid request: '%s' must name one address.", field)
		}
		address = uri.Text().String()
	}
	return address, nil
}

// readInstance reads the prompt and the inputs. source is the file id of a video that was made here.
func readInstance(req *providers.VideoRequest, instance rawjson.Value, extra *[]byte) (source string, err error) {
	for name, value := range instance.Members() {
		role, several := providers.FirstFrame, false
		switch field := rawjson.Camel(name.String()); field {
		case "prompt":
			req.Prompt = value.Text().String()
			continue
		case "image":
		case "lastFrame":
			role = providers.LastFrame
		case "referenceImages":
			role, several = providers.Reference, true
		case "video":
			role = providers.ExtendVideo
			if source = fileOf(value.Get("uri").Text().String()); source != "" {
				continue
			}
		default:
			*extra = body.AppendMember(*extra, name, value)
			continue
		}
		param := name.String()
		if !several {
			if err := addGeminiMedia(req, role, param, value); err != nil {
				return "", err
			}
			continue
		}
		for _, reference := range value.Items() {
			if err := addGeminiMedia(req, role, param, reference.Get("image")); err != nil {
				return "", err
			}
		}
	}
	return source, nil
}

// addGeminiMedia adds an input from its bytes or its address; null adds none.
func addGeminiMedia(req *providers.VideoRequest, role providers.InputRole, param string, object rawjson.Value) error {
	if object.Absent() {
		return nil
	}
	data := object.GetAny("bytesBase64Encoded", "bytes_base64_encoded", "encodedVideo", "encoded_video", "uri")
	if inline := object.GetCamel("inlineData"); inline != nil {
		data = inline.Get("data")
	}
	input, err := newMedia(role, param, data.Text().Decoded())
	if err != nil {
		return err
	}
	return addInput(req, param, input)
}
