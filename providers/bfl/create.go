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
	table := providers.VideoModel{
		Seconds: upstream.SecondsFrom(shortest, longest), UsualSeconds: usualSeconds, UsualResolution: "720p",
		AspectRatios: []string{"21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"}, Resolutions: []string{"720p", "1080p"},
		Audio: providers.AudioOption, NeedsPrompt: true,
		Inputs: append(providers.Frames(providers.VideoInput{}),
			providers.VideoInput{Role: providers.ExtendVideo, Types: []string{"video/mp4"}}),
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
		return providers.InvalidField("image", "The upstream accepts 'image' or a video to continue, not both.")
	}
	return nil
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo, "webhook_url", "webhook_secret")
	path, err := upstream.ModelPath(to.Model)
	d.Refuse(err)
	d.Members["mode"], d.Members["prompt"] = "t2v", req.Prompt
	d.Words(map[string]string{"aspect_ratio": d.Frame.AspectRatio, "resolution": resolutions()[d.Frame.Resolution]})
	d.Number("duration", d.Frame.Seconds)
	d.Sound("generate_audio", req, table)
	var keyframes []string
	for _, input := range append(req.Of(providers.FirstFrame), req.Of(providers.LastFrame)...) {
		keyframes = append(keyframes, d.Base64(ctx, input))
	}
	switch len(keyframes) {
	case 0:
	case 1:
		d.Members["mode"], d.Members["keyframes"] = "i2v", keyframes[0]
	default:
		d.Members["mode"], d.Members["keyframes"] = "i2v", keyframes
	}
	for _, input := range req.Of(providers.ExtendVideo) {
		d.Members["mode"], d.Members["start_video"] = "v2v", d.Base64(ctx, input)
	}
	return d.Create("/v1/"+path, 0)
}
