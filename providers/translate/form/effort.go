package form

import "modelrelay/providers"

// The least budgets of thinking, in tokens, for medium and for high effort.
const (
	mediumBudget = 4096
	highBudget   = 16384
)

// Word returns the effort of thinking as low, medium or high, or as the client's own word; "" if thinking is off or the model decides.
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

// Wanted reports whether the client requests thinking or the text of thoughts.
func (t Thinking) Wanted() bool { return t.Mode != ThinkingOff && (t.Mode != ThinkingUnset || t.Show) }

// Effort returns the word for the thinking of one of OpenAI's models, "" to send none. For a model that cannot think, it returns "", and
// thinking that the client turned off is not a loss.
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
	case word == "max": // the highest effort of models from gpt-5.2 on is xhigh
		loss.Change(field)
		return "xhigh"
	}
	return word
}
