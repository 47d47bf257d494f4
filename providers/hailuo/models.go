package hailuo

import (
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxPrompt and maxSecondPrompt are in characters, the limits of inputs in bytes.
	maxPrompt, maxSecondPrompt      = 2000, 7000
	maxImage                        = 20 << 20
	maxSecondImage, maxSecondSound  = 30 << 20, 15 << 20
	maxSecondImages, maxSecondTones = 9, 3
	maxSecondVideos, maxSecondFiles = 3, 12
	maxSecondVideo                  = 50 << 20
	// maxSecondBody is that of a request in bytes.
	maxSecondBody = 64 << 20
)

// VideoModels is the table of the vendor's models.
func VideoModels(name string) (providers.VideoModel, bool) {
	if second(name) {
		return secondModel(name)
	}
	return firstModel(name)
}

// firstModel returns a model of the first API. It has no field for the ratio: a video from text is wide, one from an image has its ratio.
func firstModel(name string) (providers.VideoModel, bool) {
	frames := providers.Frames(providers.VideoInput{MaxBytes: maxImage})
	table := providers.VideoModel{
		Seconds: []string{"6", "10"}, Resolutions: []string{"768p", "1080p"}, MaxPrompt: maxPrompt,
		Inputs: frames[:1],
	}
	if fixed(name) {
		table.Seconds, table.Resolutions = []string{"6"}, []string{"720p"}
	}
	switch name {
	case "MiniMax-Hailuo-2.3":
	case "MiniMax-Hailuo-2.3-Fast", "I2V-01", "I2V-01-Director", "I2V-01-live":
		table.NeedsInput = true
	case "MiniMax-Hailuo-02":
		table.Resolutions = []string{"512p", "768p", "1080p"}
		table.Inputs = frames
	case "T2V-01", "T2V-01-Director":
		table.Inputs, table.NeedsPrompt = nil, true
	case "S2V-01":
		table.Inputs, table.NeedsInput = []providers.VideoInput{{Role: providers.Reference, MaxBytes: maxImage}}, true
	default:
		table.Inputs = []providers.VideoInput{{Role: providers.FirstFrame}, {Role: providers.LastFrame}, {Role: providers.Reference}}
		return table.Open(), false
	}
	return table, true
}

// fixed reports whether a model has one length and size, and no fields for them.
func fixed(name string) bool { return strings.Contains(name, "2V-01") }

// secondModel returns a model of the second API.
func secondModel(name string) (providers.VideoModel, bool) {
	reference := providers.Reference
	types := []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}
	table := providers.VideoModel{
		AspectRatios: []string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16", "adaptive"}, MaxPrompt: maxSecondPrompt, NeedsPrompt: true,
		Audio: providers.AudioAlways, Apart: true,
		Inputs: append(providers.Frames(providers.VideoInput{Types: types, MaxBytes: maxSecondImage}),
			providers.VideoInput{Role: reference, Types: types, MaxBytes: maxSecondImage, Max: maxSecondImages},
			providers.VideoInput{Role: providers.SourceVideo, MaxBytes: maxSecondVideo, Max: maxSecondVideos},
			providers.VideoInput{Role: providers.SourceAudio, MaxBytes: maxSecondSound, Max: maxSecondTones, With: &reference}),
	}
	switch name {
	case "MiniMax-H3":
		table.Seconds, table.Resolutions, table.UsualSeconds = upstream.SecondsFrom(4, 15), []string{"768p", "2k"}, strconv.Itoa(usualSeconds)
	case "MiniMax-H3-Max":
		table.Seconds, table.Resolutions, table.UsualSeconds = upstream.SecondsFrom(5, 15), []string{"480p", "768p"}, strconv.Itoa(usualSeconds)
	default:
		table.Seconds, table.AspectRatios, table.Resolutions = providers.AnyWord(), providers.AnyWord(), providers.AnyWord()
		return table, false
	}
	return table, true
}
