package fakegemini

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
)

// interactions are those that the vendor has stored. Shapes: googleapis/js-genai 3.1.0 (CreateModelInteraction, Interaction,
// InteractionSSEEvent); the order of a stream's events and [DONE]: ai.google.dev/gemini-api/docs/background-execution.
type interactions struct {
	mu    sync.Mutex
	byID  map[string]interaction
	order []string // ids, oldest first
}

// interaction is an Interaction, and the key of the project that has it.
type interaction struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Model    string            `json:"model"`
	Status   string            `json:"status"`
	Created  string            `json:"created,omitempty"`
	Updated  string            `json:"updated,omitempty"`
	Previous string            `json:"previous_interaction_id,omitempty"`
	Steps    []step            `json:"steps,omitempty"`
	Usage    *interactionUsage `json:"usage,omitempty"`

	key string
}

type step struct {
	Type    string `json:"type"`
	Content []text `json:"content,omitempty"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type interactionUsage struct {
	Input  int `json:"total_input_tokens"`
	Cached int `json:"total_cached_tokens"`
	Output int `json:"total_output_tokens"`
	Total  int `json:"total_tokens"`
}

// interactionRequest is a CreateModelInteraction.
type interactionRequest struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	System     string          `json:"system_instruction"`
	Background bool            `json:"background"`
	Store      *bool           `json:"store"`
	Stream     bool            `json:"stream"`
	Previous   string          `json:"previous_interaction_id"`
	Labels     map[string]any  `json:"labels"`
	Tools      []any           `json:"tools"`
	Safety     []any           `json:"safety_settings"`
	Format     any             `json:"response_format"`
	Modalities []string        `json:"response_modalities"`
	Tier       string          `json:"service_tier"`
	Generation map[string]any  `json:"generation_config"`
}

// mostInteractions bounds the store; the oldest goes first.
const mostInteractions = 1000

func serveInteractions(s *fake.Server, v *fake.Vendor, prefix string, stored *interactions) {
	handle := func(pattern, name string, parse func(*fake.Exchange) *fake.Problem, answer func(*fake.Exchange)) {
		s.Handle(pattern, fake.Operation{Vendor: v, Name: name, Parse: parse, Answer: answer})
	}
	handle("POST "+prefix+"/interactions", "interactions", stored.parse, stored.answer)
	one := func(answer func(x *fake.Exchange, found interaction)) func(*fake.Exchange) {
		return func(x *fake.Exchange) {
			found, ok := stored.find(x.HTTP.PathValue("id"), keyOf(x))
			if !ok {
				refusePath(x)
				return
			}
			x.Accept()
			answer(x, found)
		}
	}
	handle("GET "+prefix+"/interactions/{id}", "interactions.get", nil, one(func(x *fake.Exchange, found interaction) { x.JSON(http.StatusOK, found) }))
	handle("POST "+prefix+"/interactions/{id}/cancel", "interactions.cancel", nil, one(func(x *fake.Exchange, _ interaction) {
		googleapi.Refuse(x, *fake.Invalidf("", "The interaction is not a running background interaction."))
	}))
	handle("DELETE "+prefix+"/interactions/{id}", "interactions.delete", nil, one(func(x *fake.Exchange, found interaction) {
		stored.mu.Lock()
		delete(stored.byID, found.ID)
		stored.mu.Unlock()
		x.JSON(http.StatusOK, map[string]any{})
	}))
}

func keyOf(x *fake.Exchange) string {
	key, _ := googleapi.Key(x) // it was checked
	return key
}

// find returns an interaction of a project.
func (s *interactions) find(id, key string) (interaction, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.byID[id]
	return found, ok && found.key == key
}

func (s *interactions) add(made interaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[made.ID] = made
	if s.order = append(s.order, made.ID); len(s.order) > mostInteractions {
		delete(s.byID, s.order[0])
		s.order = slices.Delete(s.order, 0, 1)
	}
}

func (s *interactions) parse(x *fake.Exchange) *fake.Problem {
	q := new(interactionRequest)
	p := googleapi.Unknown(x.DecodeKnown(q))
	x.Request, x.Model = q, q.Model
	if p != nil {
		return p
	}
	x.Prompt = chat.TextOf(q.Input)
	_, known := s.find(q.Previous, keyOf(x))
	switch {
	case q.Model == "":
		return fake.Invalidf("", "model is required")
	case fake.UnknownModel(q.Model):
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "models/" + q.Model + " is not found."}
	case q.Background: // the gateway does it itself
		return fake.Invalidf("", "background is not supported by this fake.")
	case len(q.Input) == 0:
		return fake.Invalidf("", "input is required")
	case q.Previous != "" && !known:
		return fake.Invalidf("", "Invalid previous interaction name.")
	}
	return nil
}

func (s *interactions) answer(x *fake.Exchange) {
	q := fake.RequestOf[interactionRequest](x)
	x.Accept()
	r := chat.ReplyTo(x, chat.Question{Model: q.Model, Text: x.Prompt, All: len(x.Prompt) + len(q.System)})
	if chat.Breaks(x, &r, q.Stream, func(p fake.Problem) {
		x.Event("error", map[string]any{"event_type": "error", "error": map[string]string{"code": "internal", "message": p.Message}})
	}) {
		return
	}
	now := time.Now().UTC().Format(time.RFC3339)
	made := interaction{
		ID: "v1_" + fake.RandomID(40), Object: "interaction", Model: q.Model, Status: "completed", Created: now, Updated: now, Previous: q.Previous,
		Steps: []step{{Type: "thought"}, {"model_output", []text{{"text", r.Of(chat.Text)}}}}, key: keyOf(x),
		Usage: &interactionUsage{Input: r.Usage.Input, Cached: r.Usage.Read, Output: r.Usage.Output, Total: r.Usage.Input + r.Usage.Output},
	}
	if r.Stop == chat.StopMaxTokens {
		made.Status = "incomplete"
	}
	if q.Store == nil || *q.Store {
		defer s.add(made)
	}
	if !q.Stream {
		if x.JSON(http.StatusOK, made) {
			x.Served(r.Made())
		}
		return
	}
	x.Stream()
	if made.stream(x, &r) {
		x.Served(r.Made())
	}
}

// stream sends the events of an interaction, and reports whether the client took them. The last one leaves out the steps.
func (i interaction) stream(x *fake.Exchange, r *chat.Reply) bool {
	event := func(kind string, members map[string]any) bool {
		members["event_type"] = kind
		return x.Event(kind, members) && x.Pause()
	}
	began, ended := interaction{ID: i.ID, Object: i.Object, Model: i.Model, Status: "in_progress"}, i
	ended.Steps, ended.Previous = nil, ""
	if !event("interaction.created", map[string]any{"interaction": began}) ||
		!event("interaction.status_update", map[string]any{"interaction_id": i.ID, "status": "in_progress"}) {
		return false
	}
	for index, step := range i.Steps {
		if !event("step.start", map[string]any{"index": index, "step": map[string]string{"type": step.Type}}) {
			return false
		}
		for n := range r.Parts {
			if p := &r.Parts[n]; step.Content != nil && p.Kind == chat.Text && !p.Pieces(func(piece string) bool {
				return event("step.delta", map[string]any{"index": index, "delta": text{"text", piece}})
			}) {
				return false
			}
		}
		if !event("step.stop", map[string]any{"index": index}) {
			return false
		}
	}
	return event("interaction.completed", map[string]any{"interaction": ended}) && x.Send([]byte("event: done\ndata: [DONE]\n\n"))
}
