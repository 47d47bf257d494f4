package translate

import (
	"bytes"
	"context"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// Caller is the owner of stored state: the id of a token, and the token's own key, without which it cannot be read.
type Caller struct {
	ID  string
	Key providers.Secret
}

// Recall remembers for chat clients what upstreams want back of the calls of tools that they made: the format has no place
// for it. It is safe for concurrent use.
type Recall interface {
	// Keep remembers an entry under a name. It never waits.
	Keep(caller Caller, name string, entry []byte)
	// Find gives the entries of names, those that there are, in one round trip; none when it cannot be found out.
	Find(ctx context.Context, caller Caller, names []string) map[string][]byte
}

// maxEntry bounds what is kept of one call, in bytes.
const maxEntry = 64 << 10

// between stands between the envelopes of an entry.
const between = '\n'

// keep remembers the states of a call.
func keep(memory Recall, caller Caller, call string, states []form.State) {
	var entry []byte
	for i, state := range states {
		if i > 0 {
			entry = append(entry, between)
		}
		entry = append(entry, state.Envelope()...)
	}
	if len(entry) <= maxEntry {
		memory.Keep(caller, call, entry)
	}
}

// recollect puts back what upstreams want of the calls in the prompt that came without it.
func recollect(ctx context.Context, memory Recall, caller Caller, prompt *form.Prompt) {
	var names []string
	for _, turn := range prompt.Turns {
		for i := range turn.Blocks {
			if lacksState(&turn.Blocks[i]) {
				names = append(names, turn.Blocks[i].Call.ID)
			}
		}
	}
	if len(names) == 0 {
		return
	}
	found := memory.Find(ctx, caller, names)
	if len(found) == 0 {
		return
	}
	for i := range prompt.Turns {
		remind(&prompt.Turns[i], found)
	}
}

func lacksState(block *form.Block) bool {
	return block.Kind == form.BlockCall && block.Call.ID != "" && len(block.State) == 0
}

// remind puts what was found on the calls of a turn. Thoughts before its first call begin the turn, as they did when it was
// said; they stand for what the client repeats of them without a signature.
func remind(turn *form.Turn, found map[string][]byte) {
	blocks := make([]form.Block, 0, len(turn.Blocks)+1)
	first, thought := true, false
	for _, block := range turn.Blocks {
		if lacksState(&block) {
			var thoughts []form.Block
			for part := range bytes.SplitSeq(found[block.Call.ID], []byte{between}) {
				state, ours := form.OpenEnvelope(part)
				switch {
				case !ours:
				case state.Kind == form.StateGemini:
					block.State = append(block.State, state)
				default:
					thoughts = append(thoughts, form.Block{Kind: form.BlockThought, Text: state.Text, State: []form.State{state}, At: block.At})
				}
			}
			thought = thought || len(thoughts) > 0
			if first {
				blocks = slices.Insert(blocks, 0, thoughts...)
			} else {
				blocks = append(blocks, thoughts...)
			}
		}
		first = first && block.Kind != form.BlockCall
		blocks = append(blocks, block)
	}
	if thought {
		blocks = slices.DeleteFunc(blocks, func(b form.Block) bool { return b.Kind == form.BlockThought && len(b.State) == 0 })
	}
	turn.Blocks = blocks
}
