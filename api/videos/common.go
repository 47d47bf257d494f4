package videos

import (
	"cmp"
	"slices"
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// CommonFields are the fields of a create that the generic format and the Sora-compatible one both have.
type CommonFields struct {
	Image           string       `json:"image,omitempty" doc:"Image that the video begins with: an http, https or data URL, or its bytes in Base64 (PNG, JPEG or WebP, and other kinds where the model takes them, 32 MiB at most)"`
	LastImage       string       `json:"last_image,omitempty" doc:"Image that the video ends with, as image"`
	ReferenceImages []string     `json:"reference_images,omitempty" nullable:"false" doc:"Images of what the video shows, each as image"`
	ReferenceRoles  roles        `json:"input_reference_role,omitzero" doc:"The role of each input_reference, in their order: first_frame, last_frame or reference"`
	Video           string       `json:"video,omitempty" doc:"Video to change or to continue: an http, https or data URL, or its bytes in Base64"`
	Audio           string       `json:"audio,omitempty" doc:"Sound to use: an http, https or data URL, or its bytes in Base64"`
	NegativePrompt  string       `json:"negative_prompt,omitempty" doc:"What the video must not show"`
	AspectRatio     string       `json:"aspect_ratio,omitempty" doc:"Width to height, as in 16:9, in place of pixels"`
	Resolution      string       `json:"resolution,omitempty" doc:"A word such as 720p or 4k, in place of pixels"`
	GenerateAudio   textOrSwitch `json:"generate_audio,omitzero" doc:"Whether the video has sound"`
}

// textOrSwitch is true or false, or a string that contains one of them, as in forms.
type textOrSwitch = body.Either[bool, string]

// roles are the roles of images: one, or an array.
type roles = body.Either[string, []string]

func commonInputs() map[string]providers.InputRole {
	return map[string]providers.InputRole{
		"image": providers.FirstFrame, "last_image": providers.LastFrame, "reference_images": providers.Reference,
		"video": providers.SourceVideo, "audio": providers.SourceAudio,
	}
}

// takeCommon reads the common fields of a body. req.Inputs has only those of input_reference so far.
func takeCommon(req *providers.VideoRequest, b *body.JSON) error {
	if err := takeRoles(req, b.Value("input_reference_role")); err != nil {
		return err
	}
	inputs := commonInputs()
	for _, name := range [...]string{"image", "last_image", "video", "audio"} {
		text := b.Value(name).Text().Decoded()
		if len(text) == 0 {
			continue
		}
		input, err := newMedia(inputs[name], name, text)
		if err == nil {
			err = addInput(req, name, input)
		}
		if err != nil {
			return err
		}
	}
	reference := func(param string, text []byte) (providers.Media, error) {
		return newMedia(providers.Reference, param, text)
	}
	if err := addInputs(req, "reference_images", b.Value("reference_images"), reference); err != nil {
		return err
	}
	req.NegativePrompt = cmp.Or(req.NegativePrompt, b.Text("negative_prompt"))
	if len(req.NegativePrompt) > maxEchoed {
		return tooLong("negative_prompt")
	}
	for _, word := range [...]struct {
		name string
		into *string
	}{{"aspect_ratio", &req.AspectRatio}, {"resolution", &req.Resolution}} {
		if text := strings.ToLower(strings.TrimSpace(b.Text(word.name))); text != "" {
			if len(text) > maxWord {
				return providers.InvalidField(word.name, "Invalid request: '%s' is too long.", word.name)
			}
			*word.into = text
		}
	}
	return takeSwitch(&req.GenerateAudio, "generate_audio", b.Value("generate_audio"))
}

// maxWord bounds the values of ratio and resolution in bytes. The longest values of vendors have a dozen.
const maxWord = 64

func takeRoles(req *providers.VideoRequest, raw rawjson.Value) error {
	if raw == nil {
		return nil
	}
	words, known := []rawjson.Value{raw}, map[string]providers.InputRole{
		"first_frame": providers.FirstFrame, "last_frame": providers.LastFrame, "reference": providers.Reference,
	}
	if raw.IsArray() {
		words = nil
		for _, word := range raw.Items() {
			words = append(words, word)
		}
	}
	for i, word := range words {
		role, ok := known[word.Text().String()]
		switch {
		case !ok:
			return providers.InvalidField("input_reference_role",
				"Invalid request: 'input_reference_role' must be first_frame, last_frame or reference.")
		case i >= len(req.Inputs):
			return providers.InvalidField("input_reference_role", "Invalid request: 'input_reference_role' has more roles than there are images.")
		}
		req.Inputs[i].Role = role
	}
	return nil
}

// takeSwitch reads true or false, bare or as a string.
func takeSwitch(into **bool, name string, raw rawjson.Value) error {
	if raw == nil {
		return nil
	}
	text := string(raw)
	if raw.IsText() {
		text = raw.Text().String()
	}
	if !slices.Contains([]string{"true", "false"}, text) {
		return providers.InvalidField(name, "Invalid request: '%s' must be true or false.", name)
	}
	on := text == "true"
	*into = &on
	return nil
}
