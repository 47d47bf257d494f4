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

func firstBody(ctx context.Context, model string, req providers.VideoRequest) ([]byte, error) {
	table, _ := firstModel(model)
	var frame providers.Frame
	if _, err := upstream.Accept(req, model, table, func(_ string, shape providers.VideoShape, _ providers.Frame) (fault *providers.Fault) {
		frame, fault = firstFrame(table, shape)
		return fault
	}, callback); err != nil {
		return nil, err
	}
	members := upstream.Members{"model": model}
	members.Words(map[string]string{"prompt": req.Prompt})
	if !fixed(model) {
		members.Number("duration", frame.Seconds)
		members.Words(map[string]string{"resolution": strings.ToUpper(frame.Resolution)})
	}
	for _, input := range req.Inputs {
		text, err := upstream.InputText(ctx, input)
		if err != nil {
			return nil, err
		}
		switch input.Role {
		case providers.FirstFrame:
			members["first_frame_image"] = text
		case providers.LastFrame:
			members["last_frame_image"] = text
		case providers.Reference:
			members["subject_reference"] = []map[string]any{{"type": "character", "image": []string{text}}}
		}
	}
	return upstream.Encode(req, members)
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
		fault = providers.InvalidField("seconds", "The upstream makes no 'seconds' of %d in 1080p.", longSeconds)
	case low && !shape.Has(providers.FirstFrame):
		fault = providers.InvalidField("resolution", "The upstream makes a 'resolution' of 512p only from an image.")
	case low && shape.Has(providers.LastFrame):
		fault = providers.InvalidField("resolution", "The upstream makes no 'resolution' of 512p with a 'last_image'.")
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
		return providers.InvalidField("reference_images", "The upstream takes %d references of all kinds together.", maxSecondFiles)
	}
	return nil
}

type item map[string]any

func secondBody(ctx context.Context, model string, req providers.VideoRequest) ([]byte, error) {
	table, _ := secondModel(model)
	frame, err := upstream.Accept(req, model, table, RefuseVideo, callback)
	if err != nil {
		return nil, err
	}
	members := upstream.Members{"model": model}
	fields, err := req.Parameters()
	if err != nil {
		return nil, err
	}
	content, framed, err := contentOf(ctx, req, fields["content"])
	if err != nil {
		return nil, err
	}
	members["content"] = content
	ratio := frame.AspectRatio
	switch {
	case framed:
		ratio = ""
	case ratio == "adaptive" && len(content) == 1:
		return nil, providers.InvalidField("aspect_ratio", "The upstream adapts the 'aspect_ratio' only to an image.")
	case ratio == "" && len(content) == 1 && fields["ratio"] == nil:
		ratio = usualRatio
	}
	members.Words(map[string]string{"ratio": ratio, "resolution": strings.ToUpper(frame.Resolution)})
	members.Number("duration", frame.Seconds)
	for name, usual := range map[string]any{"duration": usualSeconds, "resolution": usualResolution} {
		if members[name] == nil && fields[name] == nil {
			members[name] = usual
		}
	}
	body, err := upstream.Encode(req, members)
	if err != nil {
		return nil, err
	}
	return body, upstream.Fits(body, maxSecondBody)
}

// contentOf returns the prompt, the inputs, and the caller's own "content". framed: there is a first frame.
func contentOf(ctx context.Context, req providers.VideoRequest, own json.RawMessage) (content []any, framed bool, err error) {
	content = append(content, item{"type": "text", "text": req.Prompt})
	for _, input := range req.Inputs {
		text, err := upstream.InputText(ctx, input)
		if err != nil {
			return nil, false, err
		}
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
		content = append(content, item{"type": kind, kind: item{"url": text}, "role": role})
	}
	if own == nil {
		return content, framed, nil
	}
	var more []json.RawMessage
	if json.Unmarshal(own, &more) != nil {
		return nil, false, providers.InvalidField("content", "The upstream's own 'content' is an array.")
	}
	for _, part := range more {
		content = append(content, part)
	}
	return content, framed, nil
}
