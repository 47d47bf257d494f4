package veo

import (
	"context"
	"encoding/json"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// frameRate is that of all videos.
	frameRate = 24
	// maxSamples is the most videos of one job, maxReferences its most references.
	maxSamples, maxReferences = 4, 3
	// maxImage bounds an image in bytes.
	maxImage = 20 << 20
	// maxSeed is the largest seed.
	maxSeed = 1<<32 - 1
	// long is the only length, in seconds, of a video from references, and of a large one at the Gemini API.
	long = 8
	// preview is the suffix of the Gemini API's names.
	preview = "-preview"
)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: []string{"4", "6", "8"}, AspectRatios: []string{"16:9", "9:16"}, Resolutions: []string{"720p", "1080p", "4k"},
		FPS: frameRate, Audio: providers.AudioOption, N: maxSamples, Negative: true, Seed: true, Apart: true, Inputs: inputs(),
	}
	switch name, isPreview := strings.CutSuffix(model, preview); strings.TrimSuffix(name, "-001") {
	case "veo-3.1-generate", "veo-3.1-fast-generate":
		if isPreview { // the Gemini API's
			table.Audio, table.Seed = providers.AudioAlways, false
		}
	case "veo-3.1-lite-generate": // it is not documented whether it accepts a last frame
		table.Resolutions, table.Inputs = table.Resolutions[:2], table.Inputs[:1]
		if isPreview {
			table.Audio, table.Seed = providers.AudioAlways, false
		}
	case "veo-2.0-generate":
		table.Seconds, table.Resolutions, table.Audio = upstream.SecondsFrom(5, long), []string{"720p"}, providers.AudioNever
		table.Inputs = []providers.VideoInput{table.Inputs[0], table.Inputs[1], table.Inputs[3]}
	default:
		return table.Open(), false
	}
	return table, true
}

// inputs returns inputs that are accepted only as bytes: the vendor fetches only objects of its own store.
func inputs() []providers.VideoInput {
	image := providers.VideoInput{Types: []string{"image/png", "image/jpeg"}, MaxBytes: maxImage, NoLinks: true}
	reference := image
	reference.Role, reference.Max = providers.Reference, maxReferences
	return append(providers.Frames(image), reference, providers.VideoInput{Role: providers.ExtendVideo, NoLinks: true})
}

// media is an input in the vendor's form. A video of the Gemini API has other member names.
type media struct {
	Bytes    string `json:"bytesBase64Encoded,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Encoded  string `json:"encodedVideo,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

type reference struct {
	Image media  `json:"image"`
	Type  string `json:"referenceType"`
}

// draft writes a create for Google Cloud, or for the Gemini API.
func draft(ctx context.Context, model string, cloud bool, req providers.VideoRequest) *upstream.Draft {
	table, _ := VideoModels(model)
	d := upstream.NewDraft(req, model, table, func(_ string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
		return refuse(cloud, shape, frame)
	})
	parameters, instance, own := parametersOf(d, table, cloud, req), instanceOf(ctx, d, cloud, req), d.Own
	theirs := d.Object("parameters")
	if own["instances"] != nil {
		d.Refuse(providers.InvalidField("instances", "The upstream's own 'instances' cannot be given."))
	}
	d.Members["instances"], d.Members["parameters"] = []any{instance}, parameters
	for name, into := range map[string]upstream.Members{"labels": d.Members, "mask": instance} {
		if own[name] != nil {
			into[name] = own[name]
		}
	}
	for _, ours := range []string{"labels", "mask", "parameters"} {
		delete(own, ours)
	}
	parameters.Under(theirs)
	parameters.Under(own)
	d.Own = make(map[string]json.RawMessage)
	return d
}

// instanceOf returns the prompt with the inputs.
func instanceOf(ctx context.Context, d *upstream.Draft, cloud bool, req providers.VideoRequest) upstream.Members {
	instance := make(upstream.Members)
	instance.Words(map[string]string{"prompt": req.Prompt})
	var references []reference
	for _, input := range req.Inputs {
		data := d.Base64(ctx, input)
		one := media{Bytes: data, MimeType: input.ContentType}
		switch input.Role {
		case providers.FirstFrame:
			instance["image"] = one
		case providers.LastFrame:
			instance["lastFrame"] = one
		case providers.Reference:
			references = append(references, reference{one, "asset"})
			instance["referenceImages"] = references
		case providers.ExtendVideo:
			if !cloud {
				one = media{Encoded: data, Encoding: input.ContentType}
			}
			instance["video"] = one
		}
	}
	return instance
}

func parametersOf(d *upstream.Draft, table providers.VideoModel, cloud bool, req providers.VideoRequest) upstream.Members {
	parameters := upstream.Members{"sampleCount": max(req.N, 1)}
	parameters.Number("durationSeconds", d.Frame.Seconds)
	parameters.Words(map[string]string{
		"aspectRatio": d.Frame.AspectRatio, "resolution": d.Frame.Resolution, "negativePrompt": req.NegativePrompt,
	})
	if cloud {
		parameters.Sound("generateAudio", req, table)
	}
	parameters.Seed(req)
	if req.Seed != nil && (*req.Seed < 0 || *req.Seed > maxSeed) {
		d.Refuse(providers.InvalidField("seed", "The upstream takes a seed from 0 to %d.", maxSeed))
	}
	return parameters
}

// RefuseVideo refuses combinations that the vendor does not accept. The names of previews are the Gemini API's.
func RefuseVideo(model string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	return refuse(!strings.HasSuffix(model, preview), shape, frame)
}

func refuse(cloud bool, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	extend, seconds := shape.Has(providers.ExtendVideo), frame.Seconds
	switch invalid := providers.InvalidField; {
	case extend && len(shape.Inputs) > 1:
		return invalid("video", "The upstream accepts one 'video' and no other input.")
	case extend && shape.Seconds != "":
		return invalid("seconds", "The upstream adds 7 seconds to a 'video': 'seconds' cannot be given.")
	case shape.Has(providers.Reference) && seconds != 0 && seconds != long:
		return invalid("seconds", "From references 'seconds' must be %d.", long)
	case shape.Prompt == 0 && !shape.Has(providers.FirstFrame) && !extend:
		return invalid("prompt", "The upstream needs a 'prompt'.")
	case !cloud && shape.Seed:
		return invalid("seed", "The Gemini API does not accept 'seed' for videos.")
	case !cloud && shape.GenerateAudio != nil && !*shape.GenerateAudio:
		return invalid("generate_audio", "The Gemini API makes only videos with sound: 'generate_audio' cannot be false.")
	case !cloud && seconds != 0 && seconds != long && (frame.Resolution == "1080p" || frame.Resolution == "4k"):
		return invalid("seconds", "In this resolution the Gemini API makes only 'seconds' of %d.", long)
	}
	return nil
}
