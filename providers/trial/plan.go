package trial

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// What a paid test asks for.
const (
	prompt = "A red ball rolls slowly over green grass."
	// The size of the first frame, in pixels, where a model wants one: large enough for all vendors.
	frameWidth, frameHeight = 1280, 720
)

// Plan is one video that a paid test makes.
type Plan struct {
	// Model and Upstream are the public and the upstream's name of its model.
	Model, Upstream string
	Request         providers.VideoRequest
	// Price is what the operator's list says that it costs; Priced is false where the list says nothing.
	Price  pricing.Money
	Priced bool
}

// Plan plans the cheapest video that a model makes, by its table: the shortest, the smallest, without sound. model is a public name;
// "": of the channel's models the one whose video costs least by the prices, the first by name where none has one. The error is a
// *providers.Fault: there is no such model, or it needs an input that a test does not have.
func (a Ask) Plan(model string, prices *pricing.List) (Plan, error) {
	if a.Vendor.Video == nil {
		return Plan{}, providers.Faultf(providers.Invalid, "The channel %q makes no videos.", a.Target.Channel.Name)
	}
	if model != "" {
		name, known := a.Target.Channel.UpstreamModel(model)
		if !known {
			return Plan{}, providers.InvalidField("model", "Invalid request: 'model' must be one that the channel %q serves.", a.Target.Channel.Name)
		}
		return a.plan(model, name, prices)
	}
	var best Plan
	var fault error = providers.InvalidField("model", "Invalid request: 'model' is required: the channel %q names none.", a.Target.Channel.Name)
	models := a.models()
	for _, public := range slices.Sorted(maps.Keys(models)) {
		plan, err := a.plan(public, models[public], prices)
		switch {
		case err != nil && best.Model == "":
			fault = err
		case err == nil && (best.Model == "" || plan.Priced && (!best.Priced || plan.Price < best.Price)):
			best, fault = plan, nil
		}
	}
	return best, fault
}

func (a Ask) plan(public, name string, prices *pricing.List) (Plan, error) {
	plan := Plan{Model: public, Upstream: name}
	req := providers.VideoRequest{Model: public, Prompt: prompt}
	table, known := a.Vendor.VideoModel(a.Target.Channel, name)
	var tries []providers.VideoRequest
	if known && table.Tells() {
		if needsFrame(table) {
			req.Inputs = []providers.Media{frame()}
		}
		silent := false
		cheap := req
		cheap.Seconds, cheap.Resolution = least(table.Seconds, seconds), least(table.Resolutions, lines)
		if cheap.Resolution == "" {
			cheap.Size = least(table.Sizes, pixels)
		}
		if table.Audio == providers.AudioOption {
			cheap.GenerateAudio = &silent
		}
		// What the vendor does not take with one another is asked for one by one less.
		loud, large, long := cheap, cheap, cheap
		loud.GenerateAudio, large.Resolution, large.Size, long.Seconds = nil, "", "", ""
		largeLoud := large
		largeLoud.GenerateAudio = nil
		tries = append(tries, cheap, loud, large, largeLoud, long)
	}
	tries = append(tries, req)
	var fault *providers.Fault
	for _, plan.Request = range tries {
		if fault = a.Vendor.CheckVideo(a.Target.Channel, name, plan.Request.Shape()); fault == nil {
			break
		}
	}
	if fault != nil {
		return plan, fault
	}
	price, priced := prices.Of(public)
	plan.Priced, plan.Price = priced, price.Most(measure(plan.Request, table))
	return plan, nil
}

// needsFrame tells whether a model makes no video of a prompt alone, but one of a first frame.
func needsFrame(table providers.VideoModel) bool {
	return table.NeedsInput || slices.ContainsFunc(table.Inputs, func(input providers.VideoInput) bool {
		return input.Role == providers.FirstFrame && input.Needed
	})
}

func measure(req providers.VideoRequest, table providers.VideoModel) pricing.Measure {
	m := pricing.Measure{Requests: 1, Videos: 1, Resolution: providers.ResolutionWord(req.Resolution, req.Width, req.Height)}
	length := cmp.Or(req.Seconds, least(table.Seconds, seconds))
	m.Video = time.Duration(seconds(length) * float64(time.Second))
	switch {
	case req.GenerateAudio != nil && !*req.GenerateAudio, table.Audio == providers.AudioNever:
		m.Sound = pricing.SoundOff
	case table.Audio == providers.AudioAlways:
		m.Sound = pricing.SoundOn
	}
	return m
}

// least is the word of a table's list that is least by a figure; "" where the list says nothing. A word without a figure is not
// chosen.
func least(words []string, figure func(string) float64) string {
	best, found := 0.0, ""
	for _, word := range words {
		if n := figure(word); n > 0 && (found == "" || n < best) {
			best, found = n, word
		}
	}
	return found
}

func seconds(word string) float64 {
	n, err := strconv.ParseFloat(word, 64)
	if err != nil || n < 0 || n > math.MaxInt16 {
		return 0
	}
	return n
}

// lines reads "720p" and "4k".
func lines(word string) float64 {
	const thousand = 540 // of pixels across are so many lines
	if across, ok := strings.CutSuffix(word, "k"); ok {
		return seconds(across) * thousand
	}
	return seconds(strings.TrimSuffix(word, "p"))
}

// pixels reads "1280x720".
func pixels(word string) float64 {
	width, height, _ := strings.Cut(word, "x")
	return seconds(width) * seconds(height)
}

// frame is a picture of our own, of a red ball.
func frame() providers.Media {
	open := func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(picture())), nil }
	data := picture()
	return providers.Media{Object: "test.png", Name: "test.png", ContentType: "image/png", Size: int64(len(data)), Open: open}
}

func picture() []byte {
	const radius = 120
	grass, ball := color.RGBA{60, 140, 60, 255}, color.RGBA{200, 40, 40, 255}
	img := image.NewRGBA(image.Rect(0, 0, frameWidth, frameHeight))
	for y := range frameHeight {
		for x := range frameWidth {
			dx, dy := x-frameWidth/2, y-frameHeight/2
			if dx*dx+dy*dy < radius*radius {
				img.SetRGBA(x, y, ball)
			} else {
				img.SetRGBA(x, y, grass)
			}
		}
	}
	var out bytes.Buffer
	_ = png.Encode(&out, img) // into memory, of a size that PNG has
	return out.Bytes()
}
