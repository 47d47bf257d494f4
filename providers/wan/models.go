package wan

import (
	"regexp"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxImage and maxOldImage bound an uploaded image in bytes, the latter up to 2.6.
	maxImage    = 20 << 20
	maxOldImage = 10 << 20
	// maxNegative bounds a negative prompt in characters.
	maxNegative = 500
)

// form is the form of inputs and sizes of a family of models.
type form int

const (
	mediaForm  form = iota // input.media, parameters.resolution and ratio
	sizeForm               // parameters.size, input.reference_urls
	imageForm              // input.img_url, parameters.resolution
	framesForm             // input.first_frame_url and last_frame_url, at another path
)

// family has what the models of one kind accept.
type family struct {
	form  form
	table providers.VideoModel
	// seconds is the length that is sent if the request has none, because the price depends on it; 0 for none. The same applies to resolution.
	seconds    int
	resolution string
	// references bounds reference images and videos together, 0 if they are bounded separately.
	references int
}

// dated is the suffix of a renewed model's name.
var dated = regexp.MustCompile(`-20\d\d-\d\d-\d\d$`)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	known, ok := familyOf(model)
	return known.table, ok
}

// familyOf returns the family of a model. A model that is not in the table has every field of the vendor, in the newest form.
func familyOf(model string) (family, bool) {
	if known, ok := knownFamily(model); ok {
		return known, true
	}
	open := wan3()
	open.seconds, open.resolution, open.table = 0, "", open.table.Open()
	open.table.FPS, open.table.Negative = 0, true
	return open, false
}

func knownFamily(model string) (family, bool) {
	name := dated.ReplaceAllString(model, "")
	switch {
	case name == "wan3.0-video", name == "wan3.0-video-prime":
		return wan3(), true
	case strings.HasPrefix(name, "wan2.7-"):
		return wan27(strings.TrimPrefix(name, "wan2.7-"))
	case strings.HasPrefix(name, "wan2.6-"), strings.HasPrefix(name, "wan2.5-"):
		return wan26(name)
	case strings.HasPrefix(name, "happyhorse-1.0-"), strings.HasPrefix(name, "happyhorse-1.1-"):
		return happyHorse(name[len("happyhorse-1.0-"):])
	case name == "wan2.2-kf2v-flash", name == "wanx2.1-kf2v-plus":
		table := providers.VideoModel{
			Seconds: []string{"5"}, Resolutions: []string{"480p", "720p", "1080p"}, Negative: true, Seed: true, MaxPrompt: 800, NeedsInput: true,
			Inputs: frames(maxOldImage),
		}
		if name == "wanx2.1-kf2v-plus" {
			table.Resolutions = []string{"720p"}
		}
		return family{form: framesForm, table: table}, true
	}
	return family{}, false
}

func ratios(more ...string) []string { return append(more, "16:9", "9:16", "1:1", "4:3", "3:4") }

func imageTypes() []string { return []string{"image/jpeg", "image/png", "image/bmp", "image/webp"} }

func image(role providers.InputRole, most int, size int64) providers.VideoInput {
	return providers.VideoInput{Role: role, Max: most, Types: imageTypes(), MaxBytes: size}
}

// frames returns a first and a last frame.
func frames(size int64) []providers.VideoInput {
	return providers.Frames(image(providers.FirstFrame, 1, size))
}

// linked returns videos or audio, which the vendor fetches itself.
func linked(role providers.InputRole, most int) providers.VideoInput {
	return providers.VideoInput{Role: role, Max: most, LinksOnly: true}
}

func wan3() family {
	return family{
		seconds: 5, resolution: "1080p",
		table: providers.VideoModel{
			Seconds: upstream.SecondsFrom(2, 30), AspectRatios: ratios("adaptive", "21:9"), Resolutions: []string{"480p", "720p", "1080p"}, FPS: 30,
			Audio: providers.AudioOption, Seed: true, MaxPrompt: 20_000, Apart: true,
			Inputs: append(frames(maxImage), image(providers.Reference, 10, maxImage), linked(providers.SourceVideo, 5),
				linked(providers.SourceAudio, 5)),
		},
	}
}

