package omni

import (
	"context"
	"encoding/json"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// frameRate is that of all videos.
	frameRate = 24
	// maxReferences is the most images of a video from references.
	maxReferences = 10
	// maxBody bounds a create in bytes.
	maxBody = 100 << 20
)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: upstream.SecondsFrom(3, 10), AspectRatios: []string{"16:9", "9:16"}, Resolutions: []string{"360p", "720p", "1080p", "4k"},
		FPS: frameRate, Audio: providers.AudioAlways, Seed: true, Apart: true, Inputs: inputs(),
	}
	switch model {
	case "gemini-omni-1.2-flash":
		table.Seconds = upstream.SecondsFrom(3, 15)
	case "gemini-omni-1.1-flash", "gemini-omni-1.1-flash-preview":
	default:
		return table.Open(), false
	}
	return table, true
}

// inputs returns inputs that are accepted only as bytes: it is not documented whether the vendor fetches a link for a video model.
func inputs() []providers.VideoInput {
	images := []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
	return append(providers.Frames(providers.VideoInput{Types: images, NoLinks: true}),
		providers.VideoInput{Role: providers.Reference, Types: images, NoLinks: true, Max: maxReferences},
		providers.VideoInput{Role: providers.SourceVideo, NoLinks: true},
		providers.VideoInput{Role: providers.ExtendVideo, NoLinks: true})
}

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	MimeType string `json:"mime_type,omitempty"`
	Data     string `json:"data,omitempty"`
}

// create writes a create; before is the interaction whose video it changes, "" for none.
func create(ctx context.Context, model, before string, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(model)
	d := upstream.NewDraft(req, model, table, RefuseVideo, "stream")
	if before != "" && len(req.Inputs) > 0 {
		d.Refuse(providers.InvalidField(providers.InputField(req.Inputs[0].Role), "The upstream changes a video only by a prompt."))
	}
	// Without "background" the answer has the video and arrives minutes later.
	d.Members["model"], d.Members["background"], d.Members["input"] = model, true, input(ctx, d, req)
	d.Words(map[string]string{"previous_interaction_id": before})
	response := upstream.Members{"type": "video"}
	response.Words(map[string]string{"aspect_ratio": d.Frame.AspectRatio, "resolution": d.Frame.Resolution})
	if d.Frame.Seconds != 0 {
		response["duration"] = strconv.Itoa(d.Frame.Seconds) + "s"
	}
	generation := make(upstream.Members)
	if task := taskOf(req); task != "" {
		generation["video_config"] = map[string]any{"task": task}
	}
	generation.Seed(req)
	for name, ours := range map[string]upstream.Members{"response_format": response, "generation_config": generation} {
		if ours.Under(d.Object(name)); len(ours) > 0 {
			d.Members[name] = ours
		}
	}
	response.Under(map[string]json.RawMessage{"delivery": json.RawMessage(`"uri"`)})
	create, err := d.Create(interactionsPath, maxBody)
	create.Inline = true
	return create, err
}

// input returns the inputs, then the prompt.
func input(ctx context.Context, d *upstream.Draft, req providers.VideoRequest) any {
	if len(req.Inputs) == 0 {
		return req.Prompt
	}
	var parts []part
	// The vendor uses the first of two images as the first frame.
	for _, role := range [...]providers.InputRole{
		providers.FirstFrame, providers.LastFrame, providers.Reference, providers.SourceVideo,
		providers.ExtendVideo,
	} {
		for _, input := range req.Of(role) {
			kind := "image"
			if role == providers.SourceVideo || role == providers.ExtendVideo {
				kind = "video"
			}
			parts = append(parts, part{Type: kind, MimeType: input.ContentType, Data: d.Base64(ctx, input)})
		}
	}
	if req.Prompt != "" {
		parts = append(parts, part{Type: "text", Text: req.Prompt})
	}
	return parts
}

// taskOf returns the vendor's word for the use of the inputs; "" for a prompt without inputs.
func taskOf(req providers.VideoRequest) string {
	for _, task := range [...]struct {
		role providers.InputRole
		word string
	}{
		{providers.FirstFrame, "image_to_video"},
		{providers.Reference, "reference_to_video"},
		{providers.SourceVideo, "edit"},
		{providers.ExtendVideo, "extend"},
	} {
		if len(req.Of(task.role)) > 0 {
			return task.word
		}
	}
	return ""
}

// RefuseVideo refuses combinations that the vendor does not accept, whatever the model.
func RefuseVideo(_ string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	edit, extend := shape.Count(providers.SourceVideo), shape.Count(providers.ExtendVideo)
	images := len(shape.Inputs) - edit - extend
	switch {
	case edit > 0 && extend > 0, edit+extend > 0 && images > 0:
		return providers.InvalidField("video", "The upstream accepts one 'video' and no other input.")
	case shape.Prompt == 0 && images == 0:
		return providers.InvalidField("prompt", "The upstream needs a 'prompt'.")
	}
	return nil
}
