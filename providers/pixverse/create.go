package pixverse

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxFile bounds a picture in bytes, the others are those of prompts in characters and of pictures.
	maxFile                               = 20 << 20
	maxPrompt, maxLongPrompt              = 2048, 5000
	maxReferences, maxManyReferences      = 3, 7
	longSeconds, oldLongSeconds, nameSize = 10, 8, 30
	fullHD                                = "1080p"
)

// The values for members that the vendor requires, if the caller leaves them open.
const (
	usualSeconds = 5
	usualQuality = "540p"
	usualRatio   = "16:9"
)

// mode is the path of a create, which depends on its inputs.
type mode string

const (
	fromText       mode = "/video/text/generate"
	fromImage      mode = "/video/img/generate"
	fromFrames     mode = "/video/transition/generate"
	fromReferences mode = "/video/fusion/generate"
	fromVideo      mode = "/video/extend/generate"
)

// VideoModels is the table of the vendor's models.
func VideoModels(name string) (providers.VideoModel, bool) {
	table := providers.VideoModel{
		Seconds: []string{"5", "8"}, AspectRatios: []string{"16:9", "4:3", "1:1", "3:4", "9:16"},
		Resolutions: []string{"360p", "540p", "720p", fullHD},
		MaxPrompt:   maxPrompt, NeedsPrompt: true, Seed: true, Apart: true,
		Inputs: append(providers.Frames(providers.VideoInput{MaxBytes: maxFile}),
			providers.VideoInput{Role: providers.ExtendVideo, LinksOnly: true}),
	}
	known, references := true, 0
	switch name {
	case "v6", "c1":
		table.Seconds, table.AspectRatios = upstream.SecondsFrom(1, 15), append(table.AspectRatios, "2:3", "3:2", "21:9")
		table.MaxPrompt, table.Audio, references = maxLongPrompt, providers.AudioOption, maxManyReferences
	case "v5.6", "v5.5":
		table.Seconds, table.Audio, references = append(table.Seconds, strconv.Itoa(longSeconds)), providers.AudioOption, maxManyReferences
	case "v5", "v4.5":
		references = maxReferences
	case "v4", "v3.5":
	default:
		known, table, references = false, table.Open(), maxManyReferences
		table.Audio = providers.AudioOption
	}
	if references > 0 {
		table.Inputs = append(table.Inputs, providers.VideoInput{Role: providers.Reference, Max: references, MaxBytes: maxFile})
	}
	return table, known
}

// plan is a create without the ids of its inputs.
type plan struct {
	*upstream.Draft
	mode mode
	// names are those of the references in the prompt that are not used yet.
	names []string
}

// planOf checks and plans a create. Nothing is sent before.
func planOf(model string, req providers.VideoRequest) *plan {
	at := modeOf(req.Shape())
	table := in(model, at)
	p := &plan{Draft: upstream.NewDraft(req, model, table, RefuseVideo), mode: at}
	if at == fromReferences {
		p.readNames(req)
	}
	p.Members["model"], p.Members["prompt"] = model, req.Prompt
	set := func(name string, given bool, value, usual any) {
		switch {
		case given:
			p.Members[name] = value
		case p.Own[name] == nil:
			p.Members[name] = usual
		}
	}
	set("duration", p.Frame.Seconds > 0, p.Frame.Seconds, usualSeconds)
	set("quality", p.Frame.Resolution != "", p.Frame.Resolution, usualQuality)
	if at.wide() {
		set("aspect_ratio", p.Frame.AspectRatio != "", p.Frame.AspectRatio, usualRatio)
	}
	p.Seed(req)
	p.Sound("generate_audio_switch", req, table)
	return p
}

// modeOf returns the mode of a create.
func modeOf(shape providers.VideoShape) mode {
	return upstream.Modes[mode]{Text: fromText, Image: fromImage, Frames: fromFrames, References: fromReferences, Video: fromVideo}.Of(shape)
}

// named finds the names of references in a prompt.
var named = regexp.MustCompile(`@([^\s@]+)`)

// wide reports whether a mode has a ratio. In the others the video has that of its picture.
func (m mode) wide() bool { return m == fromText || m == fromReferences }

// in returns what a model accepts in one of its modes.
func in(model string, at mode) providers.VideoModel {
	table, _ := VideoModels(model)
	if !at.wide() {
		table.AspectRatios = nil
	}
	if at == fromFrames || at == fromVideo {
		table.MaxPrompt = maxPrompt
	}
	return table
}

// RefuseVideo refuses combinations that the vendor does not accept, and what a model does not make in the mode of a create.
func RefuseVideo(model string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	at := modeOf(shape)
	frame, fault := in(model, at).Accept(shape)
	newer := model == "v5.5" || model == "v5.6"
	switch {
	case fault != nil:
		return fault
	case at == fromVideo && len(shape.Inputs) > 1:
		return providers.InvalidField("video", "The upstream accepts 'video' only without other inputs.")
	case frame.Resolution == fullHD && (newer && frame.Seconds == longSeconds || model == "v3.5" && frame.Seconds == oldLongSeconds):
		return providers.InvalidField("seconds", "The upstream does not support 'seconds' of %d in %s with this model.", frame.Seconds, fullHD)
	}
	return nil
}

// readNames reads the names of the references, which the prompt contains.
func (p *plan) readNames(req providers.VideoRequest) {
	for _, match := range named.FindAllStringSubmatch(req.Prompt, -1) {
		if !slices.Contains(p.names, match[1]) {
			p.names = append(p.names, match[1])
		}
	}
	tooLong := slices.ContainsFunc(p.names, func(name string) bool { return len(name) > nameSize })
	if tooLong || len(p.names) != len(req.Of(providers.Reference)) {
		p.Refuse(providers.InvalidField("prompt", "The upstream requires that the prompt names each of the 'reference_images', in their order, "+
			"as in \"@cat looks at @dog \": the prompt names %d (%s) for %d.", len(p.names), strings.Join(p.names, ", "),
			len(req.Of(providers.Reference))))
	}
}

// put adds the id of an input to the create.
func (p *plan) put(role providers.InputRole, id json.Number) {
	switch {
	case role == providers.ExtendVideo:
		p.Members["video_media_id"] = id
	case role == providers.Reference:
		list, _ := p.Members["image_references"].([]map[string]any)
		p.Members["image_references"] = append(list, map[string]any{"type": "subject", "img_id": id, "ref_name": p.names[0]})
		p.names = p.names[1:]
	case role == providers.LastFrame:
		p.Members["last_frame_img"] = id
	case p.mode == fromFrames:
		p.Members["first_frame_img"] = id
	default:
		p.Members["img_id"] = id
	}
}
