package gemini

import (
	"bytes"
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// arrange returns the blocks of a turn of the model as in the original answer. It joins the pieces of one text or one thought. Another
// vendor's state was sent on the next call, or at the end: it belongs to the thoughts since the previous call. arrange puts it before all
// blocks since then, as the vendors require.
func arrange(blocks []form.Block) []form.Block {
	arranged := make([]form.Block, 0, len(blocks))
	for len(blocks) > 0 {
		end := len(blocks)
		if call := slices.IndexFunc(blocks, func(b form.Block) bool { return b.Kind == form.BlockCall }); call >= 0 {
			end = call + 1
		}
		arranged = appendStep(arranged, blocks[:end])
		blocks = blocks[end:]
	}
	return arranged
}

// appendStep appends the model's blocks up to a call.
func appendStep(to, blocks []form.Block) []form.Block {
	var states []form.State
	rest := make([]form.Block, 0, len(blocks))
	for len(blocks) > 0 {
		block := blocks[0]
		if block.Kind == form.BlockState {
			states = append(states, block.State...)
			blocks = blocks[1:]
			continue
		}
		texts := []rawjson.Text{block.Text}
		n := 1
		for ; n < len(blocks) && continues(&block, &blocks[n]); n++ {
			texts = append(texts, blocks[n].Text)
			block.State = blocks[n].State
		}
		if n > 1 {
			block.Text = rawjson.Join("", texts...)
		}
		rest = append(rest, block)
		blocks = blocks[n:]
	}
	at := form.Path{}
	if len(rest) > 0 {
		at = rest[0].At
	}
	for _, state := range states {
		thought := form.Block{Kind: form.BlockThought, Text: state.Text, State: []form.State{state}, At: at}
		if spoken := slices.IndexFunc(rest, func(b form.Block) bool { return b.Kind == form.BlockThought && len(b.State) == 0 }); spoken >= 0 {
			thought.Text, rest[spoken].Text = claim(state, rest[spoken].Text)
			if rest[spoken].Text.Empty() {
				rest = slices.Delete(rest, spoken, spoken+1)
			}
		}
		to = append(to, thought)
	}
	return append(to, rest...)
}

// continues reports whether a block is a further piece of another.
func continues(block, next *form.Block) bool {
	return block.Kind == next.Kind && len(block.State) == 0 && (block.Kind == form.BlockText || block.Kind == form.BlockThought) &&
		block.Text != nil && next.Text != nil
}

// claim splits the thought of a state off the text of the thoughts.
func claim(state form.State, spoken rawjson.Text) (thought, rest rawjson.Text) {
	switch state.Kind {
	case form.StateOpenAI:
		return spoken, nil
	case form.StateAnthropic:
		if left, found := bytes.CutPrefix(spoken.Decoded(), state.Text.Decoded()); found {
			return state.Text, rawjson.Quote(string(left))
		}
	}
	return state.Text, spoken
}
