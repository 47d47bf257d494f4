package wan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	createPath = "/services/aigc/video-generation/video-synthesis"
	framesPath = "/services/aigc/image2video/video-synthesis"
	// maxSeed is the largest seed; Wan 3 accepts -1 for a random one.
	maxSeed = 1<<31 - 1
)

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	known, _ := familyOf(to.Model)
	d := upstream.NewDraft(req, to.Model, known.table, RefuseVideo)
	switch {
	case req.Prompt == "" && len(req.Inputs) == 0 && d.Own["media"] == nil && d.Own["input"] == nil:
		d.Refuse(providers.InvalidField("prompt", "The upstream needs a 'prompt' or an input."))
	case utf8.RuneCountInString(req.NegativePrompt) > maxNegative:
		d.Refuse(providers.InvalidField("negative_prompt", "The upstream takes %d characters of 'negative_prompt'.", maxNegative))
	}
	d.Members["model"] = to.Model
	merge(d, req, known.input(ctx, d, req), known.parameters(d, to.Model, req))
	path := createPath
	if known.form == framesForm {
		path = framesPath
	}
	create, err := d.Create(path, 0)
	create.Header = http.Header{"X-Dashscope-Async": {"enable"}}
	if bytes.Contains(create.Body, []byte(`"oss://`)) { // the vendor's own store of uploads
		create.Header["X-Dashscope-Ossresourceresolve"] = []string{"enable"}
	}
	create.Own = map[string]string{baseField: to.Channel.BaseURL}
	return create, err
}

func (f family) input(ctx context.Context, d *upstream.Draft, req providers.VideoRequest) upstream.Members {
	members := make(upstream.Members)
	members.Words(map[string]string{"prompt": req.Prompt, "negative_prompt": req.NegativePrompt})
	var media []map[string]string
	var references []string
	for _, input := range req.Inputs {
		text := d.Text(ctx, input)
		switch {
		case f.form == framesForm && input.Role == providers.FirstFrame:
			members["first_frame_url"] = text
		case f.form == framesForm && input.Role == providers.LastFrame:
			members["last_frame_url"] = text
		case f.form == imageForm && input.Role == providers.FirstFrame:
			members["img_url"] = text
		case input.Role == providers.SourceAudio && (f.form != mediaForm || !f.table.Takes(providers.FirstFrame)):
			members["audio_url"] = text
		case f.form == sizeForm:
			references = append(references, text)
			members["reference_urls"] = references
		default:
			media = append(media, map[string]string{"type": f.mediaType(input.Role), "url": text})
			members["media"] = media
		}
	}
	return members
}

func (f family) mediaType(role providers.InputRole) string {
	switch role {
	case providers.LastFrame:
		return "last_frame"
	case providers.Reference:
		return "reference_image"
	case providers.ExtendVideo:
		return "first_clip"
	case providers.SourceVideo:
		if f.table.Seconds == nil { // an edit, which has its source's length
			return "video"
		}
		return "reference_video"
	case providers.SourceAudio:
		if f.table.Takes(providers.Reference) {
			return "reference_audio"
		}
		return "driving_audio"
	default:
		return "first_frame"
	}
}

func (f family) parameters(d *upstream.Draft, model string, req providers.VideoRequest) upstream.Members {
	members, frame := make(upstream.Members), d.Frame
	members.Number("duration", cmp.Or(frame.Seconds, f.seconds))
	frame.Resolution = cmp.Or(frame.Resolution, f.resolution)
	if frame.Resolution != "" && f.form != sizeForm {
		members["resolution"] = strings.ToUpper(frame.Resolution)
	}
	if frame.AspectRatio != "" && f.form == mediaForm {
		members["ratio"] = frame.AspectRatio
	}
	if frame.Size != "" && f.form == sizeForm {
		members["size"] = strings.ReplaceAll(frame.Size, "x", "*")
	}
	members.Sound("audio", req, f.table)
	members.Seed(req)
	if req.Seed != nil {
		least := int64(0)
		if strings.HasPrefix(model, "wan3") {
			least = -1
		}
		if *req.Seed < least || *req.Seed > maxSeed {
			d.Refuse(providers.InvalidField("seed", "The upstream takes a seed from %d to %d.", least, maxSeed))
		}
	}
	if strings.HasPrefix(model, "happyhorse") {
		members["watermark"] = false // the vendor's default is true
	}
	return members
}

