package hailuo

import (
	"context"
	"encoding/json"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The values for members that the second API requires, if the caller leaves them open.
const (
	usualSeconds    = 5
	usualRatio      = "16:9"
	usualResolution = "768P"
)

// callback is a parameter of both APIs: a create fails if the address does not answer a challenge.
const callback = "callback_url"

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	if second(to.Model) {
		return secondCreate(ctx, to.Model, req)
	}
	table, _ := firstModel(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo, callback)
	frame, _ := firstFrame(table, req.Shape()) // was checked
	d.Words(map[string]string{"model": to.Model, "prompt": req.Prompt})
	if !fixed(to.Model) {
		d.Number("duration", frame.Seconds)
		d.Words(map[string]string{"resolution": strings.ToUpper(frame.Resolution)})
	}
	for _, input := range req.Inputs {
		text := d.Text(ctx, input)
		switch input.Role {
		case providers.FirstFrame:
			d.Members["first_frame_image"] = text
		case providers.LastFrame:
			d.Members["last_frame_image"] = text
		case providers.Reference:
			d.Members["subject_reference"] = []map[string]any{{"type": "character", "image": []string{text}}}
		}
	}
	create, err := d.Create("/v1/video_generation", 0)
	create.Own = map[string]bool{}
	return create, err
}

// RefuseVideo refuses combinations that the vendor does not accept.
func RefuseVideo(model string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	table, _ := VideoModels(model)
	if second(model) {
		return refuseSecond(shape)
	}
	_, fault := firstFrame(table, shape)
	return fault
}

func firstFrame(table providers.VideoModel, shape providers.VideoShape) (providers.Frame, *providers.Fault) {
	const longSeconds = 10
	if len(shape.Inputs) == 0 {
		table.AspectRatios = []string{"16:9"} // of pixels: the video is wide
	}
	frame, fault := table.Accept(shape)
	low := frame.Resolution == "512p"
	switch {
	case fault != nil:
	case len(shape.Inputs) == 0 && shape.Prompt == 0:
		fault = providers.InvalidField("prompt", "The upstream needs a 'prompt' where there is no image.")
	case frame.Resolution == "1080p" && frame.Seconds == longSeconds:
		fault = providers.InvalidField("seconds", "The upstream does not support 'seconds' of %d in 1080p.", longSeconds)
	case low && !shape.Has(providers.FirstFrame):
		fault = providers.InvalidField("resolution", "The upstream supports a 'resolution' of 512p only with an image.")
	case low && shape.Has(providers.LastFrame):
		fault = providers.InvalidField("resolution", "The upstream does not support a 'resolution' of 512p with a 'last_image'.")
	}
	return frame, fault
}

func refuseSecond(shape providers.VideoShape) *providers.Fault {
	framed := shape.Has(providers.FirstFrame)
	switch {
	case framed && shape.AspectRatio != "":
		return providers.InvalidField("aspect_ratio", "The upstream keeps the ratio of the image: 'aspect_ratio' cannot be given.")
	case framed && shape.Has(providers.SourceVideo):
		return providers.InvalidField("video", "The upstream takes 'image' or 'video', not both.")
	case !framed && len(shape.Inputs) > maxSecondFiles:
		return providers.InvalidField("reference_images", "The upstream accepts %d references of all kinds together.", maxSecondFiles)
	}
	return nil
}

type item map[string]any

// secondCreate writes a create of the second API.
func secondCreate(ctx context.Context, model string, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := secondModel(model)
	d := upstream.NewDraft(req, model, table, RefuseVideo, callback)
	content, framed := contentOf(ctx, d, req)
	d.Members["model"], d.Members["content"] = model, content
	ratio := d.Frame.AspectRatio
	switch {
	case framed:
		ratio = ""
	case ratio == "adaptive" && len(content) == 1:
		d.Refuse(providers.InvalidField("aspect_ratio", "The upstream adapts the 'aspect_ratio' only to an image."))
	case ratio == "" && len(content) == 1 && d.Own["ratio"] == nil:
		ratio = usualRatio
	}
	d.Words(map[string]string{"ratio": ratio, "resolution": strings.ToUpper(d.Frame.Resolution)})
	d.Number("duration", d.Frame.Seconds)
	for name, usual := range map[string]any{"duration": usualSeconds, "resolution": usualResolution} {
		if d.Members[name] == nil && d.Own[name] == nil {
			d.Members[name] = usual
		}
	}
	create, err := d.Create("/v2/video_generation", maxSecondBody)
	create.Own = map[string]bool{secondField: true}
	return create, err
}

// contentOf returns the prompt, the inputs, and the caller's own "content". framed: there is a first frame.
func contentOf(ctx context.Context, d *upstream.Draft, req providers.VideoRequest) (content []any, framed bool) {
	content = append(content, item{"type": "text", "text": req.Prompt})
	for _, input := range req.Inputs {
		kind, role := "image_url", "reference_image"
		switch input.Role {
		case providers.FirstFrame:
			role, framed = "first_frame", true
		case providers.LastFrame:
			role = "last_frame"
		case providers.SourceAudio:
			kind, role = "audio_url", "reference_audio"
		case providers.SourceVideo:
			kind, role = "video_url", "reference_video"
		}
		content = append(content, item{"type": kind, kind: item{"url": d.Text(ctx, input)}, "role": role})
	}
	var more []json.RawMessage
	if own := d.Own["content"]; own != nil && json.Unmarshal(own, &more) != nil {
		d.Refuse(providers.InvalidField("content", "The upstream's own 'content' is an array."))
	}
	for _, part := range more {
		content = append(content, part)
	}
	return content, framed
}
