package providers

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Footage is what the cost of a video depends on: as requested, as sent to the vendor, or as made. It is stored in workflow histories.
type Footage struct {
	// Seconds is the length of one video as decimal text, "" if unknown.
	Seconds string `json:"seconds,omitempty"`
	Videos  int    `json:"videos,omitempty"` // 0 means 1
	// Resolution is a word, Audio "true" or "false"; "" if unknown.
	Resolution string `json:"resolution,omitempty"`
	Audio      string `json:"audio,omitempty"`
	// Tokens are the vendor's count for all videos together.
	Tokens VideoTokens `json:"tokens,omitzero"`
}

// Footage returns what the request asks for in the contract's own fields.
func (r VideoRequest) Footage() Footage {
	f := Footage{Seconds: r.Seconds, Videos: r.N, Resolution: ResolutionWord(r.Resolution, r.Width, r.Height)}
	if r.GenerateAudio != nil {
		f.Audio = strconv.FormatBool(*r.GenerateAudio)
	}
	return f
}

// Or fills the empty fields of f from other, except Tokens.
func (f Footage) Or(other Footage) Footage {
	f.Seconds, f.Resolution, f.Audio = cmp.Or(f.Seconds, other.Seconds), cmp.Or(f.Resolution, other.Resolution), cmp.Or(f.Audio, other.Audio)
	f.Videos = cmp.Or(f.Videos, other.Videos)
	return f
}

// OfJob returns the footage of a finished job with so many videos: as the vendor measured it, otherwise as it was sent, otherwise
// the length of the file, otherwise as requested. It adds the length of the sources if the vendor bills it.
func (f Footage) OfJob(status VideoStatus, sent Footage, file string, videos int) Footage {
	made := Footage{Seconds: status.Seconds, Resolution: ResolutionWord(status.Resolution, 0, 0), Audio: status.Audio}
	made = made.Or(sent).Or(Footage{Seconds: file}).Or(f)
	made.Resolution = cmp.Or(made.Resolution, ResolutionWord("", status.Width, status.Height))
	made.Videos, made.Tokens = videos, status.Tokens
	source, _ := strconv.ParseFloat(status.Source, 64) // not a number: 0
	if own, err := strconv.ParseFloat(made.Seconds, 64); err == nil && source > 0 {
		made.Seconds = strconv.FormatFloat(own+source/float64(max(videos, 1)), 'f', -1, 64)
	}
	return made
}

// VideoPaths are the members of a create that the vendor bills by, as paths from its root with dots between the names. A caller may
// write them in Metadata or Extra. The contract's fields override them.
type VideoPaths struct {
	// Seconds are lengths: 8, "8" or "8s". Frames are lengths in frames, FPS the frames of a second.
	Seconds, Frames []string
	FPS             float64
	// Resolutions are words ("1080p", "4k") or pixels ("1280x720", "1280*720", "1280:720"). Modes are other words for resolutions.
	Resolutions []string
	Modes       map[string]string
	// Audio are switches: true, "on", "native". Videos are numbers of videos.
	Audio, Videos []string
}

// Footage returns the values at the paths in the request's vendor parameters. It ignores values that are not valid.
func (p VideoPaths) Footage(req VideoRequest) Footage {
	fields, err := req.Parameters()
	if err != nil || len(fields) == 0 {
		return Footage{}
	}
	f := Footage{
		Seconds: firstOf(fields, p.Seconds, secondsText), Resolution: firstOf(fields, p.Resolutions, p.resolution),
		Audio: firstOf(fields, p.Audio, switchText),
	}
	if frames, err := strconv.ParseFloat(firstOf(fields, p.Frames, secondsText), 64); f.Seconds == "" && err == nil && p.FPS > 0 {
		f.Seconds = strconv.FormatFloat(max(1, math.Round(frames/p.FPS)), 'f', -1, 64)
	}
	f.Videos, _ = strconv.Atoi(firstOf(fields, p.Videos, secondsText)) // not a number: 0
	return f
}

// firstOf returns the first value at one of the paths that read accepts, "" for none.
func firstOf(fields map[string]json.RawMessage, paths []string, read func(json.RawMessage) string) string {
	for _, path := range paths {
		object, value := fields, json.RawMessage(nil)
		for name := range strings.SplitSeq(path, ".") {
			value = object[name]
			object = nil
			_ = json.Unmarshal(value, &object) // anything but an object has no members
		}
		if text := read(value); text != "" {
			return text
		}
	}
	return ""
}

func plainText(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	return strings.ToLower(strings.TrimSpace(text))
}

// secondsText returns a positive number, with or without the unit of seconds.
func secondsText(value json.RawMessage) string {
	text := strings.TrimSpace(strings.TrimSuffix(plainText(value), "s"))
	if n, err := strconv.ParseFloat(text, 64); err != nil || n <= 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return ""
	}
	return text
}

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

// usual returns what the model makes of a request that leaves it open. A change or continuation is as long as its source.
func (m VideoModel) usual(vendor Footage, shape VideoShape) Footage {
	if shape.Has(SourceVideo) || shape.Has(ExtendVideo) {
		return Footage{}
	}
	return Footage{
		Seconds:    oneOf(m.Seconds, cmp.Or(m.UsualSeconds, vendor.Seconds)),
		Resolution: oneOf(m.Resolutions, cmp.Or(m.UsualResolution, vendor.Resolution)),
	}
}

// oneOf returns the word if the list has it, otherwise the first word of the list.
func oneOf(known []string, word string) string {
	if word == "" || len(known) == 0 || takesAny(known) || slices.Contains(known, word) {
		return word
	}
	return known[0]
}

// Complete returns the request as it is sent to an upstream model at a channel of the vendor, and its footage: with the model's
// usual length and resolution if the caller has none and the model has fields for them.
func (v Vendor) Complete(c Channel, model string, req VideoRequest) (VideoRequest, Footage) {
	shape, requested := req.Shape(), req.Footage().Or(v.paths(c, model).Footage(req))
	known, ok := v.VideoModel(c, model)
	usual := known.usual(v.VideoUsual, shape)
	if !ok {
		return req, requested.Or(usual)
	}
	if known.Resolutions == nil && takesAny(known.Sizes) { // the model reads only the ratio of a size
		requested.Resolution = cmp.Or(known.UsualResolution, requested.Resolution)
	}
	fuller := req
	if requested.Seconds == "" && slices.Contains(known.Seconds, usual.Seconds) {
		fuller.Seconds = usual.Seconds
	}
	if requested.Resolution == "" && req.Size == "" && slices.Contains(known.Resolutions, usual.Resolution) {
		fuller.Resolution = usual.Resolution
	}
	if v.CheckVideo(c, model, fuller.Shape()) == nil {
		req = fuller
	}
	return req, requested.Or(usual)
}

// paths returns the vendor's paths and those of the channel's fields for a hosted model.
func (v Vendor) paths(c Channel, model string) VideoPaths {
	paths := v.VideoPaths
	if !v.NamesFields {
		return paths
	}
	fields := c.FieldsOf(model)
	for name, list := range map[string]*[]string{
		"seconds": &paths.Seconds, "resolution": &paths.Resolutions, "size": &paths.Resolutions,
		"generate_audio": &paths.Audio,
	} {
		if own := fields[name].Name; own != "" {
			*list = append([]string{own}, *list...)
		}
	}
	return paths
}
