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
	w, frame := hostedWriter{fields: fields, members: d.Members}, d.Frame
	w.word("prompt", "prompt", req.Prompt)
	w.word("negative_prompt", "negative_prompt", req.NegativePrompt)
	w.word("aspect_ratio", "aspect_ratio", frame.AspectRatio)
	w.word("resolution", "resolution", frame.Resolution)
	w.word("size", "size", frame.Size)
	if frame.Seconds > 0 {
		w.number("seconds", "duration", h.Length, int64(frame.Seconds))
	}
	if req.FPS != 0 && model.FPS == providers.AnyFPS {
		w.number("fps", "fps", "", int64(req.FPS))
	}
	if req.Seed != nil {
		w.number("seed", "seed", "", *req.Seed)
	}
	if req.GenerateAudio != nil && model.Audio == providers.AudioOption {
		w.members[w.name("generate_audio", cmp.Or(h.Sound, "generate_audio"))] = *req.GenerateAudio
	}
	h.inputs(ctx, d, w, req)
	return d
}

type hostedWriter struct {
	fields  providers.VideoFields
	members Members
}

func (w hostedWriter) name(field, usual string) string { return cmp.Or(w.fields[field].Name, usual) }

// word writes a text that is not empty.
func (w hostedWriter) word(field, usual, text string) {
	if text == "" {
		return
	}
	switch w.fields[field].As {
	case providers.AsUpper:
		text = strings.ToUpper(text)
	case providers.AsStar:
		text = strings.Replace(text, "x", "*", 1)
	}
	w.members[w.name(field, usual)] = text
}

// number writes a number in the operator's form, otherwise in the usual one.
func (w hostedWriter) number(field, usual string, form providers.FieldForm, n int64) {
	name, text := w.name(field, usual), strconv.FormatInt(n, 10)
	switch cmp.Or(w.fields[field].As, form) {
	case providers.AsText:
		w.members[name] = text
	case providers.AsUnit:
		w.members[name] = text + "s"
	default:
		w.members[name] = n
	}
}

func (h Hosted) inputs(ctx context.Context, d *Draft, w hostedWriter, req providers.VideoRequest) {
	lists := make(map[string][]string)
	for _, input := range req.Inputs {
		field := w.fields.Of(input.Role)
		name := cmp.Or(field.Name, h.Inputs[input.Role])
		if name == "" {
			field := providers.InputField(input.Role)
			d.Refuse(providers.InvalidField(field, "The upstream's model has no field for '%s'.", field))
		}
		text := d.Text(ctx, input)
		if field.As == providers.AsList || field.As == "" && input.Role == providers.Reference {
			lists[name] = append(lists[name], text)
			w.members[name] = lists[name]
			continue
		}
		w.members[name] = text
	}
}
