package messages

import (
	"cmp"
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// Budgets of thinking, in tokens.
const (
	minBudget  = 1024
	anyBudget  = 16384 // for high, and if the client lets the model decide
	leftAnswer = 1     // the least part of max_tokens beyond the budget
)

// budgetOf returns the budget for a word of effort.
func budgetOf(effort string) int64 {
	return cmp.Or(map[string]int64{"minimal": minBudget, "low": 2048, "medium": 8192, "xhigh": 24576, "max": 32000}[effort], anyBudget)
}

// plan is the length of an answer and the amount of thinking.
type plan struct {
	maxTokens int64
	// on: the model thinks. off: it must not.
	on, off  bool
	adaptive bool
	budget   int64
	effort   string
}

// think plans the thinking. It records requested thinking that the model cannot do as lost.
func (w *arranged) think() {
	w.length()
	t, tr, field := w.p.Thinking, w.traits, w.p.Fields[form.FieldThinking]
	switch {
	case t.Mode == form.ThinkingUnset && t.Show && tr.AlwaysThinks: // the vendor returns the text of thoughts only on request
		w.plan.on, w.plan.adaptive = true, true
	case t.Mode == form.ThinkingUnset:
		if t.Show {
			w.loss.Drop(field) // it does not think
		}
	case t.Mode == form.ThinkingOff:
		if tr.AlwaysThinks {
			w.loss.Drop(field)
		}
		w.plan.off = !tr.AlwaysThinks && (tr.Budget || tr.Adaptive)
	case !tr.Budget && !tr.Adaptive:
		w.loss.Drop(field)
	case !tr.AlwaysThinks && (w.forced() || w.turns[len(w.turns)-1].Role == form.Assistant):
		// With thinking, the vendor accepts neither a forced tool nor a last turn of the assistant.
		w.loss.Drop(field)
	case tr.Adaptive && (!tr.Budget || t.Mode != form.ThinkingBudget || t.Budget < 0):
		w.plan.on, w.plan.adaptive = true, true
		w.plan.effort = w.effort(t.Word())
	default:
		w.planBudget()
	}
	w.keepThoughts()
}

// length plans the length of the answer.
func (w *arranged) length() {
	limit := w.traits.MaxOutput
	if limit <= 0 {
		limit = anyOutput
	}
	asked, ok := w.p.Limits.MaxTokens.Int()
	switch {
	case !ok:
		w.plan.maxTokens = limit
	case asked > limit && w.traits.MaxOutput > 0:
		w.plan.maxTokens = limit
		w.loss.Change(w.p.Fields[form.FieldMaxTokens])
	default:
		w.plan.maxTokens = asked
	}
}

// effort returns the vendor's word for an effort, "" for none.
func (w *arranged) effort(word string) string {
	switch {
	case word == "":
		return ""
	case !w.traits.Effort:
		w.loss.Change(w.p.Fields[form.FieldThinking])
		return ""
	case word == "minimal":
		return "low"
	case (word == "xhigh" || word == "max") && !w.traits.XHigh:
		w.loss.Change(w.p.Fields[form.FieldThinking])
		return "high"
	}
	return word
}

// planBudget plans thinking by a number of tokens: less than the answer's length. It omits thinking if turns with calls lack the thoughts
// of the vendor's model, because the vendor then refuses thinking.
func (w *arranged) planBudget() {
	t, field := w.p.Thinking, w.p.Fields[form.FieldThinking]
	budget := t.Budget
	if t.Mode != form.ThinkingBudget || budget < 0 {
		budget = budgetOf(t.Word())
	}
	if budget < minBudget {
		budget = minBudget
		w.loss.Change(field)
	}
	if most := w.plan.maxTokens - leftAnswer; budget > most {
		budget = most
		if budget >= minBudget {
			w.loss.Change(field)
		}
	}
	if budget < minBudget || w.stateGone() {
		w.loss.Unchange(field)
		w.loss.Drop(field)
		return
	}
	w.plan.on, w.plan.budget = true, budget
}

// stateGone reports whether the current tool loop lacks its thought: the first of its turns with calls must have one. Later turns need
// none, because a model may think once for several of them.
func (w *arranged) stateGone() bool {
	first, open := -1, false
	for i, turn := range slices.Backward(w.turns) {
		if turn.Role == form.User {
			if open = slices.ContainsFunc(turn.Blocks, isKind(form.BlockResult)); !open {
				break
			}
		} else if turn.Role == form.Assistant && open {
			first = i
		}
	}
	return first >= 0 && !slices.ContainsFunc(w.turns[first].Blocks, isKind(form.BlockThought))
}

func isKind(kind form.BlockKind) func(form.Block) bool {
	return func(b form.Block) bool { return b.Kind == kind }
}

// keepThoughts puts the thoughts of each turn first, as the vendor requires, or omits them without thinking, as it requires then.
func (w *arranged) keepThoughts() {
	isThought := isKind(form.BlockThought)
	keep := w.plan.on || w.traits.AlwaysThinks || w.p.Thinking.Mode == form.ThinkingUnset && w.traits.Adaptive && !w.traits.Budget
	for i := range w.turns {
		turn := &w.turns[i]
		first := slices.IndexFunc(turn.Blocks, isThought)
		switch {
		case first < 0:
		case !keep:
			turn.Blocks = slices.DeleteFunc(slices.Clone(turn.Blocks), isThought)
		case first > 0:
			end := first
			for end < len(turn.Blocks) && isThought(turn.Blocks[end]) {
				end++
			}
			turn.Blocks = slices.Concat(turn.Blocks[first:end], turn.Blocks[:first], turn.Blocks[end:])
		}
	}
}

// writeThinking writes the thinking, the effort and the format of the answer.
func (w *writer) writeThinking() {
	out := w.out
	switch {
	case w.plan.off:
		out.JSON(`"thinking":{"type":"disabled"}`)
	case w.plan.adaptive && w.p.Thinking.Show:
		out.JSON(`"thinking":{"type":"adaptive","display":"summarized"}`)
	case w.plan.adaptive:
		out.JSON(`"thinking":{"type":"adaptive"}`)
	case w.plan.on:
		out.JSON(`"thinking":{"type":"enabled","budget_tokens":?}`, w.plan.budget)
	}
	schema := w.schema()
	if schema == nil && w.plan.effort == "" {
		return
	}
	out.Object("output_config")
	if w.plan.effort != "" {
		out.KeyString("effort", w.plan.effort)
	}
	if schema != nil {
		out.JSON(`"format":{"type":"json_schema","schema":?}`, schema)
	}
	out.End()
}

// schema returns the schema of the answer in the vendor's form, nil if it is an instruction.
func (w *arranged) schema() rawjson.Value {
	if !w.formatted() {
		return nil
	}
	field := w.p.Fields[form.FieldOutput]
	described, carried := w.p.Output.Described()
	schema, changed, fault := form.FitSchema(described, field, form.Messages)
	w.Fail(fault)
	if changed || !carried {
		w.loss.Change(field)
	}
	return schema
}

// formatted reports whether the answer's format is a field and not an instruction.
func (w *arranged) formatted() bool {
	return w.p.Output.Kind == form.OutputSchema && w.traits.Schema && w.p.Output.Schema.IsObject()
}
