package runway

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxData bounds an input in a data URI, in bytes: in Base64 it may have 5 MB. A larger one, up to maxUpload, is uploaded.
	maxData, maxUpload = 3_700_000, 200_000_000
	// maxReferences and the others are the vendor's, of images and prompts.
	maxReferences, maxManyReferences, maxWanReferences     = 9, 30, 10
	maxPrompt, maxHorsePrompt, maxSeedPrompt, maxNewPrompt = 1000, 2500, 3500, 15000
)

// route is the path of a create, on which its fields depend.
type route string

const (
	fromText  route = "/v1/text_to_video"
	fromImage route = "/v1/image_to_video"
	fromVideo route = "/v1/video_to_video"
)

// frames are the sizes that a model makes on one route.
type frames struct{ sizes, ratios, resolutions []string }

type model struct {
	providers.VideoModel // of all routes
	// on has the sizes of a route if they differ from the table.
	on map[route]frames
	// seconds and ratio are required: the values that are sent if the caller leaves them open; 0 and "" for none.
	seconds int
	ratio   string
	// textless: a prompt is optional with images; on the route from text it is required.
	textless bool
	// video is the member of a source video. modes: another member selects the operation on it.
	video string
	modes bool
	// outpaint: the ratio, to which the source video is widened, has another name. auto: with images a ratio is "auto_720p".
	outpaint, auto bool
}

// VideoModels is the table of the vendor's models. New ones come every month.
func VideoModels(name string) (providers.VideoModel, bool) {
	known, ok := modelNamed(name)
	return known.VideoModel, ok
}

// The roles of inputs.
const (
	first     = providers.FirstFrame
	last      = providers.LastFrame
	reference = providers.Reference
	source    = providers.SourceVideo
	extend    = providers.ExtendVideo
	sound     = providers.SourceAudio
)

// inputs returns the inputs of the roles, with a maximum of references.
func inputs(references int, roles ...providers.InputRole) (list []providers.VideoInput) {
	for _, role := range roles {
		input := providers.VideoInput{Role: role, MaxBytes: maxUpload}
		switch role {
		case last:
			with := first
			input.With = &with
		case reference:
			input.Max = references
		}
		list = append(list, input)
	}
	return list
}

// modelNamed returns a model. One that is not in the table accepts every field of the vendor.
func modelNamed(name string) (model, bool) {
	for _, family := range [...]func(string) (model, bool){ownModel, seedance, minimax, otherModel} {
		if known, ok := family(name); ok {
			known.UTF16 = true
			return known, true
		}
	}
	open := providers.AnyVideoModel(inputs(maxManyReferences, first, last, reference, source, extend, sound)...)
	open.FPS = 0
	return model{VideoModel: open, textless: true, video: "promptVideo"}, false
}

// ownModel returns one of Runway's own models.
func ownModel(name string) (model, bool) {
	own := model{
		VideoModel: providers.VideoModel{
			Seconds: upstream.SecondsFrom(2, 10), Sizes: []string{"1280x720", "720x1280", "1104x832", "960x960", "832x1104", "1584x672"},
			MaxPrompt: maxPrompt, Seed: true, Inputs: inputs(1, first),
		},
		ratio: "1280:720",
	}
	const usual = 5 // seconds
	switch name {
	case "gen4.5":
		own.NeedsPrompt, own.seconds = true, usual
		own.on = map[route]frames{fromText: {sizes: []string{"1280x720", "720x1280"}}}
	case "gen4_turbo":
		own.NeedsInput, own.textless = true, true
	case "aleph2":
		return model{VideoModel: providers.VideoModel{
			AspectRatios: []string{"16:9", "4:3", "3:2", "1:1", "2:3", "3:4", "9:16", "21:9"}, Seed: true,
			NeedsInput: true, Inputs: inputs(1, source),
		}, video: "videoUri", outpaint: true}, true
	default:
		return model{}, false
	}
	return own, true
}

// seedance returns one of ByteDance's models. The vendor does not list their lengths.
func seedance(name string) (model, bool) {
	small := []string{
		"992x432", "864x496", "752x560", "640x640", "560x752", "496x864",
		"1470x630", "1280x720", "1112x834", "960x960", "834x1112", "720x1280",
	}
	high := []string{"2206x946", "1920x1080", "1664x1248", "1440x1440", "1248x1664", "1080x1920"}
	known := model{
		VideoModel: providers.VideoModel{
			Seconds: providers.AnyWord(), Sizes: small, MaxPrompt: maxSeedPrompt, Audio: providers.AudioOption, Seed: true, Apart: true,
			Inputs: inputs(maxReferences, first, last, reference, source, sound),
		},
		textless: true, video: "promptVideo",
	}
	switch name {
	case "seedance2":
		known.Sizes = slices.Concat(small, high, []string{"3840x1646", "3840x2160", "3840x2880", "3840x3840", "2880x3840", "2160x3840"})
	case "seedance2_fast", "seedance2_mini":
	case "seedance2_5":
		small[1], small[5] = "854x480", "480x854"
		known.Sizes, known.MaxPrompt, known.modes = slices.Concat(small, high), maxNewPrompt, true
		known.Inputs = inputs(maxManyReferences, first, last, reference, source, extend, sound)
	default:
		return model{}, false
	}
	return known, true
}

