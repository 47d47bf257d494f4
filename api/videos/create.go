package videos

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"

	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/workflows/tasks"
)

const (
	// maxEchoed bounds, in bytes, the fields that every answer about a task repeats: the prompt, and the metadata. No vendor accepts a prompt
	// half as long. An upstream may repeat them too, and its answers must stay within the adapters' limit. A job with an unreadable answer
	// costs money and its result is lost.
	maxEchoed = 128 << 10
)

// dialect is a format of creates.
type dialect struct {
	format providers.Format
	// names are the format's names of fields that channels refuse, by those of providers.VideoModel.Check, if they differ.
	names map[string]string
	// bare: a create needs neither a prompt nor an image.
	bare bool
}

func dialectOf(format providers.Format) dialect {
	return dialect{format, map[providers.Format]map[string]string{
		providers.Generic: {"seconds": "duration"},
		providers.OpenAI:  {"image": "input_reference", "width": "size"},
		providers.VendorC: {"seconds": "frames", "image": "image_urls"},
		providers.Gemini: {
			"seconds": "durationSeconds", "aspect_ratio": "aspectRatio", "negative_prompt": "negativePrompt", "generate_audio": "generateAudio",
			"n": "sampleCount", "last_image": "lastFrame", "reference_images": "referenceImages",
		},
	}[format], format == providers.VendorC} // a req_key may suffice
}

// fault returns a fault with the format's name of the field.
func (d dialect) fault(fault *providers.Fault) *providers.Fault {
	name, other := d.names[fault.Param]
	if !other {
		return fault
	}
	return providers.InvalidField(name, "%s", strings.ReplaceAll(fault.Message, "'"+fault.Param+"'", "'"+name+"'"))
}

// creator creates the tasks of canonical requests. It completes a request, checks that a channel supports it, starts the task, and finds
// repeats.
type creator struct {
	tasks  apitasks.Tasks
	router *router.Router
	calls  *calls.Calls
	checks fieldChecks
	// defaultModel is the model of requests without one; "" refuses them.
	defaultModel string
}

// create returns the handler of creates: read reads the body into a canonical request, and show renders the task.
func (c *creator) create(
	in dialect, read func(x *edge.Request, r *http.Request) (providers.VideoRequest, work, error),
	show func(x *edge.Request, task tasks.Task) any,
) edge.Handler {
	return c.calls.Charged(func(x *edge.Request, r *http.Request, ch *calls.Charge) error {
		req, on, err := read(x, r)
		if err != nil {
			return err
		}
		task, err := c.begin(x, r, ch, in, req, on)
		if err != nil {
			return err
		}
		return x.JSON(show(x, task))
	})
}

// complete merges the fields of other formats and the metadata, and sets the model. bare: neither a prompt nor an image is needed.
func (c *creator) complete(x *edge.Request, req *providers.VideoRequest, bare bool) error {
	if err := c.checks.takeFields(req); err != nil {
		return err
	}
	req.Model = cmp.Or(req.Model, c.defaultModel)
	if req.Model == "" {
		return providers.InvalidField("model", "Invalid request: 'model' is required.")
	}
	if err := calls.CheckModel(req.Model); err != nil {
		return err
	}
	if public := c.router.Public(req.Model); public != req.Model {
		req.Alias, req.Model = req.Model, public
	}
	if err := c.checks.readMetadata(req); err != nil {
		return err
	}
	x.Outcome.Model = req.Model
	switch {
	case req.Prompt == "" && len(req.Inputs) == 0 && !bare:
		return noPrompt()
	case len(req.Prompt) > maxEchoed:
		return tooLong("prompt")
	case len(req.Metadata) > maxEchoed:
		return tooLong("metadata")
	}
	return nil
}

func noPrompt() *providers.Fault {
	return providers.InvalidField("prompt", "Invalid request: a video requires a 'prompt' or an image.")
}

func tooLong(name string) *providers.Fault {
	return providers.InvalidField(name, "Invalid request: '%s' is longer than %d KiB.", name, maxEchoed>>10)
}

// start starts the task of a canonical request if its caller may use the model and a channel supports the request.
func (c *creator) start(x *edge.Request, r *http.Request, ch *calls.Charge, in dialect, req providers.VideoRequest) (tasks.Task, error) {
	create, err := apitasks.NewCreate(x, r, in.format, req)
	if err != nil {
		return tasks.Task{}, err
	}
	err = c.forbidden(x, req)
	if fault := sendsResults(req); err == nil && fault != nil {
		err = fault
	}
	if err == nil {
		err = c.served(x, in, req)
	}
	if err == nil { // it may have been spent on the task of an equal create
		if err = ch.CheckBudget(r.Context()); err != nil && x.Outcome.Refused != edge.LimitBudget {
			return tasks.Task{}, err
		}
	}
	return apitasks.Create(x, r, c.tasks, create, err)
}

// sendsResults refuses parameters by which a vendor would send the result, or events, to an address of the client's choice.
func sendsResults(req providers.VideoRequest) *providers.Fault {
	for _, parameters := range []json.RawMessage{req.Metadata, req.Extra} {
		if name := addressIn(parameters, maxParameterDepth); name != "" {
			return providers.InvalidField(name, "The gateway polls the job and stores its result itself: '%s' is not permitted.", name)
		}
	}
	return nil
}

// maxParameterDepth is the greatest depth of vendors' objects with such a parameter.
const maxParameterDepth = 3

// addressIn returns the name of the first such parameter in an object, "" for none.
func addressIn(object json.RawMessage, depth int) string {
	var members map[string]json.RawMessage
	if depth == 0 || len(object) == 0 || json.Unmarshal(object, &members) != nil {
		return ""
	}
	for name, value := range members {
		switch strings.ReplaceAll(strings.ToLower(name), "_", "") {
		case "storageuri", "outputstorageuri", "pubsubtopic", "webhookconfig", "callbackurl", "webhookurl", "webhook", "webhookeventsfilter",
			"notifyhook":
			if string(value) != "null" {
				return name
			}
		}
		if found := addressIn(value, depth-1); found != "" {
			return found
		}
	}
	return ""
}

func (c *creator) forbidden(x *edge.Request, req providers.VideoRequest) error {
	for _, parameters := range []json.RawMessage{req.Extra, req.Metadata} {
		if err := c.calls.Forbidden(x.Caller.Group, parameters); err != nil {
			return err
		}
	}
	return nil
}

// served returns nil if the caller may use the model and a channel supports the request, if its circuit is open too, and else the reason.
func (c *creator) served(x *edge.Request, in dialect, req providers.VideoRequest) error {
	shape := req.Shape()
	pick := router.Request{
		Group: x.Caller.Group, Model: req.Model, Endpoint: providers.Endpoint{Operation: providers.VideoTask}, Several: req.N > 1, Video: &shape,
	}
	if req.RemixOf != "" { // the upstream of the source decides what it accepts
		pick.Video = nil
	}
	channels := c.router
	switch {
	case !x.Caller.Allows(req.Model):
		return calls.ModelNotFound(req.Named())
	case channels.Serves(pick):
		return nil
	}
	if fault := channels.Refusal(pick); fault != nil {
		return in.fault(fault)
	}
	pick.Several = false
	if fault := channels.Refusal(pick); fault != nil {
		return in.fault(fault)
	}
	if channels.Serves(pick) {
		return in.fault(providers.InvalidField("n", "Invalid request: 'n' above 1 is not possible with this model."))
	}
	return calls.ModelNotFound(req.Named())
}
