package zhipu

import (
	"context"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxPrompt is in characters, maxImage in bytes.
	maxPrompt = 512
	maxImage  = 5 << 20
	// maxReferences is the maximum of vidu2-reference.
	maxReferences = 3
	// The frame rates.
	usualRate, doubleRate = 30, 60
)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	kinds := []string{"image/png", "image/jpeg"}
	frames := providers.Frames(providers.VideoInput{Types: kinds, MaxBytes: maxImage})
	table := providers.VideoModel{
		Seconds: []string{"5", "10"},
		Sizes:   []string{"1280x720", "720x1280", "1024x1024", "1920x1080", "1080x1920", "2048x1080", "3840x2160"},
		FPS:     providers.AnyFPS, Audio: providers.AudioOption, MaxPrompt: maxPrompt, Inputs: frames[:1],
	}
	vidu := providers.VideoModel{
		Seconds: []string{"4", "5"}, Sizes: providers.AnyWord(), AspectRatios: []string{"16:9", "9:16", "1:1"}, Audio: providers.AudioOption,
		MaxPrompt: maxPrompt,
	}
	switch model {
	case "cogvideox-3":
		table.Inputs = frames
	case "cogvideox-2":
	case "cogvideox-flash":
		table.Seconds = nil
	case "viduq1-text":
		table, table.NeedsPrompt = vidu, true
	case "viduq1-image", "vidu2-image":
		table, table.NeedsInput, table.Inputs = vidu, true, frames[:1]
	case "viduq1-start-end", "vidu2-start-end":
		table, table.NeedsInput, table.Inputs = vidu, true, frames
	case "vidu2-reference":
		table, table.NeedsInput = vidu, true
		table.Inputs = []providers.VideoInput{{Role: providers.Reference, Types: kinds, Max: maxReferences, MaxBytes: maxImage}}
	default:
		table.Inputs, table.AspectRatios = frames, vidu.AspectRatios
		return table.Open(), false
	}
	return table, true
}

// RefuseVideo refuses combinations that the vendor does not accept.
func RefuseVideo(model string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	switch {
	case shape.Prompt == 0 && len(shape.Inputs) == 0:
		return providers.InvalidField("prompt", "The upstream needs a 'prompt' or an image.")
	case strings.HasSuffix(model, "-start-end") && !shape.Has(providers.LastFrame):
		return providers.InvalidField("last_image", "This model needs an 'image' and a 'last_image'.")
	case shape.FPS != 0 && shape.FPS != usualRate && shape.FPS != doubleRate:
		return providers.InvalidField("fps", "The upstream takes 'fps' of %d or %d.", usualRate, doubleRate)
	}
	return nil
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo)
	d.Words(map[string]string{
		"model": to.Model, "prompt": req.Prompt, "size": d.Frame.Size, "aspect_ratio": d.Frame.AspectRatio, "request_id": req.IdempotencyKey,
	})
	d.Number("duration", d.Frame.Seconds)
	d.Number("fps", req.FPS)
	d.Sound("with_audio", req, table)
	var images []string // first and last frame, and references, in that order
	for _, role := range [...]providers.InputRole{providers.FirstFrame, providers.LastFrame, providers.Reference} {
		for _, input := range req.Of(role) {
			images = append(images, d.Text(ctx, input))
		}
	}
	switch {
	case len(images) == 1 && len(req.Of(providers.Reference)) == 0:
		d.Members["image_url"] = images[0]
	case len(images) > 0:
		d.Members["image_url"] = images
	}
	return d.Create("/videos/generations", 0)
}
