package runway

import (
	"cmp"
	"context"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// create writes a create, after its large inputs were uploaded.
func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	known, _ := modelNamed(to.Model)
	d := upstream.NewDraft(req, to.Model, known.VideoModel, RefuseVideo)
	at := routeOf(req.Shape())
	known.frame(d, at, req.Shape())
	seconds := d.Frame.Seconds
	if d.Own["duration"] == nil {
		seconds = cmp.Or(seconds, known.seconds)
	}
	d.Number("duration", seconds)
	d.Words(map[string]string{"model": to.Model, "promptText": req.Prompt, "negativePrompt": req.NegativePrompt})
	d.Seed(req)
	d.Sound("audio", req, known.VideoModel)
	known.inputs(d, req, func(input providers.Media) (string, error) { return v.place(ctx, to, input) })
	return d.Create(string(at), 0)
}

// routeOf returns the route of a create: references use the route from text.
func routeOf(shape providers.VideoShape) route {
	at := fromText
	for _, input := range shape.Inputs {
		switch input.Role {
		case providers.SourceVideo, providers.ExtendVideo:
			return fromVideo
		case providers.FirstFrame, providers.LastFrame:
			at = fromImage
		}
	}
	return at
}

// RefuseVideo refuses a request that its route does not accept.
func RefuseVideo(model string, shape providers.VideoShape, _ providers.Frame) *providers.Fault {
	known, _ := modelNamed(model)
	return known.refuse(shape)
}

func (m model) refuse(shape providers.VideoShape) *providers.Fault {
	at := routeOf(shape)
	switch {
	case at == fromText && m.textless && shape.Prompt == 0 && len(shape.Inputs) == 0:
		return providers.InvalidField("prompt", "The upstream needs a 'prompt' where there is no image.")
	case at == fromVideo && (shape.Has(providers.FirstFrame) || shape.Has(providers.LastFrame)):
		return providers.InvalidField("image", "The upstream does not accept 'image' together with 'video'.")
	case shape.Has(providers.SourceVideo) && shape.Has(providers.ExtendVideo):
		return providers.InvalidField("video", "The upstream takes one 'video'.")
	}
	_, fault := m.in(at).Frame(shape)
	return fault
}

// in returns what the model accepts on a route.
func (m model) in(at route) providers.VideoModel {
	table := m.VideoModel
	if only, ok := m.on[at]; ok {
		table.Sizes, table.AspectRatios, table.Resolutions = only.sizes, only.ratios, only.resolutions
	}
	return table
}

// frame writes the size: "ratio" in pixels or as a word, "resolution" as a word.
func (m model) frame(d *upstream.Draft, at route, shape providers.VideoShape) {
	frame, _ := m.in(at).Frame(shape) // was checked
	ratio, name := cmp.Or(strings.Replace(frame.Size, "x", ":", 1), frame.AspectRatio), "ratio"
	if m.outpaint {
		name = "targetAspectRatio"
	}
	if m.auto && at == fromImage && frame.Resolution != "" {
		ratio, frame.Resolution = "auto_"+frame.Resolution, ""
	}
	if d.Own["ratio"] == nil {
		ratio = cmp.Or(ratio, m.ratio)
	}
	d.Words(map[string]string{name: ratio, "resolution": frame.Resolution})
}

// inputs writes the inputs. place returns the location of an input.
func (m model) inputs(d *upstream.Draft, req providers.VideoRequest, place func(providers.Media) (string, error)) {
	var images, references, sounds []map[string]string
	for _, input := range req.Inputs {
		if d.Err() != nil {
			return
		}
		uri, err := place(input)
		d.Refuse(err)
		switch input.Role {
		case providers.FirstFrame:
			images = append(images, map[string]string{"uri": uri, "position": "first"})
			d.Members["promptImage"] = images
		case providers.LastFrame:
			images = append(images, map[string]string{"uri": uri, "position": "last"})
			d.Members["promptImage"] = images
		case providers.Reference:
			references = append(references, map[string]string{"uri": uri})
			d.Members["references"] = references
		case providers.SourceAudio:
			sounds = append(sounds, map[string]string{"type": "audio", "uri": uri})
			d.Members["referenceAudio"] = sounds
		case providers.SourceVideo, providers.ExtendVideo:
			d.Members[m.video] = uri
			if input.Role == providers.ExtendVideo {
				d.Members["mode"] = "extend"
			} else if m.modes {
				d.Members["mode"] = "edit"
			}
		}
	}
}
