package generic

import (
	"context"
	"mime"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// VideoModels accepts everything: the upstream has its own table.
func VideoModels(string) (providers.VideoModel, bool) {
	model := providers.AnyVideoModel(append(providers.Frames(providers.VideoInput{}),
		providers.VideoInput{Role: providers.Reference, Max: maxReferences},
		providers.VideoInput{Role: providers.SourceVideo},
		providers.VideoInput{Role: providers.SourceAudio})...)
	model.N = providers.AnyNumber
	return model, true
}

// maxReferences is the most inputs of a create in the contract.
const maxReferences = 16

// create writes a create. The same request has the same bytes each time: the upstream compares them for a repeated idempotency key.
func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (create upstream.JobRequest, err error) {
	metadata := req.Metadata
	req.Metadata = nil // it is sent as an object, and the upstream reads its members
	fields, err := req.Parameters()
	if err != nil {
		return create, err
	}
	members := upstream.Members{"model": to.Model}
	members.Words(map[string]string{
		"prompt": req.Prompt, "negative_prompt": req.NegativePrompt, "aspect_ratio": req.AspectRatio, "resolution": req.Resolution,
	})
	if req.GenerateAudio != nil {
		members["generate_audio"] = *req.GenerateAudio
	}
	for name, value := range map[string]int{"width": req.Width, "height": req.Height, "fps": req.FPS, "n": req.N} {
		if value != 0 {
			members[name] = value
		}
	}
	if req.Width == 0 && req.Height == 0 && req.Size != "" {
		members["size"] = req.Size // a vendor's word that the upstream may accept
	}
	members.Seed(req)
	if req.Seconds != "" {
		seconds, err := strconv.ParseFloat(req.Seconds, 64)
		if err != nil {
			return create, providers.InvalidField("seconds", "The upstream takes a number of seconds, not %q.", req.Seconds)
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
			return create, err
		}
		name := providers.InputField(input.Role)
		if input.Role == providers.Reference {
			references = append(references, text)
			members[name] = references
			continue
		}
		if members[name] != nil {
			return create, providers.InvalidField(name, "The upstream takes one '%s'.", name)
		}
		members[name] = text
	}
	body, err := upstream.Fields(fields, members) // by name
	return keyed(path, body, req.IdempotencyKey), err
}

// remixBody writes a remix, which has the source's model, length and size. It fails only before anything was sent.
func remixBody(req providers.VideoRequest) ([]byte, error) {
	if len(req.Inputs) > 0 {
		return nil, providers.InvalidField("input_reference", "The upstream does not accept an input image for a remix.")
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
	return upstream.Fields(fields, map[string]any{"prompt": req.Prompt})
}

// inputText returns an input in the contract's form: its address, or its bytes in a data URL.
func inputText(ctx context.Context, input providers.Media) (string, error) {
	if input.URL != "" {
		return input.URL, nil
	}
	data, err := upstream.InputBase64(ctx, input)
	// The client's type may be invalid. Then bare Base64 is sent.
	if kind, _, wrong := mime.ParseMediaType(input.ContentType); wrong == nil {
		data = "data:" + kind + ";base64," + data
	}
	return data, err
}
