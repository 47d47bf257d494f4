package fakegemini

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
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
	Model    string            `json:"model,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Status   string            `json:"status"`
	Created  string            `json:"created,omitempty"`
	Updated  string            `json:"updated,omitempty"`
	Previous string            `json:"previous_interaction_id,omitempty"`
	Steps    []step            `json:"steps,omitempty"`
	Usage    *interactionUsage `json:"usage,omitempty"`

	key string
	// events are those of one in the background, which is made from then on; nil for any other.
	events []any
	from   time.Time
	takes  time.Duration
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

// interactionRequest is a CreateModelInteraction or a CreateAgentInteraction.
type interactionRequest struct {
	Model      string          `json:"model"`
	Agent      string          `json:"agent"`
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
	handle("GET "+prefix+"/interactions/{id}", "interactions.get", nil, one(func(x *fake.Exchange, found interaction) {
		query := x.HTTP.URL.Query()
		next, err := strconv.Atoi(cmp.Or(query.Get("last_event_id"), "-1"))
		switch {
		case query.Get("stream") != "true":
			x.JSON(http.StatusOK, found.now())
		case found.events == nil || err != nil:
			googleapi.Refuse(x, *fake.Invalidf("", "The interaction has no such stream."))
		default:
			found.replay(x, next+1)
		}
	}))
	handle("POST "+prefix+"/interactions/{id}/cancel", "interactions.cancel", nil, one(func(x *fake.Exchange, found interaction) {
		if found.now().Status != running {
			googleapi.Refuse(x, *fake.Invalidf("", "The interaction is not a running background interaction."))
			return
		}
		found.Status, found.Steps, found.takes = "cancelled", nil, 0
		stored.replace(found)
		x.JSON(http.StatusOK, found)
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

// running is the status of an interaction in the background.
const running = "in_progress"

// now is an interaction as it is.
func (i interaction) now() interaction {
	if time.Since(i.from) < i.takes {
		i.Status, i.Steps, i.Usage = running, nil, nil
	}
	return i
}

// replay sends the events of an interaction in the background from the n-th on.
func (i interaction) replay(x *fake.Exchange, n int) {
	x.Stream()
	for ; n < len(i.events); n++ {
		kind := i.events[n].(map[string]any)["event_type"].(string)
		if !x.Event(kind, i.events[n]) || !x.Pause() {
			return
		}
	}
	x.Send([]byte("event: done\ndata: [DONE]\n\n"))
}

func (s *interactions) replace(made interaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byID[made.ID] = made
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
	x.Request, x.Model = q, cmp.Or(q.Model, q.Agent)
	if p != nil {
		return p
	}
	x.Prompt = chat.TextOf(q.Input)
	_, known := s.find(q.Previous, keyOf(x))
	switch {
	case (q.Model == "") == (q.Agent == ""):
		return fake.Invalidf("", "Exactly one of model and agent is required")
	case fake.UnknownModel(x.Model):
		return &fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "models/" + x.Model + " is not found."}
	case q.Background && q.Store != nil && !*q.Store:
		return fake.Invalidf("", "background requires store.")
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
	r := chat.ReplyTo(x, chat.Question{Model: x.Model, Text: x.Prompt, All: len(x.Prompt) + len(q.System)})
	if chat.Breaks(x, &r, q.Stream, func(p fake.Problem) {
		x.Event("error", map[string]any{"event_type": "error", "error": map[string]string{"code": "internal", "message": p.Message}})
	}) {
		return
	}
	now := time.Now().UTC().Format(time.RFC3339)
	made := interaction{
		ID: "v1_" + fake.RandomID(40), Object: "interaction", Model: q.Model, Agent: q.Agent, Status: "completed", Created: now, Updated: now,
		Previous: q.Previous,
		Steps:    []step{{Type: "thought"}, {"model_output", []text{{"text", r.Of(chat.Text)}}}}, key: keyOf(x),
		Usage: &interactionUsage{Input: r.Usage.Input, Cached: r.Usage.Read, Output: r.Usage.Output, Total: r.Usage.Input + r.Usage.Output},
	}
	if r.Stop == chat.StopMaxTokens {
		made.Status = "incomplete"
	}
	if q.Background {
		s.answerBackground(x, q, made, &r)
		return
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
	event := func(kind string, members map[string]any) bool {
		members["event_type"] = kind
		return x.Event(kind, members) && x.Pause()
	}
	if made.stream(&r, event) && x.Send([]byte("event: done\ndata: [DONE]\n\n")) {
		x.Served(r.Made())
	}
}

// answerBackground answers the create of an interaction in the background, which takes as long as its stream.
func (s *interactions) answerBackground(x *fake.Exchange, q *interactionRequest, made interaction, r *chat.Reply) {
	made.stream(r, func(kind string, members map[string]any) bool {
		members["event_type"], members["event_id"] = kind, strconv.Itoa(len(made.events))
		made.events = append(made.events, members)
		return true
	})
	made.from, made.takes = time.Now(), time.Duration(len(made.events))*x.Server.Settings.ChunkInterval
	if q.Stream {
		s.add(made)
		made.replay(x, 0)
	} else {
		shown := made
		shown.events, made.events = nil, nil
		s.add(made)
		x.JSON(http.StatusOK, shown.now())
	}
	x.Served(r.Made()) // it is made, whether its client reads it or not
}

// stream makes the events of an interaction while they are taken, and reports whether all were. The last one leaves out the steps.
func (i interaction) stream(r *chat.Reply, event func(kind string, members map[string]any) bool) bool {
	began, ended := interaction{ID: i.ID, Object: i.Object, Model: i.Model, Agent: i.Agent, Status: running}, i
	ended.Steps, ended.Previous = nil, ""
	if !event("interaction.created", map[string]any{"interaction": began}) ||
		!event("interaction.status_update", map[string]any{"interaction_id": i.ID, "status": running}) {
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
	return event("interaction.completed", map[string]any{"interaction": ended})
}
