package generic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"mime"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// VideoModels lets all pass: the upstream has a table of its own.
func VideoModels(string) (providers.VideoModel, bool) {
	first := providers.FirstFrame
	model := providers.AnyVideoModel(
		providers.VideoInput{Role: providers.FirstFrame},
		providers.VideoInput{Role: providers.LastFrame, With: &first},
		providers.VideoInput{Role: providers.Reference, Max: maxReferences},
		providers.VideoInput{Role: providers.SourceVideo},
		providers.VideoInput{Role: providers.SourceAudio},
	)
	model.N = providers.AnyNumber
	return model, true
}

// maxReferences is how many inputs a create of the contract may have.
const maxReferences = 16

// createBody writes a create. The same request has the same bytes each time: the upstream compares them where it knows
// the idempotency key. Every failure is before anything was sent.
func createBody(ctx context.Context, model string, req providers.VideoRequest) ([]byte, error) {
	metadata := req.Metadata
	req.Metadata = nil // it travels whole, and its members are the upstream's to take apart
	fields, err := req.Parameters()
	if err != nil {
		return nil, err
	}
	members := map[string]any{"model": model}
	if req.Prompt != "" {
		members["prompt"] = req.Prompt
	}
	for name, value := range map[string]string{
		"negative_prompt": req.NegativePrompt, "aspect_ratio": req.AspectRatio, "resolution": req.Resolution,
	} {
		if value != "" {
			members[name] = value
		}
	}
	if req.GenerateAudio != nil {
		members["generate_audio"] = *req.GenerateAudio
	}
	for name, value := range map[string]int{"width": req.Width, "height": req.Height, "fps": req.FPS, "n": req.N} {
		if value != 0 {
			members[name] = value
		}
	}
	if req.Width == 0 && req.Height == 0 && req.Size != "" {
		members["size"] = req.Size // a word of the vendor's behind the upstream
	}
	if req.Seed != nil {
		members["seed"] = *req.Seed
	}
	if req.Seconds != "" {
		seconds, err := strconv.ParseFloat(req.Seconds, 64)
		if err != nil {
			return nil, providers.InvalidField("seconds", "The upstream takes a number of seconds, not %q.", req.Seconds)
		}
		members["duration"] = seconds
	}
	if len(metadata) > 0 {
		members["metadata"] = metadata
	}
	var references []string
	for _, input := range req.Inputs {
		text, err := inputText(ctx, input)
		if err != nil {
			return nil, err
		}
		name := providers.InputField(input.Role)
		if input.Role == providers.Reference {
			references = append(references, text)
			members[name] = references
			continue
		}
		if members[name] != nil {
			return nil, providers.InvalidField(name, "The upstream takes one '%s'.", name)
		}
		members[name] = text
	}
	for name, value := range members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, providers.Unwritable(err)
		}
		fields[name] = raw
	}
	body, err := json.Marshal(fields) // by name
	if err != nil {
		return nil, providers.Unwritable(err)
	}
	return body, nil
}

// remixBody writes a remix, which has the source's model, length and size. Every failure is before anything was sent.
func remixBody(req providers.VideoRequest) ([]byte, error) {
	if len(req.Inputs) > 0 {
		return nil, providers.InvalidField("input_reference", "The upstream takes no input image for a remix.")
	}
	metadata := req.Metadata
	req.Metadata = nil
	fields, err := req.Parameters()
	if err != nil {
		return nil, err
	}
	if len(metadata) > 0 {
		fields["metadata"] = metadata
	}
	if fields["prompt"], err = json.Marshal(req.Prompt); err != nil {
		return nil, providers.Unwritable(err)
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, providers.Unwritable(err)
	}
	return body, nil
}

// inputText is an input as the contract takes it: its address, or its bytes in a data URL.
func inputText(ctx context.Context, input providers.Media) (string, error) {
	if input.URL != "" {
		return input.URL, nil
	}
	var text strings.Builder
	// A type that is none is the client's word about its file and nothing more: bare Base64 says as much.
	if kind, _, err := mime.ParseMediaType(input.ContentType); err == nil {
		text.WriteString("data:" + kind + ";base64,")
	}
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	if err := input.CopyTo(ctx, encoder); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", providers.Unwritable(err)
	}
	return text.String(), nil
}
