package vidu

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxPrompt and maxReferencePrompt are in characters.
	maxPrompt, maxReferencePrompt = 5000, 2000
	// maxBody bounds a request, maxImage the part of it that an image can fill in Base64, in bytes.
	maxBody  = 20 << 20
	maxImage = 15_000_000
	// maxReferences are images.
	maxReferences, maxOldReferences = 7, 3
)

// mode is the mode of a create, which is its path.
type mode string

const (
	fromText       mode = "/text2video"
	fromImage      mode = "/img2video"
	fromFrames     mode = "/start-end2video"
	fromReferences mode = "/reference2video"
	fromVideo      mode = "/extend"
)

// limits are those of a model in one mode. Without ratios the mode has no field for them.
type limits struct {
	seconds, resolutions, ratios []string
	references                   int
}

// modesOf returns the modes of a model; nil for an unknown one.
func modesOf(model string) map[mode]limits {
	ratios := []string{"16:9", "9:16", "3:4", "4:3", "1:1"}
	all, high, full := []string{"540p", "720p", "1080p"}, []string{"720p", "1080p"}, []string{"1080p"}
	wide := func(l limits, references int) limits {
		l.ratios, l.references = ratios, references
		return l
	}
	q3, q2 := limits{seconds: upstream.SecondsFrom(1, 16), resolutions: all}, limits{seconds: upstream.SecondsFrom(1, 10), resolutions: all}
	q2Frames, q2Extend := limits{seconds: upstream.SecondsFrom(1, 8), resolutions: all},
		limits{seconds: upstream.SecondsFrom(1, 7), resolutions: all}
	q3References := wide(limits{seconds: upstream.SecondsFrom(3, 16), resolutions: all}, maxReferences)
	q1 := limits{seconds: []string{"5"}, resolutions: full}
	old := limits{seconds: []string{"4", "8"}, resolutions: []string{"360p", "720p", "1080p"}}
	fast := func(l limits) limits {
		l.resolutions = high
		return l
	}
	switch model {
	case "viduq3-pro":
		return map[mode]limits{fromText: wide(q3, 0), fromImage: q3, fromFrames: q3}
	case "viduq3-turbo":
		return map[mode]limits{fromText: wide(q3, 0), fromImage: q3, fromFrames: q3, fromReferences: q3References}
	case "viduq3-pro-fast":
		return map[mode]limits{fromImage: fast(q3), fromFrames: fast(q3)}
	case "viduq3":
		return map[mode]limits{fromReferences: q3References}
	case "viduq3-mix":
		return map[mode]limits{fromReferences: fast(q3References)}
	case "viduq2":
		return map[mode]limits{fromText: wide(q2, 0), fromReferences: wide(q2, maxReferences)}
	case "viduq2-pro":
		return map[mode]limits{fromImage: q2, fromFrames: q2Frames, fromReferences: wide(q2, maxReferences), fromVideo: q2Extend}
	case "viduq2-turbo":
		return map[mode]limits{fromImage: q2, fromFrames: q2Frames, fromVideo: q2Extend}
	case "viduq2-pro-fast":
		return map[mode]limits{fromImage: fast(q2), fromFrames: fast(q2Frames)}
	case "viduq1":
		text := q1
		text.ratios = []string{"16:9", "9:16", "1:1"}
		return map[mode]limits{fromText: text, fromImage: q1, fromFrames: q1, fromReferences: wide(q1, maxReferences)}
	case "viduq1-classic":
		return map[mode]limits{fromImage: q1, fromFrames: q1}
	case "vidu2.0":
		references := wide(old, maxOldReferences)
		references.seconds = []string{"4"}
		return map[mode]limits{fromImage: old, fromFrames: old, fromReferences: references}
	}
	return nil
}

func sounds(model string) bool {
	return slices.Contains([]string{"viduq3", "viduq3-pro", "viduq3-turbo", "viduq3-pro-fast", "viduq3-mix"}, model)
}

// VideoModels is the table of the vendor's models: what each accepts in any of its modes.
func VideoModels(model string) (providers.VideoModel, bool) {
	table := providers.VideoModel{MaxPrompt: maxPrompt, Seed: true, Apart: true}
	input := func(role providers.InputRole, most int) providers.VideoInput {
		return providers.VideoInput{Role: role, MaxBytes: maxImage, Max: most}
	}
	frames, extend := providers.Frames(input(providers.FirstFrame, 1)), providers.VideoInput{Role: providers.ExtendVideo, LinksOnly: true}
	modes := modesOf(model)
	if modes == nil {
		table.Seconds, table.AspectRatios, table.Resolutions = providers.AnyWord(), providers.AnyWord(), providers.AnyWord()
		table.Audio, table.Inputs = providers.AudioOption, append(frames, input(providers.Reference, maxReferences), extend)
		return table.Open(), false
	}
	if sounds(model) {
		table.Audio = providers.AudioOption
	}
	for _, one := range modes {
		table.Seconds = append(table.Seconds, one.seconds...)
		table.Resolutions = append(table.Resolutions, one.resolutions...)
		table.AspectRatios = append(table.AspectRatios, one.ratios...)
	}
	for _, list := range [...]*[]string{&table.Seconds, &table.Resolutions, &table.AspectRatios} {
		slices.SortFunc(*list, byNumber)
		*list = slices.Compact(*list)
	}
	for _, one := range [...]struct {
		at    mode
		input providers.VideoInput
	}{
		{fromImage, frames[0]},
		{fromFrames, frames[1]},
		{fromReferences, input(providers.Reference, modes[fromReferences].references)},
		{fromVideo, extend},
	} {
		if _, ok := modes[one.at]; ok {
			table.Inputs = append(table.Inputs, one.input)
		}
	}
	_, text := modes[fromText]
	_, image := modes[fromImage]
	table.NeedsInput, table.NeedsPrompt = !text, !image
	return table, true
}

// byNumber orders words by the number at their beginning.
func byNumber(a, b string) int {
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}

func number(word string) int {
	digits, _, _ := strings.Cut(strings.TrimSuffix(word, "p"), ":")
	n, _ := strconv.Atoi(digits) // a number of the table
	return n
}