// RefuseVideo refuses combinations that the vendor does not accept.
func RefuseVideo(model string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	f, _ := familyOf(model)
	first, last, clip, sound := shape.Has(providers.FirstFrame), shape.Has(providers.LastFrame), shape.Has(providers.ExtendVideo),
		shape.Has(providers.SourceAudio)
	source, references := shape.Has(providers.SourceVideo), shape.Count(providers.Reference)+shape.Count(providers.SourceVideo)
	invalid := providers.InvalidField
	switch {
	case f.references > 0 && references > f.references:
		return invalid("reference_images", "This model takes %d 'reference_images', counting a 'video'.", f.references)
	case f.table.Apart && (first || last) && source:
		return invalid("video", "This model does not accept 'video' together with 'image' or 'last_image'.")
	case f.table.Apart && (first || last) && sound:
		return invalid("audio", "This model does not accept 'audio' together with 'image' or 'last_image'.")
	case sound && f.table.Audio == providers.AudioOption && shape.GenerateAudio != nil && !*shape.GenerateAudio:
		return invalid("generate_audio", "This model takes 'audio' only for a video with sound.")
	case f.form == framesForm && !last:
		return invalid("last_image", "This model needs an 'image' and a 'last_image'.")
	case f.form == imageForm && !first:
		return invalid("image", "This model needs an 'image'.")
	case f.table.Seconds == nil && !source:
		return invalid("video", "This model needs a 'video'.")
	}
	switch extends := f.table.Takes(providers.ExtendVideo); { // the video from an image of 2.7
	case extends && !first && !clip:
		return invalid("image", "This model needs an 'image', or a 'video' to continue.")
	case extends && first && clip:
		return invalid("video", "This model continues an 'image' or a 'video', not both.")
	case extends && clip && sound:
		return invalid("audio", "This model does not accept 'audio' together with a 'video'.")
	case extends:
	case strings.HasPrefix(model, "wan2.7-r2v") && source && frame.Seconds > maxFromVideo:
		return invalid("seconds", "This model makes %d seconds at most from a 'video'.", maxFromVideo)
	case strings.HasPrefix(model, "wan2.7-r2v") && references == 0:
		return invalid("reference_images", "This model needs 'reference_images' or a 'video'.")
	case first && f.references > 0 && frame.AspectRatio != "":
		return invalid("aspect_ratio", "This model keeps the ratio of the 'image': 'aspect_ratio' cannot be given.")
	}
	return nil
}

// maxFromVideo is the maximum length of a video that 2.7 makes from a video, in seconds.
const maxFromVideo = 10

// inputWords returns the vendor's parameters in its "input". All others are in its "parameters".
func inputWords() []string {
	return []string{
		"negative_prompt", "audio_url", "media", "template", "img_url", "first_frame_url", "last_frame_url", "reference_urls",
		"reference_video_urls",
	}
}

// merge writes input and parameters over the caller's own parameters, each at the vendor's level for it.
func merge(d *upstream.Draft, req providers.VideoRequest, input, parameters upstream.Members) {
	places := map[string]map[string]json.RawMessage{"input": {}, "parameters": {}}
	for name := range places {
		maps.Copy(places[name], d.Object(name))
		delete(d.Own, name)
	}
	for name, raw := range d.Own {
		place := "parameters"
		if slices.Contains(inputWords(), name) {
			place = "input"
		}
		places[place][name] = raw
	}
	clear(d.Own)
	if places["input"]["media"] != nil && input["media"] != nil {
		d.Refuse(providers.InvalidField("media", "The upstream's own 'media' cannot be combined with inputs."))
	}
	for place, ours := range map[string]upstream.Members{"input": input, "parameters": parameters} {
		for name := range ours {
			if places[place][name] != nil && overruled(name, req) {
				delete(ours, name)
			}
		}
		if ours.Under(places[place]); len(ours) > 0 {
			d.Members[place] = ours
		}
	}
}

// overruled reports whether a setting is the gateway's usual value for an open one. Then the caller's parameter counts.
func overruled(name string, req providers.VideoRequest) bool {
	switch name {
	case "duration":
		return req.Seconds == ""
	case "resolution":
		return req.Resolution == "" && req.Size == "" && req.Width == 0
	case "watermark":
		return true
	}
	return false
}
