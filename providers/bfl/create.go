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

// resolutions maps the standard resolutions to the vendor's.
func resolutions() map[string]string { return map[string]string{"720p": "hd", "1080p": "fhd"} }

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	first := providers.FirstFrame
	table := providers.VideoModel{
		Seconds: upstream.SecondsFrom(shortest, longest), UsualSeconds: usualSeconds, UsualResolution: "720p",
		AspectRatios: []string{"21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"}, Resolutions: []string{"720p", "1080p"},
		Audio: providers.AudioOption, NeedsPrompt: true,
		Inputs: []providers.VideoInput{
			{Role: first},
			{Role: providers.LastFrame, With: &first},
			{Role: providers.ExtendVideo, Types: []string{"video/mp4"}},
		},
	}
	if model != "flux-3-video" {
		table.Seconds = providers.AnyWord()
		return table, false
	}
	return table, true
}

// RefuseVideo refuses combinations that the vendor does not accept: a video is continued, or made from frames.
func RefuseVideo(_ string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	if shape.Has(providers.ExtendVideo) && shape.Has(providers.FirstFrame) {
		return providers.InvalidField("image", "The upstream takes 'image' or a video to go on from, not both.")
	}
	return nil
}

func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (path string, body []byte, err error) {
	table, _ := VideoModels(to.Model)
	frame, err := upstream.Accept(req, to.Model, table, RefuseVideo, "webhook_url", "webhook_secret")
	if err != nil {
		return "", nil, err
	}
	if path, err = upstream.ModelPath(to.Model); err != nil {
		return "", nil, err
	}
	members := upstream.Members{"mode": "t2v", "prompt": req.Prompt}
	members.Words(map[string]string{"aspect_ratio": frame.AspectRatio, "resolution": resolutions()[frame.Resolution]})
	members.Number("duration", frame.Seconds)
	members.Sound("generate_audio", req, table)
	var keyframes []string
	for _, input := range append(req.Of(providers.FirstFrame), req.Of(providers.LastFrame)...) {
		text, err := upstream.InputBase64(ctx, input)
		if err != nil {
			return "", nil, err
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
		if members["start_video"], err = upstream.InputBase64(ctx, input); err != nil {
			return "", nil, err
		}
		members["mode"] = "v2v"
	}
	body, err = upstream.Encode(req, members)
	return "/v1/" + path, body, err
}
