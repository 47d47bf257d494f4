package translate

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// Translator translates calls from one endpoint to another. It is safe for concurrent use.
type Translator struct {
	// Signatures stores state for which the client's format has no field; nil: nothing is stored.
	Signatures SignatureCache
	// Responses stores the answers of translated calls to the Responses API; nil: they are not stored.
	Responses ResponseStore
}

// The headers of a translated answer.
const (
	headerTranslated = "X-Relay-Translated"
	headerDropped    = "X-Relay-Dropped"
	headerChanged    = "X-Relay-Changed"
)

// Translation is one call on its way to one upstream of another format, and its answer back.
type Translation struct {
	// Call is the upstream's call, with the upstream's Endpoint. Its Pieces refer to the client's body.
	Call providers.Call
	// Counted is the whole answer of a token count that the gateway estimates; nil for any other call.
	Counted []byte

	from     providers.Endpoint
	target   providers.Target
	vendor   providers.Vendor
	streams  bool // the client requests a stream
	ask      form.Ask
	loss     form.Loss
	writer   codec // of the client's dialect
	reader   codec // of the upstream's dialect
	document func(document rawjson.Value) ([]byte, *providers.Fault)
	// storeStates stores the states of a tool call; nil: they are not stored.
	storeStates func(call string, states []form.State)
	// callIDs are the ids of the conversation's tool calls, nil for none.
	callIDs map[string]bool
	signs   bool // signatures of thoughts are separate from their text
	holds   int  // bytes of the client's body that are kept until the end of the answer
}

// Translate translates the call to one of the endpoints of the target's vendor. Its fault is that of a call that this target cannot
// receive; it names the client's field, and nothing was sent.
func (d *Translator) Translate(
	ctx context.Context, call *providers.Call, to providers.Target, vendor providers.Vendor,
) (*Translation, *providers.Fault) {
	streams := call.Stream || call.Endpoint.Operation == providers.StreamContent
	t := &Translation{from: call.Endpoint, target: to, vendor: vendor, streams: streams}
	targets := t.targets()
	if len(targets) == 0 {
		return nil, providers.Faultf(providers.Internal, "The gateway translates a call that it cannot.")
	}
	t.Call = providers.Call{
		Model: call.Model, Alias: call.Alias, Content: providers.Content{ContentType: "application/json"}, RequestID: call.RequestID,
		Affinity: call.Affinity,
		Token:    call.Token, AnyAnswer: true,
	}
	var fault *providers.Fault
	switch {
	case embeds(t.from):
		fault = t.embed(call)
	case counts(t.from):
		fault = t.count(call, targets)
	default:
		fault = t.chat(ctx, d, call, targets)
	}
	if fault != nil {
		return nil, t.located(fault)
	}
	return t, nil
}

// traits returns the traits of the target's model.
func (t *Translation) traits() providers.Traits {
	return traitsOf(t.vendor, t.target.Channel, t.target.Model)
}

// located adds the client's field to the message if the client's format has no member for it.
func (t *Translation) located(fault *providers.Fault) *providers.Fault {
	if fault.Param == "" || t.from.Format == providers.OpenAI || strings.Contains(fault.Message, fault.Param) {
		return fault
	}
	located := *fault
	located.Message = fault.Param + ": " + fault.Message
	return &located
}

// chat translates a chat to the first of the targets that can receive it.
func (t *Translation) chat(ctx context.Context, d *Translator, call *providers.Call, targets []providers.Endpoint) *providers.Fault {
	source, _ := dialectOf(t.from)
	t.writer = codecOf(source)
	prompt, ask, fault := t.writer.read(call, &t.loss)
	if fault != nil {
		return fault
	}
	t.ask = ask
	t.ask.Model = call.Named()
	t.ask.Declared, t.ask.Custom = form.Declared(prompt.Tools)
	if fault = checkChoice(prompt, t.ask.Declared); fault != nil {
		return fault
	}
	t.storeAnswer(ctx, d.Responses, call)
	if source == form.Messages && t.streams {
		t.ask.Input = estimate(prompt)
	}
	var caller Caller
	if source == form.Chat && d.Signatures != nil {
		caller = Caller{ID: call.Token, Key: call.Key}
	}
	read := t.loss
	var refused *providers.Fault
	for i, to := range t.prefer(targets, prompt) {
		if i > 0 { // the writer of the previous target may have changed it
			if prompt, _, fault = t.writer.read(call, new(form.Loss)); fault != nil {
				return fault
			}
		}
		if t.ask.Store != nil {
			withoutStore(prompt)
		}
		target, _ := dialectOf(to)
		keeps := target != form.Chat && caller.ID != ""
		if keeps {
			restoreStates(ctx, d.Signatures, caller, prompt)
		}
		t.loss = form.Loss{Dropped: slices.Clip(read.Dropped), Changed: slices.Clip(read.Changed)}
		t.reader = codecOf(target)
		pieces, fault := t.reader.write(prompt, form.Target{
			Model: t.target.Model, Traits: t.traits(), Stream: t.streams,
			NoUsage: t.target.Channel.NoStreamUsage,
		}, &t.loss)
		if fault != nil {
			if refused == nil {
				refused = fault
			}
			continue
		}
		t.Call.Endpoint, t.Call.Stream, t.Call.Pieces = to, t.streams, pieces
		t.ask.Names, t.signs = prompt.Renamed, target == form.Messages
		t.callIDs = callIDs(prompt)
		if to.Format == t.from.Format {
			t.Call.Header = call.Header
		}
		if keeps {
			t.storeStates = func(id string, states []form.State) { storeStates(d.Signatures, caller, id, states) }
		}
		return nil
	}
	return refused
}

