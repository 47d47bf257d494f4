package providers

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Footage is what a video costs by: what a request asks for, what a vendor was sent, or what it made. It is in workflow histories.
type Footage struct {
	// Seconds is the length of one video as decimal text, "" where nothing says it.
	Seconds string `json:"seconds,omitempty"`
	Videos  int    `json:"videos,omitempty"` // 0: 1
	// Resolution is a word, and Audio "true" or "false"; "" where nothing says it.
	Resolution string `json:"resolution,omitempty"`
	Audio      string `json:"audio,omitempty"`
	// Tokens are those that the vendor counted, of all videos together.
	Tokens VideoTokens `json:"tokens,omitzero"`
}

// Footage is what the request asks for in the contract's own fields.
func (r VideoRequest) Footage() Footage {
	f := Footage{Seconds: r.Seconds, Videos: r.N, Resolution: ResolutionWord(r.Resolution, r.Width, r.Height)}
	if r.GenerateAudio != nil {
		f.Audio = strconv.FormatBool(*r.GenerateAudio)
	}
	return f
}

// Or completes what is missing in f by what other has. Tokens are left alone.
func (f Footage) Or(other Footage) Footage {
	f.Seconds, f.Resolution, f.Audio = cmp.Or(f.Seconds, other.Seconds), cmp.Or(f.Resolution, other.Resolution), cmp.Or(f.Audio, other.Audio)
	f.Videos = cmp.Or(f.Videos, other.Videos)
	return f
}

// Made is the footage of a job that is done, with so many videos: what the vendor measured, else what it was sent, else the length
// of the file, else what was asked for. The length of its sources is added where the vendor bills it.
func (f Footage) Made(status VideoStatus, sent Footage, file string, videos int) Footage {
	made := Footage{Seconds: status.Seconds, Resolution: ResolutionWord(status.Resolution, 0, 0), Audio: status.Audio}
	made = made.Or(sent).Or(Footage{Seconds: file}).Or(f)
	made.Resolution = cmp.Or(made.Resolution, ResolutionWord("", status.Width, status.Height))
	made.Videos, made.Tokens = videos, status.Tokens
	source, _ := strconv.ParseFloat(status.Source, 64) // what is no number is no length
	if own, err := strconv.ParseFloat(made.Seconds, 64); err == nil && source > 0 {
		made.Seconds = strconv.FormatFloat(own+source/float64(max(videos, 1)), 'f', -1, 64)
	}
	return made
}

// VideoPaths are the members of a create by which a vendor reads what it bills, as paths from its root with dots between the names.
// A caller may write them in Metadata or Extra; what the contract's fields say overrules them.
type VideoPaths struct {
	// Seconds are lengths: 8, "8" or "8s". Frames are lengths in frames, FPS how many of them make a second.
	Seconds, Frames []string
	FPS             float64
	// Resolutions are words ("1080p", "4k") or pixels ("1280x720", "1280*720", "1280:720"). Modes are other words for resolutions.
	Resolutions []string
	Modes       map[string]string
	// Audio are switches: true, "on", "native". Videos are numbers of videos.
	Audio, Videos []string
}

// Footage is what the own parameters of a request say at the paths. Values that the vendor could not read say nothing.
func (p VideoPaths) Footage(req VideoRequest) Footage {
	fields, err := req.Parameters()
	if err != nil || len(fields) == 0 {
		return Footage{}
	}
	f := Footage{
		Seconds: firstOf(fields, p.Seconds, secondsText), Resolution: firstOf(fields, p.Resolutions, p.resolution), Audio: firstOf(fields, p.Audio, switchText),
	}
	if frames, err := strconv.ParseFloat(firstOf(fields, p.Frames, secondsText), 64); f.Seconds == "" && err == nil && p.FPS > 0 {
		f.Seconds = strconv.FormatFloat(math.Round(frames/p.FPS), 'f', -1, 64)
	}
	f.Videos, _ = strconv.Atoi(firstOf(fields, p.Videos, secondsText)) // what is no number says nothing
	return f
}

