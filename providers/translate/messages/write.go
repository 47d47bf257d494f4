package messages

import (
	"slices"
	"strings"
	"unicode"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// The limits of the vendor.
const (
	maxMarks   = 4
	maxToolLen = 128
	maxCallLen = 64
	// anyOutput is the maximum length of an answer if neither the client nor the model's name defines one. Every model permits it.
	anyOutput = 4096
)

// Write writes the call of a message for an upstream. The payload refers to long values, which must not change while it is used. Write may
// add to p.Renamed.
func Write(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	return write(p, to, loss, false)
}

// WriteCount writes the call of a token count: the message without the fields that control the answer.
func WriteCount(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	return write(p, to, loss, true)
}

func write(p *form.Prompt, to form.Target, loss *form.Loss, count bool) (providers.Payload, *providers.Fault) {
	w := &writer{arranged: arranged{p: p, traits: to.Traits.Anthropic, loss: loss}, out: form.NewPayload()}
	w.refuse()
	if w.arrange(); w.Fault != nil { // there may be no turns
		return nil, w.Fault
	}
	w.pickTools()
	w.think()
	w.countMarks()
	w.out.JSON(`{"model":?`, to.Model)
	if !count {
		w.tune()
		if to.Stream {
			w.out.JSON(`"stream":true`)
		}
	}
	w.writeThinking()
	w.writeTools()
	w.writeSystem()
	w.writeTurns()
	w.out.End()
	return w.out.Payload(), w.Fault
}

// arranged is a call in the vendor's form: its turns, its tools and its plan.
type arranged struct {
	form.Failing

	p      *form.Prompt
	traits providers.AnthropicTraits
	loss   *form.Loss
	turns  []form.Turn
	tools  []form.Tool
	plan   plan
}

type writer struct {
	arranged
	out    *form.Out
	system []form.Block
	// skipFixed and skipTurns are the numbers of omitted marks: of tools and system, and of turns.
	skipFixed, skipTurns int
}

// refuse refuses fields that the vendor cannot represent, and records the others that it lacks as dropped.
func (w *writer) refuse() {
	p := w.p
	w.Fail(p.DropOwn(form.Messages, w.loss))
	if p.Search != nil && slices.ContainsFunc(p.Tools, func(t form.Tool) bool { return t.Name == searchName }) { // two tools, one name
		w.Fail(p.LeaveSearch(form.Messages, w.loss))
	}
	if p.Limits.N > 1 {
		w.Fail(form.Refusedf(p.Fields[form.FieldN], form.Messages, "which returns one answer per call."))
	}
	if top, _ := p.Sampling.TopLogprobs.Int(); p.Sampling.Logprobs || top > 0 {
		field := p.Fields[form.FieldLogprobs]
		if field == "" {
			field = p.Fields[form.FieldTopLogprobs]
		}
		w.Fail(form.Refusedf(field, form.Messages, "which returns no probabilities."))
	}
}

// arrange puts the turns into the order that the vendor requires.
func (w *writer) arrange() {
	var fault *providers.Fault
	if w.system, w.turns, fault = w.p.Arrange(form.Arrangement{Takes: takes, InlineSystem: w.traits.InlineSystem}); fault != nil {
		w.Fail(fault)
		return
	}
	last := &w.turns[len(w.turns)-1]
	if last.Role == form.Assistant && w.traits.Prefill {
		w.trimPrefill(last)
	}
	if last.Role == form.Assistant && !w.traits.Prefill {
		w.Fail(form.Refusedf(w.p.Fields[form.FieldTurns], form.Messages,
			"and does not continue a turn of the assistant: the last turn must be the user's."))
	}
}

// trimPrefill removes the white space at the end of a prefill. The vendor refuses a call with it.
func (w *writer) trimPrefill(turn *form.Turn) {
	for n := len(turn.Blocks); n > 0 && turn.Blocks[n-1].Kind == form.BlockText; n-- {
		block := &turn.Blocks[n-1]
		prefill := block.Text.String()
		text := strings.TrimRightFunc(prefill, unicode.IsSpace)
		if text == prefill {
			return
		}
		w.loss.Change(block.At.Name())
		if block.Text = rawjson.Quote(text); text != "" {
			return
		}
		turn.Blocks = turn.Blocks[:n-1]
	}
}

// takes reports whether a thought, or state on an empty text, is the vendor's own.
func takes(block *form.Block) bool {
	return block.Kind == form.BlockThought && slices.ContainsFunc(block.State, func(s form.State) bool {
		return s.Kind == form.StateAnthropic || s.Kind == form.StateRedacted
	})
}

// tune writes the fields that control the answer.
func (w *writer) tune() {
	w.out.KeyInt("max_tokens", w.plan.maxTokens)
	w.sample()
	w.stop()
	if !w.p.User.Empty() {
		w.out.JSON(`"metadata":{"user_id":?}`, w.p.User)
	}
}

// sample writes the parameters of sampling that the model accepts.
func (w *writer) sample() {
	s, f := &w.p.Sampling, &w.p.Fields
	taken := w.traits.Sampling && !w.plan.on
	drop := func(value rawjson.Value, field form.Field, standard float64) { // nothing is lost without the default value
		if n, ok := value.Float(); ok && n != standard {
			w.loss.Drop(f[field])
		}
	}
	switch n, ok := s.Temperature.Float(); {
	case !ok:
	case !taken:
		drop(s.Temperature, form.FieldTemperature, 1)
	case n > 1:
		w.loss.Change(f[form.FieldTemperature])
		w.out.JSON(`"temperature":1`)
	default:
		w.out.Field("temperature", s.Temperature)
	}
	switch {
	case !s.TopP.IsNumber():
	case taken && (!w.traits.OneSampler || !s.Temperature.IsNumber()):
		w.out.Field("top_p", s.TopP)
	default:
		drop(s.TopP, form.FieldTopP, 1)
	}
	switch {
	case !s.TopK.IsNumber():
	case taken:
		w.out.Field("top_k", s.TopK)
	default:
		w.loss.Drop(f[form.FieldTopK])
	}
	drop(s.Presence, form.FieldPresence, 0)
	drop(s.Frequency, form.FieldFrequency, 0)
	if !s.Seed.Absent() {
		w.loss.Drop(f[form.FieldSeed])
	}
	if s.LogitBias.IsSet() {
		w.loss.Drop(f[form.FieldLogitBias])
	}
}

// stop writes the texts that end an answer. The vendor refuses those with only white space.
func (w *writer) stop() {
	kept := slices.DeleteFunc(slices.Clone(w.p.Limits.Stop), rawjson.Text.Blank)
	field := w.p.Fields[form.FieldStop]
	switch {
	case len(w.p.Limits.Stop) == 0:
		return
	case len(kept) == 0:
		w.loss.Drop(field)
		return
	case len(kept) < len(w.p.Limits.Stop):
		w.loss.Change(field)
	}
	w.out.Texts("stop_sequences", kept)
}
