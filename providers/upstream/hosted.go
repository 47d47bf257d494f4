package upstream

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// SecondsForm is how a hosted model takes a length.
type SecondsForm int

// A length of eight seconds is 8, "8" or "8s".
const (
	SecondsNumber SecondsForm = iota
	SecondsText
	SecondsWithUnit
)

// Hosted is one model of a vendor that hosts many, each with names of its own for what a request says. The names that nearly
// all of them have are duration, aspect_ratio, resolution, generate_audio, negative_prompt, seed and fps.
type Hosted struct {
	// Model is what it takes: what stands there has a field, nothing else has.
	Model providers.VideoModel
	// Inputs are the names of the inputs by role. Those of references take a list.
	Inputs map[providers.InputRole]string
	// Length is how it takes seconds.
	Length SecondsForm
	// Sound is the name of the switch for sound, "" for generate_audio.
	Sound string
	// Needs are the roles without which it makes nothing.
	Needs []providers.InputRole
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

// Members writes a request in the model's own names. Every failure is before anything was sent.
func (h Hosted) Members(ctx context.Context, req providers.VideoRequest) (map[string]any, error) {
	shape := req.Shape()
	if fault := h.Model.Check(shape); fault != nil {
		return nil, fault
	}
	frame, fault := h.Model.Frame(shape)
	if fault != nil {
		return nil, fault
	}
	for _, role := range h.Needs {
		if len(req.Of(role)) == 0 {
			return nil, providers.InvalidField(providers.InputField(role), "The upstream's model needs '%s'.", providers.InputField(role))
		}
	}
	members := make(map[string]any)
	for name, word := range map[string]string{
		"prompt": req.Prompt, "negative_prompt": req.NegativePrompt, "aspect_ratio": frame.AspectRatio, "resolution": frame.Resolution, "size": frame.Size,
	} {
		if word != "" {
			members[name] = word
		}
	}
	if err := h.length(members, req.Seconds); err != nil {
		return nil, err
	}
	if req.FPS != 0 && h.Model.FPS == providers.AnyFPS {
		members["fps"] = req.FPS
	}
	if req.Seed != nil {
		members["seed"] = *req.Seed
	}
	if req.GenerateAudio != nil && h.Model.Audio == providers.AudioOption {
		name := h.Sound
		if name == "" {
			name = "generate_audio"
		}
		members[name] = *req.GenerateAudio
	}
	return members, h.inputs(ctx, members, req)
}

func (h Hosted) length(members map[string]any, text string) error {
	seconds, err := WholeSeconds(text)
	if err != nil || seconds == 0 {
		return err
	}
	members["duration"] = seconds
	switch h.Length {
	case SecondsText:
		members["duration"] = strconv.Itoa(seconds)
	case SecondsWithUnit:
		members["duration"] = strconv.Itoa(seconds) + "s"
	}
	return nil
}

func (h Hosted) inputs(ctx context.Context, members map[string]any, req providers.VideoRequest) error {
	var references []string
	for _, input := range req.Inputs {
		name, ok := h.Inputs[input.Role]
		if !ok {
			field := providers.InputField(input.Role)
			return providers.InvalidField(field, "The upstream's model has no field for '%s'.", field)
		}
		text, err := InputText(ctx, input)
		if err != nil {
			return err
		}
		if input.Role == providers.Reference {
			references = append(references, text)
			members[name] = references
			continue
		}
		members[name] = text
	}
	return nil
}
