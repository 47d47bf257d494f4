package xai

import (
	"context"
	"encoding/json"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxReferences and maxReferenceSeconds are those of a video from references.
	maxReferences       = 7
	maxReferenceSeconds = 10
	// maxFile is that of an input in bytes.
	maxFile = 48 << 20
)

// VideoModels is the table of the vendor's models; dated and preview names mean the same models.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: upstream.SecondsFrom(1, 15), AspectRatios: []string{"16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"},
		Resolutions: []string{"480p", "720p"},
		Audio:       providers.AudioOption, NeedsPrompt: true, Apart: true,
	}
	frames := providers.Frames(providers.VideoInput{MaxBytes: maxFile})
	last := frames[1]
	table.Inputs = []providers.VideoInput{frames[0], {Role: providers.Reference, Max: maxReferences, MaxBytes: maxFile}}
	source := []providers.VideoInput{
		{Role: providers.SourceVideo, Types: []string{"video/mp4"}, MaxBytes: maxFile},
		{Role: providers.ExtendVideo, Types: []string{"video/mp4"}, MaxBytes: maxFile},
	}
	switch model {
	case "grok-imagine-video":
		table.Inputs = append(table.Inputs, source...)
	case "grok-imagine-video-1.5", "grok-imagine-video-1.5-preview", "grok-imagine-video-1.5-2026-05-30":
		table.Resolutions, table.Inputs = append(table.Resolutions, "1080p"), append(table.Inputs, last)
	default:
		table.Inputs = append(append(table.Inputs, source...), last)
		return table.Open(), false
	}
	return table, true
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo)
	d.Members["model"], d.Members["prompt"] = to.Model, req.Prompt
	path := "/videos/generations"
	d.Words(map[string]string{"aspect_ratio": d.Frame.AspectRatio, "resolution": d.Frame.Resolution})
	d.Number("duration", d.Frame.Seconds)
	d.Sound("generate_audio", req, table)
	var references []map[string]string
	for _, input := range req.Inputs {
		at := map[string]string{"url": d.Text(ctx, input)}
		switch input.Role {
		case providers.FirstFrame:
			d.Members["image"] = at
		case providers.LastFrame:
			d.Members["last_frame"] = at
		case providers.Reference:
			references = append(references, at)
			d.Members["reference_images"] = references
		case providers.SourceVideo:
			path, d.Members["video"] = editPath, at
		case providers.ExtendVideo:
			path, d.Members["video"] = "/videos/extensions", at
		}
	}
	create, err := d.Create(path, 0)
	if path == editPath {
		create.Own = json.RawMessage(editData)
	}
	return create, err
}

// RefuseVideo refuses combinations that the vendor does not accept, whatever the model.
func RefuseVideo(_ string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	edit := shape.Has(providers.SourceVideo)
	work := edit || shape.Has(providers.ExtendVideo)
	const kept = "The upstream keeps the value of the source video: '%s' cannot be given."
	switch {
	case edit && frame.Seconds > 0:
		return providers.InvalidField("seconds", kept, "seconds")
	case work && frame.AspectRatio != "":
		return providers.InvalidField("aspect_ratio", kept, "aspect_ratio")
	case work && frame.Resolution != "":
		return providers.InvalidField("resolution", kept, "resolution")
	case shape.Has(providers.Reference) && frame.Resolution == "1080p":
		return providers.InvalidField("resolution", "From references 'resolution' is at most 720p.")
	case shape.Has(providers.Reference) && frame.Seconds > maxReferenceSeconds:
		return providers.InvalidField("seconds", "From references 'seconds' is at most %d.", maxReferenceSeconds)
	}
	return nil
}
