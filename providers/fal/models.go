package fal

import (
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Sources of the table: fal-ai/fal-js libs/client/src/types/endpoints.ts, the types of each model's input; for FLUX 3 and LTX-2.5
// the pages fal.ai/models/blackforestlabs/flux-3/text-to-video/api, …/flux-3-max/text-to-video/llms.txt and
// fal.ai/models/fal-ai/ltx-2.5/text-to-video/fast/llms.txt.

const (
	first     = providers.FirstFrame
	last      = providers.LastFrame
	reference = providers.Reference
	sound     = providers.SourceAudio
)

// maxReferences bounds the references of every model that takes some.
const maxReferences = 9

// VideoModels is the table of the most used models. The vendor's many others accept every word, in the usual fields.
func VideoModels(model string) (providers.VideoModel, bool) { return hostedOf(model).Model, true }

// hostedOf returns a model. One that is not in the table has the usual names, except for a last frame and for references, which have too
// many names: a model that ignores an unknown field would make, and bill, another video.
func hostedOf(model string) upstream.Hosted {
	if known, ok := lookUp(model); ok {
		return known
	}
	return upstream.Hosted{
		Model: providers.VideoModel{
			Seconds: providers.AnyWord(), AspectRatios: providers.AnyWord(), Resolutions: providers.AnyWord(), Audio: providers.AudioOption,
			Negative: true, Seed: true, Inputs: []providers.VideoInput{{Role: first}},
		},
		Inputs: map[providers.InputRole]string{first: "image_url"}, Length: providers.AsText,
	}
}

// names are the names of a model's inputs.
type names = map[providers.InputRole]string

// The names in most models.

func imageName() names { return names{first: "image_url"} }

func frameNames() names { return names{first: "image_url", last: "end_image_url"} }

func referenceNames() names { return names{reference: "image_urls"} }

// taking returns the model of an input kind. It reports false if kinds lacks the kind. The inputs in the name of the kind are required.
func taking(model providers.VideoModel, length providers.FieldForm, from string, kinds map[string]names) (upstream.Hosted, bool) {
	needs := map[string][]providers.InputRole{fromImage: {first}, fromFrames: {first, last}, fromReferences: {reference}}
	inputs, known := kinds[from]
	hosted := upstream.Taking(model, maxReferences, inputs, needs[from]...)
	hosted.Length = length
	return hosted, known
}

func lookUp(model string) (upstream.Hosted, bool) {
	if name, fast := strings.CutSuffix(model, ltxFast); fast && strings.HasPrefix(name, "fal-ai/ltx-2.5/") {
		_, from := splitModel(name)
		return fastLTX(from)
	}
	family, from := splitModel(model)
	switch family {
	case "fal-ai/veo3.1", "fal-ai/veo3.1/fast", "fal-ai/veo3.1/lite":
		return veo(family, from)
	case "fal-ai/kling-video/v3/standard", "fal-ai/kling-video/v3/pro", "fal-ai/kling-video/v3/4k":
		return kling(from, true)
	case "fal-ai/kling-video/v3/turbo/standard", "fal-ai/kling-video/v3/turbo/pro":
		return kling(from, false)
	case "bytedance/seedance-2.0", "bytedance/seedance-2.0/fast", "bytedance/seedance-2.0/mini", "fal-ai/bytedance/seedance/v1.5/pro":
		return seedance(family, from)
	case "alibaba/happy-horse/v1.1":
		return happyHorse(from)
	case "xai/grok-imagine-video":
		return grok(from)
	case "fal-ai/wan-25-preview", "wan/v2.6":
		return wan(family, from)
	case "fal-ai/ltx-2.3":
		return ltx(from)
	case "blackforestlabs/flux-3", "blackforestlabs/flux-3-max":
		return flux(family, from)
	case "fal-ai/minimax/hailuo-2.3/standard", "fal-ai/minimax/hailuo-2.3/pro":
		return hailuo(family, from)
	case "fal-ai/luma-dream-machine/ray-2":
		return ray(from)
	}
	return upstream.Hosted{}, false
}

// The input kinds at the end of a model's name, "" for text.
const (
	fromText       = "text-to-video"
	fromImage      = "image-to-video"
	fromFrames     = "first-last-frame-to-video"
	fromReferences = "reference-to-video"
)

// ltxFast is the suffix of the faster models of LTX-2.5.
const ltxFast = "/fast"

func splitModel(model string) (family, from string) {
	for _, word := range [...]string{fromText, fromFrames, fromImage, fromReferences} {
		if family, found := strings.CutSuffix(model, "/"+word); found {
			return family, word
		}
	}
	return model, ""
}

func veo(family, from string) (upstream.Hosted, bool) {
	model := providers.VideoModel{
		Seconds: []string{"4", "6", "8"}, AspectRatios: []string{"16:9", "9:16"}, Resolutions: []string{"720p", "1080p", "4k"},
		Audio: providers.AudioOption, Negative: true, Seed: true, NeedsPrompt: true,
	}
	kinds := map[string]names{"": nil, fromImage: imageName(), fromFrames: {first: "first_frame_url", last: "last_frame_url"}}
	switch family {
	case "fal-ai/veo3.1":
		kinds[fromReferences] = referenceNames()
	case "fal-ai/veo3.1/lite":
		model.Resolutions = model.Resolutions[:2]
	}
	if from == fromReferences {
		model.Seconds, model.Negative, model.Seed = []string{"8"}, false, false
	}
	return taking(model, providers.AsUnit, from, kinds)
}

func kling(from string, quiet bool) (upstream.Hosted, bool) {
	model := providers.VideoModel{Seconds: upstream.SecondsFrom(3, 15), Audio: providers.AudioAlways}
	frames := imageName()
	if quiet {
		model.Audio, model.Negative = providers.AudioOption, true
		frames = names{first: "start_image_url", last: "end_image_url"}
	}
	if from == fromText {
		model.AspectRatios, model.NeedsPrompt = []string{"16:9", "9:16", "1:1"}, true
	}
	return taking(model, providers.AsText, from, map[string]names{fromText: nil, fromImage: frames})
}

func seedance(family, from string) (upstream.Hosted, bool) {
	model := providers.VideoModel{
		Seconds: upstream.SecondsFrom(4, 15), AspectRatios: []string{"21:9", "16:9", "4:3", "1:1", "3:4", "9:16"},
		Resolutions: []string{"480p", "720p", "1080p", "4k"}, Audio: providers.AudioOption, NeedsPrompt: true,
	}
	kinds := map[string]names{fromText: nil, fromImage: frameNames(), fromReferences: referenceNames()}
	switch family {
	case "bytedance/seedance-2.0":
	case "fal-ai/bytedance/seedance/v1.5/pro":
		model.Seconds, model.Resolutions, model.Seed = upstream.SecondsFrom(4, 12), model.Resolutions[:3], true
		delete(kinds, fromReferences)
	default:
		model.Resolutions = model.Resolutions[:2]
	}
	hosted, known := taking(model, providers.AsText, from, kinds)
	if known && from == fromReferences {
		hosted.Model.Inputs[0].Needed = false
	}
	return hosted, known
}

func happyHorse(from string) (upstream.Hosted, bool) {
	model := providers.VideoModel{
		Seconds: upstream.SecondsFrom(3, 15), AspectRatios: []string{"16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "9:21", "5:4", "4:5"},
		Resolutions: []string{"720p", "1080p"}, Seed: true, NeedsPrompt: from != fromImage,
	}
	if from == fromImage {
		model.AspectRatios = nil
	}
	return taking(model, providers.AsNumber, from, map[string]names{fromText: nil, fromImage: imageName(), fromReferences: referenceNames()})
}

func grok(from string) (upstream.Hosted, bool) {
	return taking(providers.VideoModel{
		Seconds: upstream.SecondsFrom(1, 15), AspectRatios: []string{"16:9", "4:3", "3:2", "1:1", "2:3", "3:4", "9:16"},
		Resolutions: []string{"480p", "720p"}, NeedsPrompt: true,
	}, providers.AsNumber, from, map[string]names{fromText: nil, fromImage: imageName()})
}

func wan(family, from string) (upstream.Hosted, bool) {
	model := providers.VideoModel{
		Seconds: []string{"5", "10"}, Resolutions: []string{"480p", "720p", "1080p"}, Negative: true, Seed: true, NeedsPrompt: true,
	}
	kinds := map[string]names{fromText: {sound: "audio_url"}, fromImage: {first: "image_url", sound: "audio_url"}}
	if family == "wan/v2.6" {
		model.Seconds, model.Resolutions = append(model.Seconds, "15"), model.Resolutions[1:]
		delete(kinds, fromText)
	}
	if from == fromText {
		model.AspectRatios = []string{"16:9", "9:16", "1:1"}
	}
	return taking(model, providers.AsText, from, kinds)
}

func ltx(from string) (upstream.Hosted, bool) {
	return taking(providers.VideoModel{
		Seconds: []string{"6", "8", "10"}, AspectRatios: []string{"16:9", "9:16"}, Resolutions: []string{"1080p", "1440p", "2160p"},
		FPS: providers.AnyFPS, Audio: providers.AudioOption, NeedsPrompt: true,
	}, providers.AsNumber, from, map[string]names{fromText: nil, fromImage: frameNames()})
}

// fastLTX returns a faster model of LTX-2.5. A video above 10 seconds has at most 1080p and 25 frames a second; the vendor checks it.
func fastLTX(from string) (upstream.Hosted, bool) {
	hosted, ok := ltx(from)
	for n := 12; n <= 20; n += 2 {
		hosted.Model.Seconds = append(hosted.Model.Seconds, strconv.Itoa(n))
	}
	hosted.Model.Resolutions = append([]string{"720p"}, hosted.Model.Resolutions...)
	return hosted, ok
}

// flux returns FLUX 3 from text. Its other models count as unknown models.
func flux(family, from string) (upstream.Hosted, bool) {
	return taking(providers.VideoModel{
		Seconds: upstream.SecondsFrom(5, 20), AspectRatios: []string{"auto", "21:9", "2:1", "16:9", "4:3", "1:1", "3:4", "9:16"},
		Resolutions: []string{"720p", "1080p"}, Audio: providers.AudioOption, NeedsPrompt: true, Seed: family == "blackforestlabs/flux-3-max",
	}, providers.AsNumber, from, map[string]names{fromText: nil})
}

func hailuo(family, from string) (upstream.Hosted, bool) {
	model := providers.VideoModel{NeedsPrompt: true}
	if family == "fal-ai/minimax/hailuo-2.3/standard" {
		model.Seconds = []string{"6", "10"}
	}
	return taking(model, providers.AsText, from, map[string]names{fromText: nil, fromImage: imageName()})
}

func ray(from string) (upstream.Hosted, bool) {
	return taking(providers.VideoModel{
		Seconds: []string{"5", "9"}, AspectRatios: []string{"16:9", "9:16", "4:3", "3:4", "21:9", "9:21"},
		Resolutions: []string{"540p", "720p", "1080p"}, NeedsPrompt: true,
	}, providers.AsUnit, from, map[string]names{"": nil, fromImage: frameNames()})
}
