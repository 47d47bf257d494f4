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

// Hosted is one model of a vendor that hosts many, each with names of its own for what a request says. The names that nearly
// all of them have are prompt, duration, aspect_ratio, resolution, size, generate_audio, negative_prompt, seed and fps.
type Hosted struct {
	// Model is what it takes: what stands there has a field, nothing else has.
	Model providers.VideoModel
	// Inputs are the names of the inputs by role. Those of references take a list.
	Inputs map[providers.InputRole]string
	// Length is how it takes seconds: 8, "8" or "8s".
	Length providers.FieldForm
	// Sound is the name of the switch for sound, "" for generate_audio.
	Sound string
}

// Taking gives a model its inputs by their names, of references at most so many. A last frame wants a first, and each of needs must be
// there.
func Taking(model providers.VideoModel, references int, names map[providers.InputRole]string, needs ...providers.InputRole) Hosted {
	for _, role := range [...]providers.InputRole{providers.FirstFrame, providers.LastFrame, providers.Reference, providers.ExtendVideo, providers.SourceAudio} {
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

// ModelPath is a model's name as a part of an address, each of its words escaped. A channel that takes every name passes on what a
// client wrote: a name that would lead elsewhere is no model.
func ModelPath(model string) (string, error) {
	words := strings.Split(model, "/")
	for i, word := range words {
		if strings.Trim(word, ".") == "" {
			return "", &providers.Fault{Kind: providers.ModelNotFound, Message: "The upstream does not have the model.", Accepted: providers.NotAccepted}
		}
		words[i] = url.PathEscape(word)
	}
	return strings.Join(words, "/"), nil
}

// Members writes a request in the model's own names, which the operator's fields overrule. Every failure is before anything was
// sent.
func (h Hosted) Members(ctx context.Context, req providers.VideoRequest, fields providers.VideoFields) (map[string]any, error) {
	model, shape := fields.Open(h.Model), req.Shape()
	frame, fault := model.Accept(shape)
	if fault != nil {
		return nil, fault
	}
	seconds, err := WholeSeconds(req.Seconds)
	if err != nil {
		return nil, err
	}
	w := hostedWriter{fields: fields, members: make(map[string]any)}
	w.word("prompt", "prompt", req.Prompt)
	w.word("negative_prompt", "negative_prompt", req.NegativePrompt)
	w.word("aspect_ratio", "aspect_ratio", frame.AspectRatio)
	w.word("resolution", "resolution", frame.Resolution)
	w.word("size", "size", frame.Size)
	if seconds > 0 {
		w.number("seconds", "duration", h.Length, int64(seconds))
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
	return w.members, h.inputs(ctx, w, req)
}

// hostedWriter writes fields by the model's names for them.
type hostedWriter struct {
	fields  providers.VideoFields
	members map[string]any
}

// name is the model's for a field.
func (w hostedWriter) name(field, usual string) string { return cmp.Or(w.fields[field].Name, usual) }

// word writes a text, where there is one.
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

// number writes a number as the operator says, else as usual.
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

func (h Hosted) inputs(ctx context.Context, w hostedWriter, req providers.VideoRequest) error {
	lists := make(map[string][]string)
	for _, input := range req.Inputs {
		field := w.fields.Of(input.Role)
		name := cmp.Or(field.Name, h.Inputs[input.Role])
		if name == "" {
			field := providers.InputField(input.Role)
			return providers.InvalidField(field, "The upstream's model has no field for '%s'.", field)
		}
		text, err := InputText(ctx, input)
		if err != nil {
			return err
		}
		if field.As == providers.AsList || field.As == "" && input.Role == providers.Reference {
			lists[name] = append(lists[name], text)
			w.members[name] = lists[name]
			continue
		}
		w.members[name] = text
	}
	return nil
}
