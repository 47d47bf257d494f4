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
	// maxData bounds an input in a data URL, in bytes: in Base64 it may have 7 MB.
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
	sound := providers.VideoInput{Role: providers.SourceAudio, MaxBytes: maxData}
	table := providers.VideoModel{
		Seconds: []string{"6", "8", "10"}, UsualSeconds: usualSeconds, UsualResolution: "1080p",
		Sizes: []string{"1280x720", "720x1280", "1920x1080", "1080x1920"},
		FPS:   providers.AnyFPS, Audio: providers.AudioOption, NeedsPrompt: true,
		Inputs: providers.Frames(providers.VideoInput{MaxBytes: maxData}),
	}
	if strings.HasSuffix(model, "-fast") {
		for n := longAbove + 2; n <= longest; n += 2 {
			table.Seconds = append(table.Seconds, strconv.Itoa(n))
		}
	}
	large := []string{"2560x1440", "1440x2560", "3840x2160", "2160x3840"}
	switch model {
	case "ltx-2-5-pro":
		table.Inputs = append(table.Inputs, sound)
	case "ltx-2-3-pro":
		table.Sizes, table.Inputs = append(table.Sizes, large...), append(table.Inputs, sound)
	case "ltx-2-3-fast", "ltx-2-5-fast":
		table.Sizes = append(table.Sizes, large...)
	default:
		table.Inputs = append(table.Inputs, sound)
		return table.Open(), false
	}
	return table, true
}

// RefuseVideo refuses combinations that the vendor does not accept: a long video has at most 1080p and 25 frames a second.
func RefuseVideo(_ string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	rates := []int{usualRate, longRate, doubleRate, doubleRatePL}
	long := frame.Seconds > longAbove
	switch {
	case shape.FPS != 0 && !slices.Contains(rates, shape.FPS):
		return providers.InvalidField("fps", "The upstream takes 'fps' of %d, %d, %d or %d.", rates[0], rates[1], rates[2], rates[3])
	case long && shape.FPS > longRate:
		return providers.InvalidField("seconds", "With 'fps' of %d 'seconds' is at most %d.", shape.FPS, longAbove)
	case long && pixels(frame.Size) > longPixels:
		return providers.InvalidField("seconds", "In more than 1080p 'seconds' is at most %d.", longAbove)
	}
	return nil
}

// pixels returns the number of pixels of a size, 0 for another text.
func pixels(size string) int {
	width, height := upstream.Loose(size).Dimensions()
	return width * height
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo)
	d.Members["model"], d.Members["prompt"] = to.Model, req.Prompt
	if d.Own["resolution"] == nil {
		d.Members["resolution"] = usualSize
	}
	d.Words(map[string]string{"resolution": d.Frame.Size})
	d.Number("duration", d.Frame.Seconds)
	d.Number("fps", req.FPS)
	d.Sound("generate_audio", req, table)
	route := fromText
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
			d.Members[input.name], route = d.Text(ctx, one), input.route
		}
	}
	if route == fromAudio { // the audio decides the length
		delete(d.Members, "duration")
	}
	create, err := d.Create("/v2/"+string(route), 0)
	create.Own = map[string]operation{operationField: route}
	return create, err
}
