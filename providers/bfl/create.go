package bfl

import (
	"context"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	shortest, longest = 5, 20
	usualSeconds      = "5"
)

// resolutions maps our resolutions to the vendor's.
func resolutions() map[string]string { return map[string]string{"720p": "hd", "1080p": "fhd"} }

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	if model != "flux-3-video" {
		return providers.VideoModel{}, false
	}
	first := providers.FirstFrame
	return providers.VideoModel{
		Seconds: upstream.SecondsFrom(shortest, longest), UsualSeconds: usualSeconds, UsualResolution: "720p",
		AspectRatios: []string{"21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"}, Resolutions: []string{"720p", "1080p"},
		Audio: providers.AudioOption, NeedsPrompt: true,
		Inputs: []providers.VideoInput{
			{Role: first},
			{Role: providers.LastFrame, With: &first},
			{Role: providers.ExtendVideo, Types: []string{"video/mp4"}},
		},
	}, true
}

// modelOf returns what a model accepts. A model that is not in the table accepts every field of the vendor.
func modelOf(model string) providers.VideoModel {
	if known, ok := VideoModels(model); ok {
		return known
	}
	known, _ := VideoModels("flux-3-video")
	known.Seconds = providers.AnyWord()
	return known
}

// RefuseVideo refuses combinations that the vendor does not accept: a video is continued, or made from frames.
func RefuseVideo(_ string, shape providers.VideoShape) *providers.Fault {
	if shape.Has(providers.ExtendVideo) && shape.Has(providers.FirstFrame) {
		return providers.InvalidField("image", "The upstream takes 'image' or a video to go on from, not both.")
	}
	return nil
}

// createBody writes a create. It fails only before anything was sent.
func createBody(ctx context.Context, model string, req providers.VideoRequest) ([]byte, error) {
	table := modelOf(model)
	frame, seconds, err := upstream.Accept(req, table, RefuseVideo(model, req.Shape()), "webhook_url", "webhook_secret")
	if err != nil {
		return nil, err
	}
	members := upstream.Members{"mode": "t2v", "prompt": req.Prompt}
	members.Words(map[string]string{"aspect_ratio": frame.AspectRatio, "resolution": resolutions()[frame.Resolution]})
	members.Number("duration", seconds)
	members.Sound("generate_audio", req, table)
	var keyframes []string
	for _, input := range append(req.Of(providers.FirstFrame), req.Of(providers.LastFrame)...) {
		text, err := inputText(ctx, input)
		if err != nil {
			return nil, err
		}
		keyframes = append(keyframes, text)
	}
	switch len(keyframes) {
	case 0:
	case 1:
		members["mode"], members["keyframes"] = "i2v", keyframes[0]
	default:
		members["mode"], members["keyframes"] = "i2v", keyframes
	}
	for _, input := range req.Of(providers.ExtendVideo) {
		if members["start_video"], err = inputText(ctx, input); err != nil {
			return nil, err
		}
		members["mode"] = "v2v"
	}
	return upstream.Encode(req, members)
}

// inputText is an input's address, or its bytes in Base64.
func inputText(ctx context.Context, input providers.Media) (string, error) {
	if input.URL != "" {
		return input.URL, nil
	}
	return upstream.InputBase64(ctx, input)
}