func wan27(kind string) (family, bool) {
	known := family{seconds: 5, resolution: "1080p", table: providers.VideoModel{
		Seconds: upstream.SecondsFrom(2, 15), AspectRatios: ratios(), Resolutions: []string{"720p", "1080p"}, Audio: providers.AudioAlways,
		Negative: true, Seed: true, MaxPrompt: 5000,
	}}
	table := &known.table
	switch kind {
	case "t2v":
		table.NeedsPrompt, table.Inputs = true, []providers.VideoInput{linked(providers.SourceAudio, 1)}
	case "i2v":
		table.AspectRatios, table.NeedsInput = nil, true
		table.Inputs = []providers.VideoInput{
			image(providers.FirstFrame, 1, maxImage), image(providers.LastFrame, 1, maxImage), linked(providers.SourceAudio, 1),
			linked(providers.ExtendVideo, 1),
		}
	case "r2v":
		table.NeedsInput, known.references = true, 5
		table.Inputs = []providers.VideoInput{
			image(providers.Reference, 5, maxImage), linked(providers.SourceVideo, 5),
			image(providers.FirstFrame, 1, maxImage),
		}
	case "videoedit":
		known.seconds, table.Seconds, table.NeedsInput, table.Negative = 0, nil, true, false
		table.Inputs = []providers.VideoInput{linked(providers.SourceVideo, 1), image(providers.Reference, 4, maxImage)}
	default:
		return family{}, false
	}
	return known, true
}

// wan26 returns a model of 2.5 or 2.6.
func wan26(name string) (family, bool) {
	known := family{seconds: 5, table: providers.VideoModel{
		Seconds: upstream.SecondsFrom(2, 15), Audio: providers.AudioAlways, Negative: true, Seed: true, MaxPrompt: 1500,
	}}
	table := &known.table
	sizes := []string{
		"1280x720", "720x1280", "960x960", "1088x832", "832x1088", "1920x1080", "1080x1920", "1440x1440", "1632x1248", "1248x1632",
	}
	switch name {
	case "wan2.6-t2v", "wan2.5-t2v-preview":
		known.form, table.Sizes, table.NeedsPrompt = sizeForm, sizes, true
		table.Inputs = []providers.VideoInput{linked(providers.SourceAudio, 1)}
	case "wan2.6-i2v", "wan2.6-i2v-flash", "wan2.5-i2v-preview":
		known.form, known.resolution, table.Resolutions, table.NeedsInput = imageForm, "1080p", []string{"720p", "1080p"}, true
		table.Inputs = []providers.VideoInput{image(providers.FirstFrame, 1, maxOldImage), linked(providers.SourceAudio, 1)}
	case "wan2.6-r2v", "wan2.6-r2v-flash":
		known.form, known.references, table.Sizes, table.NeedsInput, table.Seconds = sizeForm, 5, sizes, true, upstream.SecondsFrom(2, 10)
		table.Inputs = []providers.VideoInput{linked(providers.Reference, 5), linked(providers.SourceVideo, 5)}
	default:
		return family{}, false
	}
	switch name {
	case "wan2.5-t2v-preview":
		table.Seconds, table.Audio = []string{"5", "10"}, providers.AudioOption
		table.Sizes = append(table.Sizes, "832x480", "480x832", "624x624")
	case "wan2.5-i2v-preview":
		table.Seconds, table.Resolutions = []string{"5", "10"}, []string{"480p", "720p", "1080p"}
	case "wan2.6-i2v-flash":
		table.Audio = providers.AudioOption
	}
	return known, true
}

func happyHorse(kind string) (family, bool) {
	known := family{seconds: 5, table: providers.VideoModel{
		Seconds: upstream.SecondsFrom(3, 15), AspectRatios: ratios(), Resolutions: []string{"720p", "1080p"}, Audio: providers.AudioAlways,
		Seed: true,
	}}
	switch table := &known.table; kind {
	case "t2v":
		table.NeedsPrompt = true
	case "i2v":
		table.AspectRatios, table.NeedsInput, table.Inputs = nil, true, []providers.VideoInput{image(providers.FirstFrame, 1, maxImage)}
	case "r2v":
		table.NeedsInput, table.Inputs = true, []providers.VideoInput{image(providers.Reference, 9, maxImage)}
	default:
		return family{}, false
	}
	return known, true
}
