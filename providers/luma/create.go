package luma

import (
	"context"
	"encoding/json"
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
	return providers.VideoModel{
		Seconds: []string{"5", "10"}, AspectRatios: []string{"16:9", "9:16", "4:3", "3:4", "1:1", "21:9"},
		Resolutions: []string{"540p", "720p", "1080p"},
		MaxPrompt:   maxPrompt, NeedsPrompt: true, Inputs: inputs(),
	}, model == "ray-3.2"
}

func inputs() []providers.VideoInput {
	return []providers.VideoInput{{Role: providers.FirstFrame}, {Role: providers.LastFrame}, {Role: providers.SourceVideo, MaxBytes: maxFile}}
}

// modelOf returns what a model accepts. A model that is not in the table accepts every field of the vendor.
func modelOf(model string) providers.VideoModel {
	if known, ok := VideoModels(model); ok {
		return known
	}
	return providers.VideoModel{
		Seconds: providers.AnyWord(), AspectRatios: providers.AnyWord(), Resolutions: providers.AnyWord(),
		NeedsPrompt: true, Inputs: inputs(),
	}
}

// createBody writes a create. It fails only before anything was sent.
func createBody(ctx context.Context, model string, req providers.VideoRequest) ([]byte, error) {
	frame, seconds, err := upstream.Accept(req, modelOf(model), RefuseVideo(model, req.Shape()))
	if err != nil {
		return nil, err
	}
	// The vendor makes an image where neither is said.
	members := upstream.Members{"model": model, "type": "video", "prompt": req.Prompt}
	members.Words(map[string]string{"aspect_ratio": frame.AspectRatio})
	video := make(upstream.Members)
	video.Words(map[string]string{"resolution": frame.Resolution})
	if seconds > 0 {
		video["duration"] = strconv.Itoa(seconds) + "s"
	}
	for _, input := range req.Inputs {
		reference, err := imageRef(ctx, input)
		if err != nil {
			return nil, err
		}
		switch input.Role {
		case providers.FirstFrame:
			video["start_frame"] = reference
		case providers.LastFrame:
			video["end_frame"] = reference
		case providers.SourceVideo:
			members["type"], members["source"] = "video_edit", reference
		}
	}
	if err := mergeVideo(members, video, req); err != nil {
		return nil, err
	}
	return upstream.Encode(req, members)
}

// mergeVideo puts the settings of the video into a create, over those that the caller gave in the vendor's own "video".
func mergeVideo(members, video map[string]any, req providers.VideoRequest) error {
	fields, err := req.Parameters()
	if err != nil {
		return err
	}
	var own map[string]json.RawMessage
	if raw := fields["video"]; raw != nil && json.Unmarshal(raw, &own) != nil {
		return providers.InvalidField("video", "The upstream's own 'video' is an object.")
	}
	for name, value := range own {
		if _, ours := video[name]; !ours {
			video[name] = value
		}
	}
	if len(video) > 0 {
		members["video"] = video
	}
	return nil
}

// RefuseVideo refuses combinations that the vendor does not accept, whatever the model.
func RefuseVideo(_ string, shape providers.VideoShape) *providers.Fault {
	seconds, err := upstream.WholeSeconds(shape.Seconds)
	switch {
	case err != nil:
		return providers.AsFault(err)
	case seconds == longSeconds && (shape.Has(providers.FirstFrame) || shape.Has(providers.LastFrame)):
		return providers.InvalidField("seconds", "The upstream makes no 'seconds' of %d from frames.", longSeconds)
	case seconds > 0 && shape.Has(providers.SourceVideo):
		return providers.InvalidField("seconds", "The upstream keeps the source video's length: 'seconds' cannot be given.")
	}
	return nil
}

// imageRef is an input as the vendor takes it.
func imageRef(ctx context.Context, input providers.Media) (map[string]string, error) {
	if input.URL != "" {
		return map[string]string{"url": input.URL}, nil
	}
	data, err := upstream.InputBase64(ctx, input)
	if err != nil {
		return nil, err
	}
	return map[string]string{"data": data, "media_type": input.ContentType}, nil
}
