package runway

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// create writes a create, after its large inputs were uploaded.
func (v *Videos) create(ctx context.Context, to providers.Target, req providers.VideoRequest) (path string, body []byte, err error) {
	known, _ := modelNamed(to.Model)
	shape := req.Shape()
	if fault := known.Check(shape); fault != nil {
		return "", nil, fault
	}
	if fault := known.refuse(shape); fault != nil {
		return "", nil, fault
	}
	at, members := routeOf(shape), upstream.Members{"model": to.Model}
	fields, err := req.Parameters()
	if err != nil {
		return "", nil, err
	}
	if fault := known.frame(at, shape, fields, members); fault != nil {
		return "", nil, fault
	}
	if err := known.words(req, fields, members); err != nil {
		return "", nil, err
	}
	place := func(input providers.Media) (string, error) { return v.place(ctx, to, input) }
	if err := known.inputs(place, req, members); err != nil {
		return "", nil, err
	}
	body, err = upstream.Fields(fields, members)
	return string(at), body, err
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
		return providers.InvalidField("image", "The upstream takes no 'image' beside 'video'.")
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

// frame writes the size: "ratio" in pixels or as a word, "resolution" as a word. fields are the caller's own.
func (m model) frame(at route, shape providers.VideoShape, fields map[string]json.RawMessage, members upstream.Members) *providers.Fault {
	frame, fault := m.in(at).Frame(shape)
	if fault != nil {
		return fault
	}
	ratio, name := cmp.Or(strings.Replace(frame.Size, "x", ":", 1), frame.AspectRatio), "ratio"
	if m.outpaint {
		name = "targetAspectRatio"
	}
	if m.auto && at == fromImage && frame.Resolution != "" {
		ratio, frame.Resolution = "auto_"+frame.Resolution, ""
	}
	if fields["ratio"] == nil {
		ratio = cmp.Or(ratio, m.ratio)
	}
	members.Words(map[string]string{name: ratio, "resolution": frame.Resolution})
	return nil
}

// words writes the prompt, the length and the other fields of the request.
func (m model) words(req providers.VideoRequest, fields map[string]json.RawMessage, members upstream.Members) error {
	seconds, err := upstream.WholeSeconds(req.Seconds)
	if err != nil {
		return err
	}
	if fields["duration"] == nil {
		seconds = cmp.Or(seconds, m.seconds)
	}
	members.Number("duration", seconds)
	members.Words(map[string]string{"promptText": req.Prompt, "negativePrompt": req.NegativePrompt})
	members.Seed(req)
	members.Sound("audio", req, m.VideoModel)
	return nil
}

// inputs writes the inputs. place returns the location of an input.
func (m model) inputs(place func(providers.Media) (string, error), req providers.VideoRequest, members upstream.Members) error {
	var images, references, sounds []map[string]string
	for _, input := range req.Inputs {
		uri, err := place(input)
		if err != nil {
			return err
		}
		switch input.Role {
		case providers.FirstFrame:
			images = append(images, map[string]string{"uri": uri, "position": "first"})
			members["promptImage"] = images
		case providers.LastFrame:
			images = append(images, map[string]string{"uri": uri, "position": "last"})
			members["promptImage"] = images
		case providers.Reference:
			references = append(references, map[string]string{"uri": uri})
			members["references"] = references
		case providers.SourceAudio:
			sounds = append(sounds, map[string]string{"type": "audio", "uri": uri})
			members["referenceAudio"] = sounds
		case providers.SourceVideo, providers.ExtendVideo:
			members[m.video] = uri
			if input.Role == providers.ExtendVideo {
				members["mode"] = "extend"
			} else if m.modes {
				members["mode"] = "edit"
			}
		}
	}
	return nil
}
