package kling

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Limits of the vendor, in characters and bytes.
const (
	maxPrompt      = 3072
	maxShortPrompt = 2500
	maxLongPrompt  = 26000
	maxImage       = 50 << 20
	maxLongImage   = 30 << 20
)

const (
	// maxReferences and maxLongReferences are those of an omni model and of 4.0.
	maxReferences     = 7
	maxLongReferences = 10
	// The maximum lengths of models in seconds: 4.0, its flash, 3.0 and o1.
	longest40, longestFlash, longest30, longestO1 = 30, 20, 15, 10
	shortest                                      = 3
)

// VideoModels is the table of the vendor's models, by their names in either of its APIs.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: []string{"5", "10"}, AspectRatios: []string{"16:9", "9:16", "1:1"}, Resolutions: []string{"720p", "1080p"},
		MaxPrompt: maxPrompt, NeedsPrompt: true, Negative: legacyName(model) && !omni(model), Inputs: frames(maxImage),
	}
	switch model {
	case "kling-4.0", "kling-4.0-flash":
		table.Seconds, table.AspectRatios = upstream.SecondsFrom(shortest, longest40), append(table.AspectRatios, "21:9")
		table.Audio, table.MaxPrompt = providers.AudioAlways, maxLongPrompt
		table.Inputs = append(frames(maxLongImage), references(maxLongReferences, maxLongImage)...)
		if model == "kling-4.0-flash" {
			table.Seconds, table.Resolutions = upstream.SecondsFrom(shortest, longestFlash), []string{"720p"}
		}
	case "kling-3.0", "kling-v3", "kling-3.0-omni", "kling-v3-omni":
		table.Seconds, table.Audio = upstream.SecondsFrom(shortest, longest30), providers.AudioOption
		table.Resolutions = append(table.Resolutions, "4k")
		if omni(model) {
			table.Inputs = append(table.Inputs, references(maxReferences, maxImage)...)
		}
	case "kling-3.0-turbo":
		table.Seconds, table.Audio, table.Inputs = upstream.SecondsFrom(shortest, longest30), providers.AudioAlways, frames(maxImage)[:1]
	case "kling-o1", "kling-video-o1":
		table.Seconds, table.MaxPrompt = upstream.SecondsFrom(shortest, longestO1), maxShortPrompt
		table.Inputs = append(table.Inputs, references(maxReferences, maxImage)...)
	case "kling-2.6", "kling-v2-6":
		table.Audio, table.MaxPrompt = providers.AudioOption, maxShortPrompt
	case "kling-2.5-turbo", "kling-v2-5-turbo":
		table.MaxPrompt = maxShortPrompt
	default:
		table.Negative, table.Audio = legacyName(model), providers.AudioOption
		table.Inputs = append(table.Inputs, references(maxLongReferences, maxImage)...)
		return table.Open(), false
	}
	if legacyName(model) {
		table.MaxPrompt = maxShortPrompt
	}
	return table, true
}

func frames(most int64) []providers.VideoInput {
	return providers.Frames(providers.VideoInput{Types: []string{"image/png", "image/jpeg"}, MaxBytes: most})
}

// references returns the inputs of an omni model in addition to the frames. It accepts videos only as links.
func references(most int, bytes int64) []providers.VideoInput {
	return []providers.VideoInput{
		{Role: providers.Reference, Max: most, Types: []string{"image/png", "image/jpeg"}, MaxBytes: bytes},
		{Role: providers.SourceVideo, LinksOnly: true},
	}
}

// modelOf returns what a model accepts. The older API accepts a negative prompt for any model that is not in the table.
func modelOf(model string, legacy bool) providers.VideoModel {
	table, known := VideoModels(model)
	table.Negative = table.Negative || legacy && !known
	return table
}

// legacyName reports whether a name is that of the older API: kling-v3 is kling-3.0 in the other one.
func legacyName(model string) bool { return strings.HasPrefix(model, "kling-v") }

// omni reports whether a model has only the route of references.
func omni(model string) bool {
	return strings.HasSuffix(model, "-omni") || model == "kling-o1" || model == "kling-video-o1"
}
