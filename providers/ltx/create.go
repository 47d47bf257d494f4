package ltx

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxData bounds an input that goes as a data URL, in bytes: in Base64 it may have 7 MB.
	maxData = 5_200_000
	// usualSeconds, usualRate and usualSize are sent if the caller leaves it open: the vendor requires a length and a size.
	usualSeconds = "6"
	usualRate    = 24
	usualSize    = "1920x1080"
	// longAbove is the length, in seconds, above which a video has at most so many pixels and frames a second.
	longAbove    = 10
	longPixels   = 1920 * 1080
	longRate     = 25
	longest      = 20
	doubleRate   = 48
	doubleRatePL = 50
)

// VideoModels is the table of the vendor's models.
func VideoModels(model string) (providers.VideoModel, bool) {
	first := providers.FirstFrame
	table := providers.VideoModel{
		Seconds: []string{"6", "8", "10"}, UsualSeconds: usualSeconds, UsualResolution: "1080p",
		Sizes: []string{"1280x720", "720x1280", "1920x1080", "1080x1920"},
		FPS:   providers.AnyFPS, Audio: providers.AudioOption, NeedsPrompt: true,
		Inputs: []providers.VideoInput{{Role: first, MaxBytes: maxData}, {Role: providers.LastFrame, MaxBytes: maxData, With: &first}},
	}
	if fast := strings.HasSuffix(model, "-fast"); fast {
		for n := longAbove + 2; n <= longest; n += 2 {
			table.Seconds = append(table.Seconds, strconv.Itoa(n))
		}
	}
	large := []string{"2560x1440", "1440x2560", "3840x2160", "2160x3840"}
	switch model {
	case "ltx-2-5-pro":
		table.Inputs = append(table.Inputs, providers.VideoInput{Role: providers.SourceAudio, MaxBytes: maxData})
	case "ltx-2-3-pro":
		table.Sizes = append(table.Sizes, large...)
		table.Inputs = append(table.Inputs, providers.VideoInput{Role: providers.SourceAudio, MaxBytes: maxData})
	case "ltx-2-3-fast", "ltx-2-5-fast":
		table.Sizes = append(table.Sizes, large...)
	default:
		return providers.VideoModel{}, false
	}
	return table, true
}

// modelOf returns what a model accepts. A model that is not in the table accepts every field of the vendor.
func modelOf(model string) providers.VideoModel {
	if known, ok := VideoModels(model); ok {
		return known
	}
	known, _ := VideoModels("ltx-2-3-pro")
	known.Seconds, known.Sizes = providers.AnyWord(), providers.AnyWord()
	return known
}

// RefuseVideo refuses combinations that the vendor does not accept: a long video has at most 1080p and 25 frames a second.
func RefuseVideo(model string, shape providers.VideoShape) *providers.Fault {
	rates := []int{usualRate, longRate, doubleRate, doubleRatePL}
	if shape.FPS != 0 && !slices.Contains(rates, shape.FPS) {
		return providers.InvalidField("fps", "The upstream takes 'fps' of %d, %d, %d or %d.", rates[0], rates[1], rates[2], rates[3])
	}
	// upstream.Accept refuses a length that is not a whole number.
	if seconds, err := upstream.WholeSeconds(shape.Seconds); err == nil && seconds > longAbove {
		return refuseLong(model, shape)
	}
	return nil
}

// refuseLong refuses what a video of more than longAbove seconds cannot have.
func refuseLong(model string, shape providers.VideoShape) *providers.Fault {
	frame, fault := modelOf(model).Frame(shape)
	switch {
	case fault != nil:
		return fault
	case shape.FPS > longRate:
		return providers.InvalidField("seconds", "With 'fps' of %d 'seconds' is at most %d.", shape.FPS, longAbove)
	case pixels(frame.Size) > longPixels:
		return providers.InvalidField("seconds", "In more than 1080p 'seconds' is at most %d.", longAbove)
	}
	return nil
}

// pixels is how many a size has, 0 where it has none.
func pixels(size string) int {
	w, h, _ := strings.Cut(size, "x")
	width, _ := strconv.Atoi(w)
	height, _ := strconv.Atoi(h)
	return width * height
}

// createBody writes a create and returns its path. It fails only before anything was sent.
func createBody(ctx context.Context, model string, req providers.VideoRequest) (route operation, body []byte, err error) {
	frame, seconds, err := upstream.Accept(req, modelOf(model), RefuseVideo(model, req.Shape()))
	if err != nil {
		return "", nil, err
	}
	own, err := req.Parameters()
	if err != nil {
		return "", nil, err
	}
	members := upstream.Members{"model": model, "prompt": req.Prompt}
	if own["resolution"] == nil {
		members["resolution"] = usualSize
	}
	members.Words(map[string]string{"resolution": frame.Size})
	members.Number("duration", seconds)
	members.Number("fps", req.FPS)
	members.Sound("generate_audio", req, modelOf(model))
	route = fromText
	for _, input := range [...]struct {
		role  providers.InputRole
		name  string
		route operation
	}{
		{providers.FirstFrame, "image_uri", fromImage},
		{providers.LastFrame, "last_frame_uri", fromImage},
		{providers.SourceAudio, "audio_uri", fromAudio},
	} {
		for _, one := range req.Of(input.role) {
			text, err := upstream.InputText(ctx, one)
			if err != nil {
				return "", nil, err
			}
			members[input.name], route = text, input.route
		}
	}
	if route == fromAudio { // the audio decides the length
		delete(members, "duration")
	}
	body, err = upstream.Fields(own, members)
	return route, body, err
}
