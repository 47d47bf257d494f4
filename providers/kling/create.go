package kling

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const fullHD = "1080p"

// checked is a checked request in the terms that both APIs share.
type checked struct {
	providers.VideoRequest

	d          *upstream.Draft
	model      string
	frames     map[providers.InputRole]string // of first, last frame and source video
	references []string
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	legacy := speaksLegacy(to)
	if _, known := VideoModels(to.Model); legacy && known && !legacyName(to.Model) {
		return upstream.JobRequest{}, &providers.Fault{
			Kind: providers.ModelNotFound, Accepted: providers.NotAccepted,
			Message: "The upstream serves this model only to API keys; with an access key and its secret, use the names kling-v….",
		}
	}
	w := checked{
		VideoRequest: req, model: to.Model, frames: make(map[providers.InputRole]string),
		d: upstream.NewDraft(req, to.Model, modelOf(to.Model, legacy), RefuseVideo, "callback_url"),
	}
	for _, input := range req.Inputs {
		text := w.d.Base64(ctx, input) // the vendor accepts no "data:" prefix
		if input.Role == providers.Reference {
			w.references = append(w.references, text)
			continue
		}
		w.frames[input.Role] = text
	}
	if legacy {
		return w.legacyCreate()
	}
	return w.newCreate()
}

func (w *checked) has(role providers.InputRole) bool { return len(w.Of(role)) > 0 }

// framed reports whether the first frame, or the video to change, decides the video's shape.
func (w *checked) framed() bool { return w.has(providers.FirstFrame) || w.has(providers.SourceVideo) }

// RefuseVideo refuses combinations that the vendor does not accept, and those of which it would ignore a part.
func RefuseVideo(model string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	old := slices.Contains([]string{"kling-2.6", "kling-v2-6", "kling-2.5-turbo", "kling-v2-5-turbo"}, model)
	edit, first, last := shape.Has(providers.SourceVideo), shape.Has(providers.FirstFrame), shape.Has(providers.LastFrame)
	sound := shape.GenerateAudio != nil && *shape.GenerateAudio
	plainO1 := (model == "kling-o1" || model == "kling-video-o1") && !last && !shape.Has(providers.Reference) && !edit
	seconds := frame.Seconds
	switch {
	case old && frame.Resolution != fullHD && (sound || last):
		return providers.InvalidField("resolution",
			"The upstream makes sound, and a last frame, with this model only in 1080p: 'resolution' must be 1080p.")
	case edit && (first || last):
		return providers.InvalidField("video", "The upstream does not accept frames together with a 'video' to change.")
	case edit && seconds > 0:
		return providers.InvalidField("seconds", "The upstream keeps the source video's length: 'seconds' cannot be given.")
	case edit && sound:
		return providers.InvalidField("generate_audio", "The upstream makes no sound for a video to change: 'generate_audio' cannot be true.")
	case plainO1 && seconds != 0 && seconds != 5 && seconds != 10:
		return providers.InvalidField("seconds", "With this model 'seconds' must be 5 or 10 for a video from a text or a first frame.")
	case frame.AspectRatio != "" && (first || edit):
		return providers.InvalidField(shape.RatioField(),
			"The video has the shape of its first frame: the upstream does not accept '%s' with it, but accepts 'resolution'.", shape.RatioField())
	}
	return nil
}

// newCreate writes the create of the API with the model in the path. That API ignores a member at a wrong level and bills the job
// nevertheless. So newCreate moves every member of settings and options to its level.
func (w *checked) newCreate() (upstream.JobRequest, error) {
	settings := w.object("settings", "resolution", "aspect_ratio", "duration", "audio", "multi_shot", "character_orientation")
	options := w.object("options", "watermark_info", "external_task_id")
	if options["callback_url"] != nil {
		w.d.Refuse(providers.InvalidField("options", "The gateway polls the job itself: 'callback_url' cannot be given."))
	}
	if w.IdempotencyKey != "" {
		options["external_task_id"] = w.IdempotencyKey
	}
	kind := w.contents()
	ratio := w.d.Frame.AspectRatio
	if kind == omniKind && ratio == "" && !w.framed() && settings["aspect_ratio"] == nil {
		ratio = "16:9" // the default on other routes; required here
	}
	settings.Words(map[string]string{"resolution": w.d.Frame.Resolution, "aspect_ratio": ratio})
	settings.Number("duration", w.d.Frame.Seconds)
	if w.GenerateAudio != nil && modelOf(w.model, false).Audio == providers.AudioOption {
		settings["audio"] = map[bool]string{false: "off", true: "native"}[*w.GenerateAudio]
	}
	w.d.Members["settings"], w.d.Members["options"] = settings, options
	create, err := w.d.Create("/"+kind+"/"+url.PathEscape(w.model), 0)
	create.Own = map[string]string{}
	return create, err
}

// The routes of the API with the model in the path.
const (
	textKind  = "text-to-video"
	imageKind = "image-to-video"
	omniKind  = "omni-video"
)

type part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"`
}

// contents writes prompt and inputs, before the caller's own contents, and returns the route for them.
func (w *checked) contents() (kind string) {
	var own []json.RawMessage
	if given := w.d.Own["contents"]; given != nil && json.Unmarshal(given, &own) != nil {
		w.d.Refuse(providers.InvalidField("contents", "The upstream's own 'contents' is a list."))
	}
	if len(w.Inputs)+len(own) == 0 && !omni(w.model) {
		w.d.Members["prompt"] = w.Prompt
		return textKind
	}
	parts := []any{part{Type: "prompt", Text: w.Prompt}}
	kind = imageKind
	for _, role := range [...]struct {
		role providers.InputRole
		word string
	}{{providers.FirstFrame, "first_frame"}, {providers.LastFrame, "last_frame"}, {providers.SourceVideo, "base_video"}} {
		if text, ok := w.frames[role.role]; ok {
			parts = append(parts, part{Type: role.word, URL: text})
		}
	}
	for _, text := range w.references {
		parts = append(parts, part{Type: "refer_image", URL: text})
	}
	if len(w.references) > 0 || w.has(providers.SourceVideo) || omni(w.model) || len(own) > 0 &&
		modelOf(w.model, false).Takes(providers.Reference) {
		kind = omniKind
	}
	for _, one := range own {
		parts = append(parts, one)
	}
	w.d.Members["contents"] = parts
	delete(w.d.Own, "prompt")
	return kind
}

// object returns the object of a name from the caller's parameters, with its members.
func (w *checked) object(name string, members ...string) upstream.Members {
	own, into := w.d.Object(name), make(upstream.Members)
	for _, member := range members {
		if value, given := w.d.Own[member]; given {
			into[member] = value
			delete(w.d.Own, member)
		}
	}
	into.Under(own)
	return into
}