// minimax returns one of MiniMax's models.
func minimax(name string) (model, bool) {
	table := providers.VideoModel{Seconds: providers.AnyWord(), Audio: providers.AudioAlways, NeedsPrompt: true, Apart: true}
	switch name {
	case "hailuo3":
		table.AspectRatios, table.Resolutions = []string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16", "adaptive"}, []string{"768p", "2k"}
		table.Inputs = inputs(maxReferences, first, last, reference, source, sound)
	case "h3_max":
		table.Resolutions, table.Seed, table.Inputs = []string{"480p", "768p"}, true, inputs(1, first, last)
	default:
		return model{}, false
	}
	return model{VideoModel: table, video: "promptVideo"}, true
}

// otherModel returns a model of Google, xAI or Alibaba.
func otherModel(name string) (model, bool) {
	table := providers.VideoModel{Seconds: providers.AnyWord(), Audio: providers.AudioAlways, Apart: true}
	wide := []string{"1280x720", "720x1280"}
	switch name {
	case "veo3.1", "veo3.1_fast":
		table.Seconds, table.Sizes = []string{"4", "6", "8"}, append(wide, "1080x1920", "1920x1080")
		table.MaxPrompt, table.Audio, table.Negative, table.Seed = maxPrompt, providers.AudioOption, true, true
		table.Inputs = inputs(1, first, last)
		return model{VideoModel: table, ratio: "1280:720", textless: true}, true
	case "gemini_omni_flash":
		table.Seconds, table.Sizes = upstream.SecondsFrom(3, 10), wide
		table.Inputs = inputs(1, first, source)
		return model{VideoModel: table, textless: true, video: "videoUri", on: map[route]frames{fromVideo: {}}}, true
	case "gemini_omni_flash_1.1":
		table.Seconds, table.NeedsPrompt = upstream.SecondsFrom(3, 10), true
		table.Sizes = append(wide, "640x360", "360x640", "1920x1080", "1080x1920", "3840x2160", "2160x3840")
		table.Inputs = inputs(maxReferences, first, last, reference, source, extend)
		return model{VideoModel: table, video: "videoUri", modes: true}, true
	case "grok_imagine_1_5":
		table.AspectRatios, table.Resolutions = []string{"16:9", "9:16", "1:1", "4:3", "3:4", "3:2", "2:3"}, []string{"480p", "720p", "1080p"}
		table.Inputs = inputs(maxReferences, first, reference, sound)
		return model{VideoModel: table, textless: true, on: map[route]frames{fromImage: {resolutions: table.Resolutions}}}, true
	case "wan3", "wan3_prime":
		table.Audio, table.NeedsPrompt, table.Resolutions = providers.AudioOption, true, []string{"480p", "720p", "1080p"}
		table.Sizes = []string{
			"832x480", "720x544", "624x624", "544x720", "480x832", "1280x720", "1104x832", "960x960", "832x1104", "720x1280",
			"1920x1080", "1648x1248", "1440x1440", "1248x1648", "1080x1920",
		}
		table.Inputs = inputs(maxWanReferences, first, last, reference, sound)
		return model{VideoModel: table, auto: true, on: map[route]frames{
			fromText:  {sizes: table.Sizes},
			fromImage: {resolutions: table.Resolutions},
		}}, true
	case "happyhorse_1_0":
		table.Audio, table.MaxPrompt, table.Resolutions = providers.AudioNever, maxHorsePrompt, []string{"720p", "1080p"}
		table.Sizes = []string{
			"1280x720", "720x1280", "960x960", "1108x832", "832x1108", "1920x1080", "1080x1920", "1440x1440", "1662x1248", "1248x1662",
		}
		table.Inputs = inputs(1, first)
		return model{
			VideoModel: table, textless: true,
			on: map[route]frames{fromText: {sizes: table.Sizes}, fromImage: {resolutions: table.Resolutions}},
		}, true
	default:
		return model{}, false
	}
}
