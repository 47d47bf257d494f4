package gemini

import (
	"slices"
	"strings"

	"modelrelay/providers/translate/form"
)

// format prepares the format of the answer before anything is written. Models before the third generation accept no tools next to JSON: the
// format becomes an instruction.
func (w *writing) format(tools bool) {
	out := &w.p.Output
	if out.Kind != form.OutputText && tools && !w.to.Traits.Gemini.Level {
		w.line = out.Line()
		w.loss.Change(w.p.Fields[form.FieldOutput])
	}
}

func (w *writing) config() {
	p := w.p
	s, limits := &p.Sampling, &p.Limits
	c := new(form.Out)
	c.Field("temperature", s.Temperature)
	c.Field("topP", s.TopP)
	c.Field("topK", s.TopK)
	c.Field("presencePenalty", s.Presence)
	c.Field("frequencyPenalty", s.Frequency)
	c.Field("seed", s.Seed)
	c.Field("maxOutputTokens", limits.MaxTokens)
	if limits.N > 1 {
		c.KeyInt("candidateCount", limits.N)
	}
	if len(limits.Stop) > maxStops {
		w.Fail(form.Refusedf(p.Fields[form.FieldStop], form.Gemini, "which takes %d stop sequences at most.", maxStops))
	}
	if len(limits.Stop) > 0 {
		c.Texts("stopSequences", limits.Stop)
	}
	if s.Logprobs {
		c.JSON(`"responseLogprobs":true`)
		if n, ok := s.TopLogprobs.Int(); ok && n > 0 {
			c.Field("logprobs", s.TopLogprobs)
		}
	}
	if s.LogitBias.IsSet() {
		w.loss.Drop(p.Fields[form.FieldLogitBias])
	}
	if !p.User.Empty() {
		w.loss.Drop(p.Fields[form.FieldUser])
	}
	w.thinking(c)
	w.output(c)
	if c.Len() > 0 {
		w.out.KeyRaw("generationConfig", []byte("{"), c.Bytes(), []byte("}"))
	}
}

func (w *writing) output(c *form.Out) {
	out := &w.p.Output
	if out.Kind == form.OutputText || w.line != nil {
		return
	}
	c.JSON(`"responseMimeType":"application/json"`)
	if out.Kind != form.OutputSchema || out.Schema.Absent() {
		return
	}
	described, carried := out.Described()
	fit, changed, fault := form.FitSchema(described, w.p.Fields[form.FieldOutput], form.Gemini)
	if fault != nil {
		w.Fail(fault)
		return
	}
	if changed || !carried {
		w.loss.Change(w.p.Fields[form.FieldOutput])
	}
	c.KeyRaw("responseJsonSchema", fit)
}

// The budgets of models that think by tokens, and their limits. See https://ai.google.dev/gemini-api/docs/thinking.
const (
	smallBudget  = 1024
	mediumBudget = 8192
	largeBudget  = 24576 // the maximum except for Pro
	minimumOfPro = 128
	maximumOfPro = 32768
	noBudget     = -1
)

// thinking writes the amount of thinking, as a level or in tokens.
func (w *writing) thinking(c *form.Out) {
	t, traits := &w.p.Thinking, w.to.Traits.Gemini
	if !traits.Thinks {
		if t.Wanted() {
			w.loss.Drop(w.p.Fields[form.FieldThinking])
		}
		return
	}
	level, budget := "", int64(noBudget)
	if traits.Level {
		level = w.level()
	} else {
		budget = w.budget()
	}
	show := t.Show && t.Mode != form.ThinkingOff
	if !show && level == "" && budget < 0 {
		return
	}
	c.Object("thinkingConfig")
	if level != "" {
		c.KeyString("thinkingLevel", level)
	}
	if budget >= 0 {
		c.KeyInt("thinkingBudget", budget)
	}
	if show {
		c.JSON(`"includeThoughts":true`)
	}
	c.End()
}

// level returns the level of thinking, "" if the model decides.
func (w *writing) level() string {
	t, pro := &w.p.Thinking, w.to.Traits.Gemini.Pro
	word := t.Word()
	if t.Mode == form.ThinkingOff {
		w.loss.Change(w.p.Fields[form.FieldThinking])
		word = "minimal"
	}
	switch {
	case word == "minimal" && pro:
		w.loss.Change(w.p.Fields[form.FieldThinking])
		return "LOW"
	case slices.Contains([]string{"", "minimal", "low", "medium", "high"}, word):
		return strings.ToUpper(word)
	}
	w.loss.Change(w.p.Fields[form.FieldThinking])
	return "HIGH"
}

// budget returns the budget of thinking in tokens, negative if the model decides.
func (w *writing) budget() int64 {
	t, pro := &w.p.Thinking, w.to.Traits.Gemini.Pro
	words := map[string]int64{"": noBudget, "minimal": smallBudget, "low": smallBudget, "medium": mediumBudget, "high": largeBudget}
	asked, known := words[t.Word()]
	switch {
	case t.Mode == form.ThinkingOff:
		asked = 0
	case t.Mode == form.ThinkingBudget:
		asked = t.Budget
	case !known: // above high
		w.loss.Change(w.p.Fields[form.FieldThinking])
		asked = largeBudget
	}
	given := asked
	switch {
	case asked < 0:
	case pro:
		given = min(max(asked, minimumOfPro), maximumOfPro)
	default:
		given = min(asked, largeBudget)
	}
	if given != asked {
		w.loss.Change(w.p.Fields[form.FieldThinking])
	}
	return given
}
