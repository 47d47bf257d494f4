package form

import (
	"bytes"
	"encoding/base64"
	"slices"

	"modelrelay/providers/rawjson"
)

// envelopePrefix begins state that is in a place of another vendor. The number is that of the envelope's format.
const envelopePrefix = "mr1."

// Unsigned is in the place of state of a thought that no vendor signed: when it comes back, its own vendor's endpoint is
// known to refuse the thought.
const Unsigned = envelopePrefix + "n."

// Hide is a thought that no vendor signed and that the client does not want to see, as it is in the place of state: its
// upstream wants it back.
func Hide(thought rawjson.Text) string {
	return Unsigned + base64.RawURLEncoding.EncodeToString(thought)
}

// Hidden is the thought that Hide put there, nil where there is none.
func Hidden(text []byte) rawjson.Text {
	rest, ours := bytes.CutPrefix(text, []byte(Unsigned))
	thought, err := base64.RawURLEncoding.AppendDecode(nil, rest)
	if !ours || err != nil || !rawjson.Valid(thought) {
		return nil
	}
	return rawjson.Trim(thought).Text()
}

// Enveloped reports whether what comes back in the place of state was put there by a translation. What OpenEnvelope does not read
// of it is no state.
func Enveloped(text []byte) bool { return bytes.HasPrefix(text, []byte(envelopePrefix)) }

// Envelope is the state as it is in a place of another vendor's dialect: "mr1.", the letter of its kind, "." and
// base64url of a JSON array of its data, its text and its id. It is no secret: the vendor checks what is inside.
func (s State) Envelope() string {
	out := new(Out)
	out.BeginArray()
	out.Quoted(s.Data)
	out.Text(s.Text)
	out.String(s.ID)
	out.EndArray()
	return envelopePrefix + string(s.Kind) + "." + base64.RawURLEncoding.EncodeToString(out.Bytes())
}

// OpenEnvelope reads what Envelope wrote; false for anything else.
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

// Settle puts state that a reader found apart, as BlockState, on the blocks it belongs to: what belongs to the block after it
// on the next text or call of the turn, what belongs to the text before it on that, and thoughts become thoughts of their own.
// What belongs to nothing is left out.
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
