package translate

import (
	"bytes"
	"context"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// Caller is the owner of stored state: the id of a token and its key. The state cannot be read without the key.
type Caller struct {
	ID  string
	Key providers.Secret
}

// SignatureCache stores the state of tool calls, which upstreams require in later calls, for chat clients: their format has no field for
// it. It is safe for concurrent use.
type SignatureCache interface {
	// Store stores an entry under a name. It never waits.
	Store(caller Caller, name string, entry []byte)
	// Find returns the existing entries of names in one round trip; none after an error.
	Find(ctx context.Context, caller Caller, names []string) map[string][]byte
}

// maxEntry bounds the stored state of one call, in bytes.
const maxEntry = 64 << 10

// separator separates the envelopes of an entry.
const separator = '\n'

func storeStates(cache SignatureCache, caller Caller, call string, states []form.State) {
	var entry []byte
	for i, state := range states {
		if i > 0 {
			entry = append(entry, separator)
		}
		entry = append(entry, state.Envelope()...)
	}
	if len(entry) <= maxEntry {
		cache.Store(caller, call, entry)
	}
}

// restoreStates adds the stored state to the tool calls of the prompt that lack it.
func restoreStates(ctx context.Context, cache SignatureCache, caller Caller, prompt *form.Prompt) {
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
	found := cache.Find(ctx, caller, names)
	if len(found) == 0 {
		return
	}
	for i := range prompt.Turns {
		restoreTurn(&prompt.Turns[i], found)
	}
}

func lacksState(block *form.Block) bool {
	return block.Kind == form.BlockCall && block.Call.ID != "" && len(block.State) == 0
}

// restoreTurn adds the found states to the calls of a turn. Thoughts before its first call become the beginning of the turn, as in the
// original answer. They replace thoughts that the client repeats without a signature.
func restoreTurn(turn *form.Turn, found map[string][]byte) {
	blocks := make([]form.Block, 0, len(turn.Blocks)+1)
	first, thought := true, false
	for _, block := range turn.Blocks {
		if lacksState(&block) {
			var thoughts []form.Block
			for part := range bytes.SplitSeq(found[block.Call.ID], []byte{separator}) {
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