// firstOf is the first value at one of the paths that read understands, "" for none.
func firstOf(fields map[string]json.RawMessage, paths []string, read func(json.RawMessage) string) string {
	for _, path := range paths {
		object, value := fields, json.RawMessage(nil)
		for name := range strings.SplitSeq(path, ".") {
			value = object[name]
			object = nil
			_ = json.Unmarshal(value, &object) // what is no object has no members
		}
		if text := read(value); text != "" {
			return text
		}
	}
	return ""
}

// plainText is a text or a number as text.
func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return strings.ToLower(strings.TrimSpace(text))
}

// secondsText is a positive number, with or without the unit of seconds.
func secondsText(value json.RawMessage) string {
	text := strings.TrimSpace(strings.TrimSuffix(plainText(value), "s"))
	if n, err := strconv.ParseFloat(text, 64); err != nil || n <= 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return ""
	}
	return text
}

// resolution is the one word for what a value says.
func (p VideoPaths) resolution(value json.RawMessage) string {
	text := plainText(value)
	if word := p.Modes[text]; word != "" {
		return word
	}
	if width, height := pixelsOf(strings.NewReplacer("*", "x", ":", "x").Replace(text)); width > 0 && height > 0 {
		return ResolutionWord("", width, height)
	}
	number := strings.TrimRight(text, "pk")
	if _, err := strconv.Atoi(number); err != nil || len(text) != len(number)+1 {
		return ""
	}
	return ResolutionWord(text, 0, 0)
}

func switchText(value json.RawMessage) string {
	switch plainText(value) {
	case "true", "on", "native":
		return "true"
	case "false", "off":
		return "false"
	}
	return ""
}

// usual is what the model makes where a request says nothing, by the vendor's usual footage. A video that is changed or continued
// has the length of its source.
func (m VideoModel) usual(vendor Footage, shape VideoShape) Footage {
	if shape.Has(SourceVideo) || shape.Has(ExtendVideo) {
		return Footage{}
	}
	return Footage{
		Seconds: oneOf(m.Seconds, cmp.Or(m.UsualSeconds, vendor.Seconds)), Resolution: oneOf(m.Resolutions, cmp.Or(m.UsualResolution, vendor.Resolution)),
	}
}

// oneOf is the word, or the first of those that a model knows if the word is not among them.
func oneOf(known []string, word string) string {
	if word == "" || len(known) == 0 || takesAny(known) || slices.Contains(known, word) {
		return word
	}
	return known[0]
}

// Complete returns the request as it is sent to an upstream model at a channel of the vendor, and what that asks for: with the
// model's usual length and resolution where the caller says none and the model has fields for them.
func (v Vendor) Complete(c Channel, model string, req VideoRequest) (VideoRequest, Footage) {
	shape, said := req.Shape(), req.Footage().Or(v.paths(c, model).Footage(req))
	known, ok := v.VideoModel(c, model)
	usual := known.usual(v.VideoUsual, shape)
	if !ok {
		return req, said.Or(usual)
	}
	if known.Resolutions == nil && takesAny(known.Sizes) { // of a size the model reads only its ratio
		said.Resolution = cmp.Or(known.UsualResolution, said.Resolution)
	}
	fuller := req
	if said.Seconds == "" && slices.Contains(known.Seconds, usual.Seconds) {
		fuller.Seconds = usual.Seconds
	}
	if said.Resolution == "" && req.Size == "" && slices.Contains(known.Resolutions, usual.Resolution) {
		fuller.Resolution = usual.Resolution
	}
	if v.CheckVideo(c, model, fuller.Shape()) == nil {
		req = fuller
	}
	return req, said.Or(usual)
}

// paths are the vendor's, and those that the channel names for a hosted model.
func (v Vendor) paths(c Channel, model string) VideoPaths {
	paths := v.VideoPaths
	if !v.NamesFields {
		return paths
	}
	fields := c.FieldsOf(model)
	for name, list := range map[string]*[]string{"seconds": &paths.Seconds, "resolution": &paths.Resolutions, "size": &paths.Resolutions, "generate_audio": &paths.Audio} {
		if own := fields[name].Name; own != "" {
			*list = append([]string{own}, *list...)
		}
	}
	return paths
}
