package ark

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxImage and maxAudio bound an upload in bytes.
	maxImage = 30 << 20
	maxAudio = 15 << 20
	// frameRate is that of all videos.
	frameRate = 24
	// adaptive is the ratio that the inputs have.
	adaptive = "adaptive"
)

// The families of models. The models of a family accept the same.
const (
	seedance25  = "seedance-2-5-260628"
	seedance25f = "seedance-2-5-flash-261115"
	seedance20  = "seedance-2-0-260128"
	seedance20f = "seedance-2-0-fast-260128"
	seedance20m = "seedance-2-0-mini-260615"
	seedance15  = "seedance-1-5-pro-251215"
	seedance10  = "seedance-1-0-pro-250528"
	seedance10f = "seedance-1-0-pro-fast-251015"
)

// family returns a model's name without the prefixes of the two sites.
func family(model string) string {
	return strings.TrimPrefix(strings.TrimPrefix(model, "doubao-"), "dreamina-")
}

func is25(name string) bool { return name == seedance25 || name == seedance25f }

// VideoModels is the table of the vendor's models. An endpoint ("ep-…") is not in it.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		AspectRatios: []string{"16:9", "4:3", "1:1", "3:4", "9:16", "21:9", adaptive}, Resolutions: []string{"480p", "720p", "1080p"},
		FPS: frameRate, Audio: providers.AudioOption, Apart: true,
	}
	switch name := family(model); name {
	case seedance25:
		table.Seconds, table.Inputs = upstream.SecondsFrom(4, 30), inputs(30, 10)
		table.Resolutions = append(table.Resolutions, "4k")
	case seedance25f:
		table.Seconds, table.Inputs = upstream.SecondsFrom(4, 30), inputs(30, 10)
		table.Resolutions = table.Resolutions[:2]
	case seedance20:
		table.Seconds, table.Inputs = upstream.SecondsFrom(4, 15), inputs(9, 3)
		table.Resolutions = append(table.Resolutions, "4k")
	case seedance20f, seedance20m:
		table.Seconds, table.Inputs = upstream.SecondsFrom(4, 15), inputs(9, 3)
		table.Resolutions = table.Resolutions[:2]
	case seedance15:
		table.Seconds, table.Inputs, table.Seed = upstream.SecondsFrom(4, 12), frames(append(imageTypes(), "image/heic", "image/heif")), true
	case seedance10, seedance10f:
		table.Seconds, table.Inputs, table.Seed = upstream.SecondsFrom(2, 12), frames(imageTypes()), true
		table.Audio, table.UsualResolution = providers.AudioNever, "1080p"
		if name == seedance10f {
			table.Inputs = table.Inputs[:1]
		}
	default:
		table.Seconds, table.Inputs, table.Seed = providers.AnyWord(), inputs(30, 10), true
		return table.Open(), false
	}
	return table, true
}

func imageTypes() []string {
	return []string{"image/jpeg", "image/png", "image/webp", "image/bmp", "image/tiff", "image/gif"}
}

// frames returns a first and a last frame.
func frames(types []string) []providers.VideoInput {
	return providers.Frames(providers.VideoInput{Types: types, MaxBytes: maxImage})
}

// inputs returns the frames and references of Seedance 2: at most images images, others videos and others sounds.
func inputs(images, others int) []providers.VideoInput {
	types := append(imageTypes(), "image/heic", "image/heif")
	return append(frames(types),
		providers.VideoInput{Role: providers.Reference, Max: images, Types: types, MaxBytes: maxImage},
		providers.VideoInput{Role: providers.SourceVideo, Max: others, LinksOnly: true},
		providers.VideoInput{Role: providers.ExtendVideo, Max: others, LinksOnly: true},
		providers.VideoInput{
			Role: providers.SourceAudio, Max: others,
			Types: []string{"audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"}, MaxBytes: maxAudio,
		},
	)
}
