package vidu

import (
	"context"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func modeOf(shape providers.VideoShape) mode {
	return upstream.Modes[mode]{Text: fromText, Image: fromImage, Frames: fromFrames, References: fromReferences, Video: fromVideo}.Of(shape)
}

// RefuseVideo refuses a video that a model does not make in the mode of a create.
func RefuseVideo(model string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	at := modeOf(shape)
	if at == fromVideo && len(shape.Inputs) > 1 {
		return providers.InvalidField("video", "The upstream takes 'video' alone.")
	}
	return in(model, at).Check(shape)
}

func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (path string, body []byte, err error) {
	at := modeOf(req.Shape())
	table := in(to.Model, at)
	frame, err := upstream.Accept(req, to.Model, table, RefuseVideo, "payload", "callback_url")
	if err != nil {
		return "", nil, err
	}
	members := upstream.Members{"model": to.Model}
	members.Words(map[string]string{
		"prompt": req.Prompt, "aspect_ratio": frame.AspectRatio, "resolution": frame.Resolution, "payload": req.IdempotencyKey,
	})
	members.Number("duration", frame.Seconds)
	members.Seed(req)
	members.Sound("audio", req, table)
	if err := inputs(ctx, at, req, members); err != nil {
		return "", nil, err
	}
	body, err = upstream.Encode(req, members)
	if err != nil {
		return "", nil, err
	}
	return string(at), body, upstream.Fits(body, maxBody)
}

// in returns what a model accepts in one of its modes. With images a video has their ratio, and there is no field for it.
func in(model string, at mode) providers.VideoModel {
	table, _ := VideoModels(model)
	if only, ok := modesOf(model)[at]; ok {
		table.Seconds, table.Resolutions, table.AspectRatios = only.seconds, only.resolutions, only.ratios
	} else if at != fromText && at != fromReferences {
		table.AspectRatios = nil
	}
	table.NeedsPrompt = at == fromText || at == fromReferences
	if at == fromReferences {
		table.MaxPrompt = maxReferencePrompt
	}
	return table
}

// inputs writes the inputs. The first frame precedes the last one.
func inputs(ctx context.Context, at mode, req providers.VideoRequest, members map[string]any) error {
	var images []string
	for _, role := range [...]providers.InputRole{providers.FirstFrame, providers.LastFrame, providers.Reference, providers.ExtendVideo} {
		for _, input := range req.Of(role) {
			text, err := upstream.InputText(ctx, input)
			if err != nil {
				return err
			}
			if at == fromVideo {
				members["video_url"] = text
				return nil
			}
			images = append(images, text)
		}
	}
	if images != nil {
		members["images"] = images
	}
	return nil
}
