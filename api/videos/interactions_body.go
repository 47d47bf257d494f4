package videos

import (
	"slices"
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/workflows/tasks"
)

func isVideo(b *body.JSON) bool { return videoFormat(b.Value("response_format")) != nil }

// videoFormat returns the response format of a video, nil if there is none. If there are several formats, each must be a video.
func videoFormat(format rawjson.Value) rawjson.Value {
	if format.IsArray() {
		var found rawjson.Value
		for _, one := range format.Items() {
			if found = videoFormat(one); found == nil {
				return nil
			}
		}
		return found
	}
	if !format.Get("type").Text().Is("video") {
		return nil
	}
	return format
}

// readInteraction reads an interaction that requests a video. Members that it does not know reach the vendor as its own parameters.
func (c fieldChecks) readInteraction(b *body.JSON) (req providers.VideoRequest, on work, err error) {
	refuse := func(field, why string) error {
		return providers.InvalidField(field, "Invalid request: '%s' %s.", field, why)
	}
	format := b.Value("response_format")
	switch {
	case b.Flag("stream"):
		return req, on, refuse("stream", "is not possible with a video; use a GET of the interaction with 'wait'")
	case string(b.Value("store")) == "false":
		return req, on, refuse("store", "must be true with 'background'")
	case format.Len() > 1:
		return req, on, refuse("response_format", "must be one video")
	}
	req.Model = b.Text("model")
	fields, err := readResponse(videoFormat(format))
	if err != nil {
		return req, on, err
	}
	var extra []byte
	task := readGeneration(b.Value("generation_config"), &fields, &extra)
	known := []string{
		"model", "input", "background", "stream", "store", "previous_interaction_id", "response_format", "response_modalities",
		"generation_config", "webhook_config",
	}
	for name, value := range b.Members() {
		if !slices.ContainsFunc(known, name.Is) && !value.Absent() {
			extra = body.AppendMember(extra, name, value)
		}
	}
	if req.WebhookURL, err = readWebhook(b.Value("webhook_config"), "webhook_config"); err != nil {
		return req, on, err
	}
	if err := c.takeNamed(&req, interactionDialect(), fields, extra); err != nil {
		return req, on, err
	}
	in := interactionInput{req: &req, task: task}
	if err := in.read(b.Value("input")); err != nil {
		return req, on, err
	}
	on, err = in.finish(b.Text("previous_interaction_id"))
	return req, on, err
}

// readResponse returns the fields in the response format of a video, as an object without its closing brace.
func readResponse(format rawjson.Value) (fields []byte, err error) {
	for key, value := range format.Members() {
		name := key.String()
		field, word := "response_format."+name, strings.ToLower(strings.TrimSpace(value.Text().String()))
		if value.Absent() {
			continue
		}
		if !value.IsText() && name != "duration" {
			return nil, providers.InvalidField(field, "Invalid request: '%s' must be a string.", field)
		}
		switch name {
		case "type":
		case "aspect_ratio", "resolution":
			fields = body.AppendMember(fields, key, value)
		case "duration":
			if value.IsText() {
				value = rawjson.Value(rawjson.Quote(strings.TrimSuffix(word, "s")))
			}
			fields = body.AppendMember(fields, []byte(`"seconds"`), value)
		case "delivery":
			if word != "uri" {
				return nil, providers.InvalidField(field, "Invalid request: '%s' must be uri: videos are read at their address.", field)
			}
		default:
			return nil, providers.InvalidField(field, "Invalid request: '%s' is not supported here.", field)
		}
	}
	return fields, nil
}

// readGeneration reads the configuration and returns the task for the input, "" for none. It adds the seed to the fields, and other members
// to the extra ones.
func readGeneration(config rawjson.Value, fields, extra *[]byte) (task string) {
	var rest []byte
	for name, value := range config.Members() {
		switch name.String() {
		case "seed":
			*fields = body.AppendMember(*fields, name, value)
		case "video_config":
			var others []byte
			for member, setting := range value.Members() {
				if member.Is("task") {
					task = setting.Text().String()
				} else {
					others = body.AppendMember(others, member, setting)
				}
			}
			if others != nil {
				rest = body.AppendMember(rest, name, append(others, '}'))
			}
		default:
			rest = body.AppendMember(rest, name, value)
		}
	}
	if rest != nil {
		*extra = body.AppendMember(*extra, []byte(`"generation_config"`), append(rest, '}'))
	}
	return task
}