// callIDs returns the ids of the tool calls in a conversation, nil for none.
func callIDs(prompt *form.Prompt) (ids map[string]bool) {
	for i := range prompt.Turns {
		for j := range prompt.Turns[i].Blocks {
			if block := &prompt.Turns[i].Blocks[j]; block.Kind == form.BlockCall && block.Call.ID != "" {
				if ids == nil {
					ids = make(map[string]bool)
				}
				ids[block.Call.ID] = true
			}
		}
	}
	return ids
}

// checkChoice refuses a forced tool that is not declared, as every vendor does. The check of declarations covers vendors' own.
func checkChoice(prompt *form.Prompt, declared map[string]bool) *providers.Fault {
	choice, field := prompt.Choice, prompt.Fields[form.FieldChoice]
	switch {
	case slices.ContainsFunc(prompt.Own, func(own form.Member) bool { return own.Must && own.Name != "moderation" }):
	case choice.Mode == form.ChoiceAny && len(prompt.Tools) == 0 && prompt.Search == nil:
		return providers.InvalidField(field, "There are no tools to call.")
	case slices.ContainsFunc(choice.Names, func(name string) bool { return !declared[name] }):
		return providers.InvalidField(field, "A tool that is chosen is not declared.")
	}
	return nil
}

// prefer orders the targets for a call. Of OpenAI's two endpoints, Responses is first for models that reason, unless the call requires a
// feature that only chat completions have.
func (t *Translation) prefer(targets []providers.Endpoint, prompt *form.Prompt) []providers.Endpoint {
	first := providers.Responses
	if !t.traits().OpenAI.Reasons || chatOnly(prompt) {
		first = providers.Chat
	}
	rank := func(e providers.Endpoint) int {
		if e.Operation == first {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(targets, func(a, b providers.Endpoint) int { return rank(a) - rank(b) })
	return targets
}

// chatOnly reports whether a call requires a feature of OpenAI's chat completions that Responses lack.
func chatOnly(prompt *form.Prompt) bool {
	s := prompt.Sampling
	for _, tuned := range []rawjson.Value{s.Presence, s.Frequency, s.Seed, s.LogitBias} {
		if !tuned.Absent() {
			return true
		}
	}
	return len(prompt.Limits.Stop) > 0 || prompt.Limits.N > 1 || slices.ContainsFunc(prompt.Turns, func(turn form.Turn) bool {
		return slices.ContainsFunc(turn.Blocks, func(block form.Block) bool {
			return block.Kind == form.BlockMedia && block.Media.Kind == form.Audio
		})
	})
}

// Header sets the headers of the client's answer.
func (t *Translation) Header(header http.Header) {
	kind := "application/json"
	if t.ask.Stream && !t.ask.Array {
		kind = "text/event-stream"
	}
	header.Set("Content-Type", kind)
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition"} {
		header.Del(name)
	}
	header.Set(headerTranslated, t.Call.Endpoint.String())
	if len(t.loss.Dropped) > 0 {
		header.Set(headerDropped, form.Listed(t.loss.Dropped))
	}
	if len(t.loss.Changed) > 0 {
		header.Set(headerChanged, form.Listed(t.loss.Changed))
	}
}

// Stream reports whether the client receives events.
func (t *Translation) Stream() bool { return t.ask.Stream && !t.ask.Array }

// Fault translates an upstream's fault: the reason of a refusal becomes UpstreamMessage. It removes the upstream's name of a field.
func (t *Translation) Fault(fault *providers.Fault) {
	reply := fault.Upstream
	if reply == nil {
		return
	}
	reply.Format, fault.Param = "", ""
	if reply.Status/100 == 4 && fault.Blame == providers.BlameNone { //nolint:mnd // refusals
		fault.UpstreamMessage = form.ErrorMessage(reply.Body)
	}
}
