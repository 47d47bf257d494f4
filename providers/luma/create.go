package luma

import (
	"context"
	"strconv"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxPrompt is in characters.
	maxPrompt = 6000
	// maxFile is that of a source video in bytes.
	maxFile = 200 << 20
	// longSeconds is a length that the vendor does not make from frames.
	longSeconds = 10
)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: []string{"5", "10"}, AspectRatios: []string{"16:9", "9:16", "4:3", "3:4", "1:1", "21:9"},
		Resolutions: []string{"540p", "720p", "1080p"}, MaxPrompt: maxPrompt, NeedsPrompt: true,
		Inputs: []providers.VideoInput{
			{Role: providers.FirstFrame}, {Role: providers.LastFrame}, {Role: providers.SourceVideo, MaxBytes: maxFile},
		},
	}
	if model != "ray-3.2" {
		return table.Open(), false
	}
	return table, true
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo)
	// Without these members the vendor makes an image.
	d.Members["model"], d.Members["type"], d.Members["prompt"] = to.Model, "video", req.Prompt
	d.Words(map[string]string{"aspect_ratio": d.Frame.AspectRatio})
	video := make(upstream.Members)
	video.Words(map[string]string{"resolution": d.Frame.Resolution})
	if d.Frame.Seconds > 0 {
		video["duration"] = strconv.Itoa(d.Frame.Seconds) + "s"
	}
	for _, input := range req.Inputs {
		reference := map[string]string{"url": input.URL}
		if input.URL == "" {
			reference = map[string]string{"data": d.Base64(ctx, input), "media_type": input.ContentType}
		}
		switch input.Role {
		case providers.FirstFrame:
			video["start_frame"] = reference
		case providers.LastFrame:
			video["end_frame"] = reference
		case providers.SourceVideo:
			d.Members["type"], d.Members["source"] = "video_edit", reference
		}
	}
	if video.Under(d.Object("video")); len(video) > 0 {
		d.Members["video"] = video
	}
	return d.Create("/generations", 0)
}

// RefuseVideo refuses combinations that the vendor does not accept, whatever the model.
func RefuseVideo(_ string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	switch {
	case frame.Seconds == longSeconds && (shape.Has(providers.FirstFrame) || shape.Has(providers.LastFrame)):
		return providers.InvalidField("seconds", "The upstream does not support 'seconds' of %d with frames.", longSeconds)
	case frame.Seconds > 0 && shape.Has(providers.SourceVideo):
		return providers.InvalidField("seconds", "The upstream keeps the source video's length: 'seconds' cannot be given.")
	}
	return nil
}
