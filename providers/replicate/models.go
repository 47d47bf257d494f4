package replicate

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Sources of the table: the input schemas at replicate.com/OWNER/NAME/api. Values without a list there are not checked.

// VideoModels is the table of the most used models, by their names without a version. Others accept every word.
func VideoModels(model string) (providers.VideoModel, bool) { return hostedOf(model).Model, true }

// hostedOf returns a model. One that is not in the table has the usual names, except for a last frame and references, which have many.
func hostedOf(model string) upstream.Hosted {
	if known, ok := lookUp(model); ok {
		return known
	}
	return upstream.Hosted{
		Model: providers.VideoModel{
			Seconds: providers.AnyWord(), AspectRatios: providers.AnyWord(), Resolutions: providers.AnyWord(), FPS: providers.AnyFPS,
			Audio: providers.AudioOption, Negative: true, Seed: true, Inputs: []providers.VideoInput{{Role: providers.FirstFrame}},
		},
		Inputs: map[providers.InputRole]string{providers.FirstFrame: "image"},
	}
}

// names are the names of a model's inputs.
type names map[providers.InputRole]string

func lookUp(model string) (upstream.Hosted, bool) {
	const seedanceReferences, veoReferences, klingReferences = 9, 3, 7
	name, _, _ := strings.Cut(model, ":")
	word := providers.AnyWord()
	table := providers.VideoModel{AspectRatios: word, Resolutions: word, Audio: providers.AudioOption, Seed: true, NeedsPrompt: true}
	var inputs names
	references := 0
	switch name {
	case "bytedance/seedance-2.0":
		table.Seconds, table.Apart, references = upstream.SecondsFrom(1, 15), true, seedanceReferences
		inputs = names{providers.FirstFrame: "image", providers.LastFrame: "last_frame_image", providers.Reference: "reference_images"}
	case "bytedance/seedance-1.5-pro":
		table.Seconds, table.Resolutions, table.FPS = upstream.SecondsFrom(2, 12), nil, 24
		inputs = names{providers.FirstFrame: "image", providers.LastFrame: "last_frame_image"}
	case "google/veo-3.1", "google/veo-3.1-fast":
		table.Seconds, table.AspectRatios, table.Resolutions = []string{"4", "6", "8"}, []string{"16:9", "9:16"}, []string{"720p", "1080p"}
		table.Negative, table.Apart, references = true, true, veoReferences
		inputs = names{providers.FirstFrame: "image", providers.LastFrame: "last_frame", providers.Reference: "reference_images"}
	case "kwaivgi/kling-v2.6":
		table.Seconds, table.AspectRatios, table.Resolutions = []string{"5", "10"}, []string{"16:9", "9:16", "1:1"}, nil
		table.Negative, table.Seed = true, false
		inputs = names{providers.FirstFrame: "start_image"}
	case "kwaivgi/kling-v3-omni-video":
		table.Seconds, table.AspectRatios, table.Resolutions = upstream.SecondsFrom(3, 15), []string{"16:9", "9:16", "1:1"}, nil
		table.Seed, references = false, klingReferences
		inputs = names{providers.FirstFrame: "start_image", providers.LastFrame: "end_image", providers.Reference: "reference_images"}
	case "wan-video/wan-2.7-i2v":
		table.Seconds, table.AspectRatios = upstream.SecondsFrom(2, 15), nil
		table.Audio, table.Negative = providers.AudioAlways, true
		inputs = names{
			providers.FirstFrame: "first_frame", providers.LastFrame: "last_frame", providers.ExtendVideo: "first_clip",
			providers.SourceAudio: "audio",
		}
	case "wan-video/wan-2.5-i2v":
		table.Seconds, table.AspectRatios, table.Audio, table.Negative = []string{"5", "10"}, nil, providers.AudioNever, true
		inputs = names{providers.FirstFrame: "image", providers.SourceAudio: "audio"}
	case "vidu/q3-pro":
		table.Seconds = upstream.SecondsFrom(1, 16)
		inputs = names{providers.FirstFrame: "start_image", providers.LastFrame: "end_image"}
	case "runwayml/gen4-turbo":
		table.Seconds, table.Resolutions, table.Audio = []string{"5", "10"}, nil, providers.AudioNever
		inputs = names{providers.FirstFrame: "image"}
	case "minimax/video-01":
		table = providers.VideoModel{NeedsPrompt: true}
		inputs = names{providers.FirstFrame: "first_frame_image"}
	default:
		return upstream.Hosted{}, false
	}
	hosted := upstream.Taking(table, references, inputs)
	if name == "wan-video/wan-2.5-i2v" || name == "runwayml/gen4-turbo" {
		hosted.Model.Inputs[0].Needed = true // the first frame
	}
	if name == "vidu/q3-pro" {
		hosted.Sound = "audio"
	}
	return hosted, true
}
