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

func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (path string, body []byte, err error) {
	table, _ := VideoModels(to.Model)
	frame, err := upstream.Accept(req, to.Model, table, RefuseVideo)
	if err != nil {
		return "", nil, err
	}
	// Without these members the vendor makes an image.
	members := upstream.Members{"model": to.Model, "type": "video", "prompt": req.Prompt}
	members.Words(map[string]string{"aspect_ratio": frame.AspectRatio})
	video := make(upstream.Members)
	video.Words(map[string]string{"resolution": frame.Resolution})
	if frame.Seconds > 0 {
		video["duration"] = strconv.Itoa(frame.Seconds) + "s"
	}
	for _, input := range req.Inputs {
		reference, err := imageRef(ctx, input)
		if err != nil {
			return "", nil, err
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
	fields, err := req.Parameters()
	if err != nil {
		return "", nil, err
	}
	own, err := upstream.Object(fields, "video")
	if err != nil {
		return "", nil, err
	}
	if video.Under(own); len(video) > 0 {
		members["video"] = video
	}
	body, err = upstream.Encode(req, members)
	return "/generations", body, err
}

// RefuseVideo refuses combinations that the vendor does not accept, whatever the model.
func RefuseVideo(_ string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	switch {
	case frame.Seconds == longSeconds && (shape.Has(providers.FirstFrame) || shape.Has(providers.LastFrame)):
		return providers.InvalidField("seconds", "The upstream makes no 'seconds' of %d from frames.", longSeconds)
	case frame.Seconds > 0 && shape.Has(providers.SourceVideo):
		return providers.InvalidField("seconds", "The upstream keeps the source video's length: 'seconds' cannot be given.")
	}
	return nil
}

// imageRef returns an input in the vendor's form.
func imageRef(ctx context.Context, input providers.Media) (map[string]string, error) {
	if input.URL != "" {
		return map[string]string{"url": input.URL}, nil
	}
	data, err := upstream.InputBase64(ctx, input)
	return map[string]string{"data": data, "media_type": input.ContentType}, err
}
