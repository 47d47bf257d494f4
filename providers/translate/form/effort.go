package form

import "modelrelay/providers"

// The least budgets of thinking, in tokens, that are more than little and more than middling.
const (
	mediumBudget = 4096
	highBudget   = 16384
)

// Word is how much is thought in one of the words low, medium and high, or the client's own; "" where it is left to the
// model, or off.
func (t Thinking) Word() string {
	switch {
	case t.Mode == ThinkingBudget && t.Budget < 0:
		return ""
	case t.Mode == ThinkingBudget && t.Budget < mediumBudget:
		return "low"
	case t.Mode == ThinkingBudget && t.Budget < highBudget:
		return "medium"
	case t.Mode == ThinkingBudget:
		return "high"
	case t.Mode == ThinkingEffort, t.Mode == ThinkingAdaptive:
		return t.Effort
	}
	return ""
}

// Wanted reports whether the client wants the model to think, or at least to see what it thinks.
func (t Thinking) Wanted() bool { return t.Mode != ThinkingOff && (t.Mode != ThinkingUnset || t.Show) }

// Effort is the word for the thinking of one of OpenAI's models, "" where none is to be sent. A model that cannot think is
// asked nothing; that it shall not think is no loss then.
func (p *Prompt) Effort(traits providers.OpenAITraits, loss *Loss) string {
	field := p.Fields[FieldThinking]
	switch {
	case !traits.Reasons:
		if p.Thinking.Wanted() {
			loss.Drop(field)
		}
		return ""
	case p.Thinking.Mode == ThinkingUnset:
		return ""
	case p.Thinking.Mode != ThinkingOff:
	case traits.NoneEffort:
		return "none"
	case traits.MinimalEffort:
		loss.Change(field)
		return "minimal"
	default:
		loss.Drop(field)
		return ""
	}
	word := p.Thinking.Word()
	switch {
	case word == "minimal" && !traits.MinimalEffort:
		loss.Change(field)
		return "low"
	case word == "max" && traits.MaxEffort:
		return word
	case (word == "xhigh" || word == "max") && !traits.XHigh:
		loss.Change(field)
		return "high"
	case word == "max": // those from gpt-5.2 on end with xhigh
		loss.Change(field)
		return "xhigh"
	}
	return word
}
