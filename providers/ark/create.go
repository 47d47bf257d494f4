package ark

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// maxBody bounds a create in bytes.
	maxBody = 64 << 20
	// maxSeed is the largest seed; the least, -1, is a random one.
	maxSeed = 1<<31 - 1
)

// item is one of a create's contents. It has only the payload of its type.
type item struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	ImageURL *place `json:"image_url,omitempty"`
	VideoURL *place `json:"video_url,omitempty"`
	AudioURL *place `json:"audio_url,omitempty"`
	Role     string `json:"role,omitempty"`
}

type place struct {
	URL string `json:"url"`
}

func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (upstream.JobRequest, error) {
	table, _ := VideoModels(to.Model)
	d := upstream.NewDraft(req, to.Model, table, RefuseVideo, "callback_url")
	settings(d, to.Model, table, req)
	switch {
	case d.Own["content"] == nil:
		d.Members["content"] = contents(ctx, d, req)
	case req.Prompt != "" || len(req.Inputs) > 0:
		d.Refuse(providers.InvalidField("content", "The upstream's own 'content' cannot be combined with a prompt or inputs."))
	}
	if d.Own["safety_identifier"] == nil && req.IdempotencyKey != "" {
		d.Members["safety_identifier"] = identifier(req.IdempotencyKey)
	}
	return d.Create(tasksPath, maxBody)
}

// settings writes the members other than the content.
func settings(d *upstream.Draft, model string, table providers.VideoModel, req providers.VideoRequest) {
	d.Members["model"] = model
	if d.Frame.Seconds > 0 { // "frames" has precedence
		d.Reserve("frames")
	}
	d.Number("duration", d.Frame.Seconds)
	d.Words(map[string]string{"ratio": d.Frame.AspectRatio, "resolution": d.Frame.Resolution})
	d.Sound("generate_audio", req, table)
	d.Seed(req)
	if req.Seed != nil && (*req.Seed < -1 || *req.Seed > maxSeed) {
		d.Refuse(providers.InvalidField("seed", "The upstream takes a seed from -1 to %d.", maxSeed))
	}
	if !is25(family(model)) {
		return
	}
	switch {
	case len(req.Of(providers.SourceVideo)) > 0:
		d.Members["omni_reference_task_type"], d.Members["duration"], d.Members["ratio"] = "edit", -1, adaptive
	case len(req.Of(providers.ExtendVideo)) > 0:
		d.Members["omni_reference_task_type"], d.Members["ratio"] = "extend", adaptive
	case len(req.Of(providers.FirstFrame)) > 0:
		d.Members["ratio"] = adaptive
	}
}

// contents returns the prompt and the inputs with their roles.
func contents(ctx context.Context, d *upstream.Draft, req providers.VideoRequest) (items []item) {
	if req.Prompt != "" {
		items = append(items, item{Type: "text", Text: req.Prompt})
	}
	for _, input := range req.Inputs {
		at := &place{d.Text(ctx, input)}
		one := item{Type: "image_url", ImageURL: at}
		switch input.Role {
		case providers.FirstFrame:
			one.Role = "first_frame"
		case providers.LastFrame:
			one.Role = "last_frame"
		case providers.Reference:
			one.Role = "reference_image"
		case providers.SourceVideo, providers.ExtendVideo:
			one = item{Type: "video_url", VideoURL: at, Role: "reference_video"}
		case providers.SourceAudio:
			one = item{Type: "audio_url", AudioURL: at, Role: "reference_audio"}
		}
		items = append(items, one)
	}
	if len(items) == 0 {
		d.Refuse(providers.InvalidField("prompt", "The upstream needs a 'prompt' or an input."))
	}
	return items
}

// RefuseVideo refuses combinations that the vendor does not accept. Seedance 2.5 refuses a fixed ratio only after minutes in the queue.
func RefuseVideo(model string, shape providers.VideoShape, frame providers.Frame) *providers.Fault {
	name, has := family(model), shape.Has
	framed, edit := has(providers.FirstFrame) || has(providers.LastFrame), has(providers.SourceVideo)
	video := edit || has(providers.ExtendVideo)
	switch fixed := frame.AspectRatio != "" && frame.AspectRatio != adaptive; {
	case framed && video:
		return providers.InvalidField("video", "The upstream does not accept 'video' together with 'image' or 'last_image'.")
	case framed && has(providers.SourceAudio):
		return providers.InvalidField("audio", "The upstream does not accept 'audio' together with 'image' or 'last_image'.")
	case edit && has(providers.ExtendVideo):
		return providers.InvalidField("video", "The upstream edits a 'video' or extends one, not both.")
	case strings.HasPrefix(name, "seedance-2-0") && has(providers.SourceAudio) && !video && !has(providers.Reference):
		return providers.InvalidField("audio", "This model accepts 'audio' only together with 'reference_images' or 'video'.")
	case is25(name) && (framed || video) && fixed:
		return providers.InvalidField(shape.RatioField(), "This model keeps the ratio of its frames and of a source video: '%s' cannot be given.",
			shape.RatioField())
	case is25(name) && edit && shape.Seconds != "":
		return providers.InvalidField("seconds", "This model keeps the source video's length: 'seconds' cannot be given.")
	case strings.HasPrefix(name, "seedance-1-0") && !framed && frame.AspectRatio == adaptive:
		return providers.InvalidField("aspect_ratio", "This model takes 'adaptive' only with an image.")
	}
	return nil
}

// identifier returns the safety_identifier of an attempt, at most 64 characters. The vendor's job contains it.
func identifier(attempt string) string {
	const digits = 40
	sum := sha256.Sum256([]byte(attempt))
	return "mr-" + hex.EncodeToString(sum[:])[:digits]
}

// named returns the safety_identifier by which a create can be looked up; "" if the client sent its own, which other jobs may have.
func named(req providers.VideoRequest) (string, error) {
	own, err := req.Parameters()
	if err != nil {
		return "", err
	}
	if _, given := own["safety_identifier"]; given || req.IdempotencyKey == "" {
		return "", nil
	}
	return identifier(req.IdempotencyKey), nil
}
