package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// encoded is a request body. It is in memory: its media were bounded when they were received.
type encoded struct {
	contentType string
	bytes       []byte
}

// VideoModels accepts everything except inputs: OpenAI's own service has ended, and compatible servers have their own tables.
func VideoModels(string) (providers.VideoModel, bool) {
	return providers.AnyVideoModel(providers.VideoInput{Role: providers.FirstFrame}), true
}

func createBody(ctx context.Context, model string, req providers.VideoRequest) (encoded, error) {
	if len(req.Inputs) > 1 {
		fault := providers.InvalidField("input_reference", "The upstream takes one input image, not %d.", len(req.Inputs))
		return encoded{}, fault
	}
	if req.N > 1 {
		return encoded{}, providers.InvalidField("n", "The upstream makes one video a job.")
	}
	fields, err := req.Parameters()
	if err != nil {
		return encoded{}, err
	}
	size := req.Size
	if size == "" && req.Width > 0 && req.Height > 0 {
		size = fmt.Sprintf("%dx%d", req.Width, req.Height)
	}
	members := make(upstream.Members)
	members.Words(map[string]string{
		"model": model, "prompt": req.Prompt, "seconds": req.Seconds, "size": size,
		// Not OpenAI's own: the names of compatible servers.
		"negative_prompt": req.NegativePrompt, "aspect_ratio": req.AspectRatio, "resolution": req.Resolution,
	})
	if req.GenerateAudio != nil {
		members["generate_audio"] = *req.GenerateAudio
	}
	members.Seed(req)
	if len(req.Inputs) == 1 && req.Inputs[0].URL != "" {
		members["input_reference"] = map[string]string{"image_url": req.Inputs[0].URL}
		return document(fields, members)
	}
	if _, err := upstream.Fields(fields, members); err != nil {
		return encoded{}, err
	}
	return createForm(ctx, fields, req.Inputs)
}

// remixBody writes a remix, which has the source's model, length and size. It fails only before anything was sent.
func remixBody(req providers.VideoRequest) (encoded, error) {
	if len(req.Inputs) > 0 {
		return encoded{}, providers.InvalidField("input_reference", "The upstream does not accept an input image for a remix.")
	}
	fields, err := req.Parameters()
	if err != nil {
		return encoded{}, err
	}
	return document(fields, upstream.Members{"prompt": req.Prompt})
}

func document(fields map[string]json.RawMessage, members upstream.Members) (encoded, error) {
	body, err := upstream.Fields(fields, members)
	return encoded{contentType: "application/json", bytes: body}, err
}

// createForm writes the fields as multipart, strings bare and everything else as JSON, and the image as a file.
func createForm(ctx context.Context, fields map[string]json.RawMessage, images []providers.Media) (encoded, error) {
	var buf bytes.Buffer
	form := multipart.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text := string(fields[name])
		if strings.HasPrefix(text, `"`) {
			if err := json.Unmarshal(fields[name], &text); err != nil {
				return encoded{}, providers.Unwritable(err)
			}
		}
		if text == "null" {
			continue
		}
		if err := form.WriteField(name, text); err != nil {
			return encoded{}, providers.Unwritable(err)
		}
	}
	for _, image := range images {
		if err := upstream.WriteFile(ctx, form, "input_reference", image); err != nil {
			return encoded{}, err
		}
	}
	if err := form.Close(); err != nil {
		return encoded{}, providers.Unwritable(err)
	}
	return encoded{contentType: form.FormDataContentType(), bytes: buf.Bytes()}, nil
}
