package gemini

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/providers"
)

// interactionsPath is the path of interactions, after a prefix of the format.
const interactionsPath = "/interactions"

// geminiInteraction is the body of an interaction, with the fields that the gateway reads. It is never filled.
type geminiInteraction struct {
	Model       string         `json:"model,omitempty" doc:"Model id. Alternatively, agent names an agent, which channels list like a model"`
	Agent       string         `json:"agent,omitempty"`
	Input       anyInput       `json:"input,omitzero" doc:"A text, a content, or an array of contents"`
	Background  bool           `json:"background,omitempty" doc:"True: the gateway answers immediately, and the client reads the interaction later. Required for a video"`
	Stream      bool           `json:"stream,omitempty"`
	Store       bool           `json:"store,omitempty"`
	Previous    string         `json:"previous_interaction_id,omitempty"`
	Response    objectOrMany   `json:"response_format,omitzero" doc:"The type video makes a video; it accepts aspect_ratio, resolution, duration (6s) and delivery (uri)"`
	Generation  map[string]any `json:"generation_config,omitempty"`
	WebhookConf map[string]any `json:"webhook_config,omitempty" doc:"For a video: uris with one address"`
}

type anyInput = body.Either[string, objectOrMany]

type objectOrMany = body.Either[map[string]any, []map[string]any]

// InteractionsTag is the category of interactions in the document.
const InteractionsTag = "Interactions"

// Interactions serves interactions without video. Those in the background are tasks, others are relayed.
type Interactions struct {
	calls *calls.Calls
	tasks *apitasks.Service // nil: there are none
}

// NewInteractions returns the interactions of a format.
func NewInteractions(c *calls.Calls, t *apitasks.Service) *Interactions { return &Interactions{c, t} }

// BeginVideo begins the video of a checked interaction; false for an interaction without video.
type BeginVideo func(x *edge.Request, r *http.Request, ch *calls.Charge, b *body.JSON) (taken bool, err error)

// Add adds the create of interactions below both prefixes of the format. begin begins those with video.
func (a *Interactions) Add(g *edge.Group, begin BeginVideo) {
	registry := g.OpenAPI().Components.Schemas
	check := body.NewChecker[geminiInteraction](registry, "generation_config.max_output_tokens")
	for _, under := range [...]struct{ prefix, suffix string }{{"/v1beta", ""}, {"/v1", "V1"}} {
		prefix, suffix := under.prefix, under.suffix
		g.With(edge.Access{Meter: edge.MeterCalls}).Handle(huma.Operation{ // the permission depends on the body
			OperationID: "createInteraction" + suffix, Method: http.MethodPost, Path: prefix + interactionsPath, Tags: []string{InteractionsTag},
			Summary: "Create an interaction, " + prefix,
			Description: "With background and a response_format of type video, the gateway makes a video task, at any vendor; " +
				"the token requires the permission video. Any other interaction reaches a Gemini upstream unchanged " +
				"and requires the permission relay. With background, it is a task too.",
			Parameters: []*huma.Param{
				edge.Parameter("header", "Idempotency-Key", "With background: a repeated create with the same key returns the first task"),
			},
			RequestBody: body.DeclareJSON[geminiInteraction](registry), Responses: calls.DeclareAnswer("The interaction, or its events", true),
		}, a.calls.Charged(func(x *edge.Request, r *http.Request, ch *calls.Charge) error {
			raw, err := x.ReadBody(r)
			if err != nil {
				return err
			}
			b, err := check.Check(raw)
			if err != nil {
				return err
			}
			if taken, err := begin(x, r, ch, b); taken || err != nil {
				return err
			}
			return a.relay(x, r, ch, b, check)
		}))
	}
}

// relay relays an interaction without video, or starts its task. The upstream's work after its answer is read at the upstream.
func (a *Interactions) relay(x *edge.Request, r *http.Request, ch *calls.Charge, b *body.JSON, check *body.Checker) error {
	if err := x.Permit(edge.RelayPermission); err != nil {
		return err
	}
	raw := b.Raw
	inBackground, err := a.requested(b)
	if err == nil && inBackground { // the gateway runs it itself
		b, err = check.Check(InteractionRequest(raw))
	}
	if err != nil {
		return err
	}
	call := calls.JSONCall(providers.Endpoint{Format: providers.Gemini, Operation: providers.Interactions}, b)
	switch agent := b.Text("agent"); {
	case call.Model == "":
		call.Model, call.ModelAt = agent, b.Span("agent")
	case agent != "" && !x.Caller.Allows(agent): // an agent uses its own models
		fault := calls.ModelNotFound(agent)
		fault.Param = "agent"
		return fault
	}
	call.Raw, call.Background = raw, b.Flag("background")
	call.Hosted = b.Text("agent") != ""
	call.Output = body.Whole(b.Value("generation_config").Get("max_output_tokens"))
	if err := a.continues(x, r, ch, b, call); err != nil {
		return err
	}
	if inBackground {
		call.Task = a.start
	}
	if ch.InBackground() {
		call.Events.Fault = func(fault *providers.Fault) []byte { return InteractionError(fault, 0) } // the worker numbers the events
	}
	return a.calls.Do(x, r, ch, call)
}

// Serve reads, cancels or deletes an interaction without video: a task, or a relayed interaction at its upstream.
func (a *Interactions) Serve(x *edge.Request, r *http.Request, do providers.StoredVerb, id string) error {
	if a.tasks.IsCall(id) {
		return a.serve(x, r, do, id)
	}
	stream := do == providers.StoredGet && r.URL.Query().Get("stream") == "true"
	return a.calls.Stored(x, r, providers.StoredRequest{Do: do, ID: id, Stream: stream}, "stream", "last_event_id", "include_input")
}