// The tasks for the input.
const (
	taskField     = "generation_config.video_config.task"
	taskText      = "text_to_video"
	taskImage     = "image_to_video"
	taskReference = "reference_to_video"
	taskEdit      = "edit"
	taskExtend    = "extend"
)

type interactionInput struct {
	req    *providers.VideoRequest
	task   string
	images int
	// source is the file id of a video of this gateway in the input, "" for none.
	source string
}

// read reads an input: a text, a content, or a list of contents or of steps with contents.
func (in *interactionInput) read(input rawjson.Value) error {
	switch {
	case input.Absent():
		return nil
	case input.IsText():
		in.prompt(input.Text())
		return nil
	case input.IsArray():
		for _, item := range input.Items() {
			if err := in.read(item); err != nil {
				return err
			}
		}
		return nil
	case input.IsObject():
		return in.content(input)
	}
	return providers.InvalidField("input", "Invalid request: 'input' must be a text, a content, or an array of contents.")
}

func (in *interactionInput) prompt(text rawjson.Text) {
	if in.req.Prompt != "" && !text.Empty() {
		in.req.Prompt += "\n"
	}
	in.req.Prompt += text.String()
}

func (in *interactionInput) content(content rawjson.Value) error {
	switch kind := content.Get("type").Text().String(); kind {
	case "user_input":
		return in.read(content.Get("content"))
	case "text":
		in.prompt(content.Get("text").Text())
		return nil
	case "image":
		in.images++
		return in.media(providers.FirstFrame, content.Get("data"), content.Get("uri"))
	case "audio":
		return in.media(providers.SourceAudio, content.Get("data"), content.Get("uri"))
	case "video":
		if in.source = fileOf(content.Get("uri").Text().String()); in.source != "" {
			return nil
		}
		return in.media(providers.SourceVideo, content.Get("data"), content.Get("uri"))
	default:
		return providers.InvalidField("input", "Invalid request: 'input' contains %q, which cannot be used for a video; 'previous_interaction_id' continues an earlier one.", providers.Cut(kind, maxWord))
	}
}

// media adds an input from bytes in Base64 or an address.
func (in *interactionInput) media(role providers.InputRole, data, uri rawjson.Value) error {
	if data.Absent() {
		data = uri
	}
	input, err := newMedia(role, "input", data.Text().Decoded())
	if err != nil {
		return err
	}
	return addInput(in.req, "input", input)
}

// finish sets the roles of the inputs, according to the task.
func (in *interactionInput) finish(before string) (on work, err error) {
	wrong := func(why string) (work, error) {
		return work{}, providers.InvalidField(taskField, "Invalid request: '%s' %s.", taskField, why)
	}
	on = work{source: in.source, role: providers.SourceVideo}
	if before != "" {
		if !tasks.IsTaskID(before) {
			return on, providers.InvalidField("previous_interaction_id",
				"Invalid request: 'previous_interaction_id' is not an interaction that made a video here.")
		}
		if on.source != "" {
			return on, providers.InvalidField("previous_interaction_id",
				"Invalid request: 'previous_interaction_id' cannot be used with a video in 'input'.")
		}
		on.source = before
	}
	videos := len(in.req.Of(providers.SourceVideo))
	if on.source != "" {
		videos++
	}
	switch in.task {
	case "":
		if in.images > 1 {
			return wrong("must specify the use of several images: image_to_video or reference_to_video")
		}
	case taskText:
		if in.images+videos > 0 {
			return wrong("is text_to_video, but 'input' contains more than a text")
		}
	case taskImage:
		if in.images < 1 || in.images > 2 || videos > 0 {
			return wrong("is image_to_video, which requires the first image, or the first and the last")
		}
		if in.images == 2 {
			in.roleOf(1, providers.LastFrame)
		}
	case taskReference:
		for i := range in.images {
			in.roleOf(i, providers.Reference)
		}
	case taskEdit, taskExtend:
		if videos != 1 {
			return wrong("is " + in.task + ", which requires one video")
		}
		if in.task == taskExtend {
			on.role = providers.ExtendVideo
		}
	default:
		return wrong("must be text_to_video, image_to_video, reference_to_video, edit or extend")
	}
	return on, nil
}

func (in *interactionInput) roleOf(i int, role providers.InputRole) {
	inputs := in.req.Inputs
	for at := range inputs {
		if kind := inputs[at].Role; kind == providers.SourceVideo || kind == providers.SourceAudio {
			continue
		}
		if i--; i < 0 {
			inputs[at].Role = role
			return
		}
	}
}
