package anthropic

import (
	"strconv"
	"strings"
)

// Model is what a model's name says about what it takes.
type Model struct {
	Name string
	// version is ten times the generation: 45 for claude-haiku-4-5. 0: the name is none of the vendor's, and no rule of a model holds.
	version int
	family  string
}

// newest is the generation of names that tell none.
const newest = 60

// Generations at which something changed.
const (
	withThinking    = 37
	withOneSampler  = 41 // temperature or top_p: https://docs.claude.com/en/docs/about-claude/models/whats-new-claude-4-5
	withSchemas     = 45 // https://platform.claude.com/docs/en/build-with-claude/structured-outputs
	withAdaptive    = 46 // https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking; no prefill any more
	withoutSampling = 47 // https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7; nor thinking by budget
	withSystemTurns = 48
)

// ModelOf reads a model's name: claude-opus-4-1-20250805, claude-3-7-sonnet-latest.
func ModelOf(name string) Model {
	m := Model{Name: name}
	rest, ok := strings.CutPrefix(name, "claude-")
	if !ok {
		return m
	}
	const digits = 2 // of a generation; a longer number is a date
	var numbers []int
	for word := range strings.SplitSeq(rest, "-") {
		n, err := strconv.Atoi(word)
		switch {
		case err != nil && m.family == "" && len(word) > 0:
			m.family = word
		case err == nil && len(word) <= digits && len(numbers) < 2:
			numbers = append(numbers, n)
		}
	}
	switch len(numbers) {
	case 0:
		m.version = newest
	case 1:
		m.version = numbers[0] * 10
	default:
		m.version = numbers[0]*10 + numbers[1]
	}
	return m
}

// ours reports whether the rules of models hold.
func (m Model) ours() bool { return m.version > 0 }

// maxOutput is the largest max_tokens, https://platform.claude.com/docs/en/about-claude/models/overview.
func (m Model) maxOutput() int {
	switch {
	case !m.ours() || m.version >= withAdaptive:
		return 128000
	case m.version < 35:
		return 4096
	case m.version == 35:
		return 8192
	case m.family == "opus" && m.version < withSchemas:
		return 32000
	case m.version == withThinking:
		return 128000 // with the beta header of long outputs; 64000 without
	}
	return 64000
}

func (m Model) samples() bool { return !m.ours() || m.version < withoutSampling }
func (m Model) oneSampler() bool {
	return m.version >= withOneSampler && m.version < withoutSampling
}

func (m Model) budgets() bool {
	return !m.ours() || m.version >= withThinking && m.version < withoutSampling
}
func (m Model) adapts() bool   { return !m.ours() || m.version >= withAdaptive }
func (m Model) prefills() bool { return m.version < withAdaptive }
func (m Model) schemas() bool {
	return !m.ours() || m.version >= withSchemas || m.family == "opus" && m.version == 41
}

func (m Model) effort() bool {
	return !m.ours() || m.version >= withAdaptive || m.family == "opus" && m.version == withSchemas
}
func (m Model) systemTurns() bool { return m.version == withSystemTurns || m.version >= 50 }

// AlwaysThinks reports whether thinking cannot be turned off.
func (m Model) AlwaysThinks() bool {
	switch m.family {
	case "opus", "sonnet":
		return m.version >= 55
	case "fable":
		return m.version >= 51
	}
	return false
}

// Omits reports whether thinking is hidden unless the call asks to see it,
// https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-7#thinking-content-omitted-by-default.
func (m Model) Omits() bool { return m.version >= withoutSampling }
