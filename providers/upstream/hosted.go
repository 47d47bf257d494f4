package upstream

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// Hosted is one model of a vendor that hosts many, each with its own field names. Nearly all of them have prompt, duration,
// aspect_ratio, resolution, size, generate_audio, negative_prompt, seed and fps.
type Hosted struct {
	// Model is what it accepts. It has fields only for what Model lists.
	Model providers.VideoModel
	// Inputs are the field names of the inputs by role. References are a list.
	Inputs map[providers.InputRole]string
	// Length is the form of seconds: 8, "8" or "8s".
	Length providers.FieldForm
	// Sound is the name of the switch for sound, "" for generate_audio.
	Sound string
}

// Taking returns a model with inputs of these names and a maximum of references. A last frame requires a first frame. needs are required.
func Taking(model providers.VideoModel, references int, names map[providers.InputRole]string, needs ...providers.InputRole) Hosted {
	for _, role := range [...]providers.InputRole{
		providers.FirstFrame, providers.LastFrame, providers.Reference, providers.ExtendVideo,
		providers.SourceAudio,
	} {
		if _, ok := names[role]; !ok {
			continue
		}
		input := providers.VideoInput{Role: role, Needed: slices.Contains(needs, role)}
		switch role {
		case providers.LastFrame:
			first := providers.FirstFrame
			input.With = &first
		case providers.Reference:
			input.Max = references
		}
		model.Inputs = append(model.Inputs, input)
	}
	return Hosted{Model: model, Inputs: names}
}

// ModelPath escapes a model's name as part of a URL path. A client may choose the name, so dot segments are refused.
func ModelPath(model string) (string, error) {
	words := strings.Split(model, "/")
	for i, word := range words {
		if strings.Trim(word, ".") == "" {
			return "", &providers.Fault{
				Kind: providers.ModelNotFound, Message: "The upstream does not have the model.",
				Accepted: providers.NotAccepted,
			}
		}
		words[i] = url.PathEscape(word)
	}
	return strings.Join(words, "/"), nil
}

// Draft writes a request with the model's field names. The operator's fields replace them.
func (h Hosted) Draft(ctx context.Context, req providers.VideoRequest, fields providers.VideoFields) *Draft {
	model := fields.Open(h.Model)
	d := NewDraft(req, "", model, nil)
	word := func(field, text string) {
		switch fields[field].As {
		case providers.AsUpper:
			text = strings.ToUpper(text)
		case providers.AsStar:
			text = strings.Replace(text, "x", "*", 1)
		}
		d.Words(map[string]string{cmp.Or(fields[field].Name, field): text})
	}
	number := func(field, usual string, form providers.FieldForm, n int64) {
		name, text := cmp.Or(fields[field].Name, usual), strconv.FormatInt(n, 10)
		switch cmp.Or(fields[field].As, form) {
		case providers.AsText:
			d.Members[name] = text
		case providers.AsUnit:
			d.Members[name] = text + "s"
		default:
			d.Members[name] = n
		}
	}
	word("prompt", req.Prompt)
	word("negative_prompt", req.NegativePrompt)
	word("aspect_ratio", d.Frame.AspectRatio)
	word("resolution", d.Frame.Resolution)
	word("size", d.Frame.Size)
	if d.Frame.Seconds > 0 {
		number("seconds", "duration", h.Length, int64(d.Frame.Seconds))
	}
	if req.FPS != 0 && model.FPS == providers.AnyFPS {
		number("fps", "fps", "", int64(req.FPS))
	}
	if req.Seed != nil {
		number("seed", "seed", "", *req.Seed)
	}
	d.Sound(cmp.Or(fields["generate_audio"].Name, h.Sound, "generate_audio"), req, model)
	h.inputs(ctx, d, req, fields)
	return d
}

func (h Hosted) inputs(ctx context.Context, d *Draft, req providers.VideoRequest, fields providers.VideoFields) {
	lists := make(map[string][]string)
	for _, input := range req.Inputs {
		field := fields.Of(input.Role)
		name := cmp.Or(field.Name, h.Inputs[input.Role])
		if name == "" {
			field := providers.InputField(input.Role)
			d.Refuse(providers.InvalidField(field, "The upstream's model has no field for '%s'.", field))
		}
		text := d.Text(ctx, input)
		d.Members[name] = text
		if field.As == providers.AsList || field.As == "" && input.Role == providers.Reference {
			lists[name] = append(lists[name], text)
			d.Members[name] = lists[name]
		}
	}
}
