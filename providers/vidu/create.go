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
		return providers.InvalidField("video", "The upstream accepts 'video' only without other inputs.")
	}
	return in(model, at).Check(shape)
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	at := modeOf(req.Shape())
	table := in(to.Model, at)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo, "payload", "callback_url")
	d.Words(map[string]string{
		"model": to.Model, "prompt": req.Prompt, "aspect_ratio": d.Frame.AspectRatio, "resolution": d.Frame.Resolution,
		"payload": req.IdempotencyKey,
	})
	d.Number("duration", d.Frame.Seconds)
	d.Seed(req)
	d.Sound("audio", req, table)
	var inputs []string
	for _, role := range [...]providers.InputRole{providers.FirstFrame, providers.LastFrame, providers.Reference, providers.ExtendVideo} {
		for _, input := range req.Of(role) {
			inputs = append(inputs, d.Text(ctx, input))
		}
	}
	switch {
	case at == fromVideo:
		d.Members["video_url"] = inputs[0]
	case inputs != nil:
		d.Members["images"] = inputs
	}
	return d.Create(string(at), maxBody)
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
