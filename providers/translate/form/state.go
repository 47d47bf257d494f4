package form

import (
	"bytes"
	"encoding/base64"
	"slices"

	"modelrelay/providers/rawjson"
)

// envelopePrefix begins state in a field of another vendor's dialect. The number is the version of the envelope's format.
const envelopePrefix = "mr1."

// Unsigned replaces the state of a thought without a signature. The client's own vendor would refuse such a thought.
const Unsigned = envelopePrefix + "n."

// Hide returns a thought without a signature as state, if the client does not request its text. Its upstream requires it in later calls.
func Hide(thought rawjson.Text) string {
	return Unsigned + base64.RawURLEncoding.EncodeToString(thought)
}

// Hidden returns the thought in a state of Hide, nil for any other text.
func Hidden(text []byte) rawjson.Text {
	rest, ours := bytes.CutPrefix(text, []byte(Unsigned))
	thought, err := base64.RawURLEncoding.AppendDecode(nil, rest)
	if !ours || err != nil || !rawjson.Valid(thought) {
		return nil
	}
	return rawjson.Trim(thought).Text()
}

// Enveloped reports whether a translation has written the text of a state. Such a text that OpenEnvelope cannot read is not a state.
func Enveloped(text []byte) bool { return bytes.HasPrefix(text, []byte(envelopePrefix)) }

// Envelope returns the state for a field of another vendor's dialect: "mr1.", the letter of its kind, "." and the base64url of a JSON array
// of its data, its text and its id. It is not secret: the vendor checks the content.
func (s State) Envelope() string {
	out := new(Out)
	out.JSON("[?,?,?]", s.Data, s.Text, s.ID)
	return envelopePrefix + string(s.Kind) + "." + base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// OpenEnvelope reads the text of Envelope. It reports false for any other text.
func OpenEnvelope(text []byte) (State, bool) {
	rest, ours := bytes.CutPrefix(text, []byte(envelopePrefix))
	if !ours || len(rest) < 2 || rest[1] != '.' {
		return State{}, false
	}
	state := State{Kind: StateKind(rest[0])}
	switch state.Kind {
	case StateGemini, StateGeminiBefore, StateAnthropic, StateRedacted, StateOpenAI:
	default:
		return State{}, false
	}
	inside, err := base64.RawURLEncoding.AppendDecode(nil, rest[2:])
	if err != nil || !rawjson.Valid(inside) {
		return State{}, false
	}
	n := 0
	for i, value := range rawjson.Trim(inside).Items() {
		text := value.Text()
		if text == nil {
			return State{}, false
		}
		switch i {
		case 0:
			state.Data = text.Inner()
		case 1:
			if !text.Empty() {
				state.Text = text
			}
		case 2:
			state.ID = text.String()
		}
		n++
	}
	return state, n == 3
}

// Settle moves the states of BlockState to their blocks: to the next text or call of the turn, or to the text before. A state that is a
// thought becomes a block of thought. A state without a block is omitted.
func (t *Turn) Settle() {
	if !slices.ContainsFunc(t.Blocks, func(b Block) bool { return b.Kind == BlockState }) {
		return
	}
	blocks := make([]Block, 0, len(t.Blocks))
	var next []State
	for _, block := range t.Blocks {
		if block.Kind != BlockState {
			if next != nil && (block.Kind == BlockText || block.Kind == BlockCall) {
				block.State = append(next, block.State...)
				next = nil
			}
			blocks = append(blocks, block)
			continue
		}
		for _, state := range block.State {
			switch state.Kind {
			case StateGemini:
				next = append(next, state)
			case StateGeminiBefore:
				if n := len(blocks) - 1; n >= 0 && blocks[n].Kind == BlockText {
					state.Kind = StateGemini
					blocks[n].State = append(blocks[n].State, state)
				}
			default:
				blocks = append(blocks, Block{Kind: BlockThought, Text: state.Text, State: []State{state}, At: block.At})
			}
		}
	}
	t.Blocks = blocks
}
