package form_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestEnvelope(t *testing.T) {
	t.Parallel()
	for _, state := range []form.State{
		{Kind: form.StateGemini, Data: []byte("CiQB==")},
		{Kind: form.StateGeminiBefore, Data: []byte(`a\/b`)},
		{Kind: form.StateAnthropic, Data: []byte("EqoB"), Text: rawjson.Text(`"I \u2014 think\n"`)},
		{Kind: form.StateRedacted, Data: []byte("x")},
		{Kind: form.StateOpenAI, Data: []byte("gAAAA"), ID: "rs_0123"},
	} {
		envelope := state.Envelope()
		if strings.Trim(envelope, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" {
			t.Errorf("%s needs escapes", envelope)
		}
		got, ok := form.OpenEnvelope([]byte(envelope))
		if !ok || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", state) {
			t.Errorf("got %q, %t, want %q", got, ok, state)
		}
	}
}

func TestOpenEnvelopeOfOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "mr1.", "mr1.g", "mr1.g.", "mr1.x.WyJhIiwiYiIsImMiXQ", "mr1.g.%%", "mr2.g.WyJhIiwiYiIsImMiXQ", "EqoBCkgIARABGAIiQ",
		"mr1.g.WyJhIl0", "mr1.g.WzEsMiwzXQ", "mr1.gxWyJhIiwiYiIsImMiXQ", "mr1.g.eyJhIjoxfQ",
	} {
		if state, ok := form.OpenEnvelope([]byte(text)); ok {
			t.Errorf("%s: got %v", text, state)
		}
	}
}

// FuzzEnvelope opens any bytes, and closes what it opened: the same state comes out of it.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte("mr1.g.WyJhIiwiYiIsImMiXQ"))
	f.Add([]byte(form.State{Kind: form.StateOpenAI, Data: []byte("x"), ID: "rs_1"}.Envelope()))
	f.Add([]byte("mr1."))
	f.Fuzz(func(t *testing.T, text []byte) {
		state, ok := form.OpenEnvelope(text)
		if !ok {
			return
		}
		again, ok := form.OpenEnvelope([]byte(state.Envelope()))
		if !ok || fmt.Sprintf("%q", again) != fmt.Sprintf("%q", state) {
			t.Errorf("got %q, %t, want %q", again, ok, state)
		}
	})
}

func TestSettle(t *testing.T) {
	t.Parallel()
	text := func(s string) form.Block { return form.Block{Kind: form.BlockText, Text: rawjson.Quote(s)} }
	call := func(id string) form.Block { return form.Block{Kind: form.BlockCall, Call: form.Call{ID: id}} }
	state := func(kind form.StateKind, data string) form.Block {
		return form.Block{Kind: form.BlockState, State: []form.State{{Kind: kind, Data: []byte(data), Text: rawjson.Text(`"t"`)}}}
	}
	for _, test := range []struct {
		name   string
		blocks []form.Block
		want   string
	}{
		{"nothing to settle", []form.Block{text("a"), call("1")}, `text call`},
		{"of the call behind it", []form.Block{state('g', "1"), call("1"), call("2")}, `call(g1) call`},
		{"each on its own", []form.Block{state('g', "1"), call("1"), state('g', "2"), call("2")}, `call(g1) call(g2)`},
		{"of the text behind it", []form.Block{state('g', "1"), text("a"), call("1")}, `text(g1) call`},
		{"of the text before it", []form.Block{text("a"), state('p', "1"), call("1")}, `text(g1) call`},
		{"both of one text", []form.Block{state('g', "1"), text("a"), state('p', "2")}, `text(g1g2)`},
		{"of no text before it", []form.Block{call("1"), state('p', "1")}, `call`},
		{"of nothing", []form.Block{text("a"), state('g', "1")}, `text`},
		{
			"thoughts are blocks",
			[]form.Block{state('a', "1"), state('r', "2"), state('o', "3"), text("a")},
			`thought(a1) thought(r2) thought(o3) text`,
		},
		{"across a thought", []form.Block{state('g', "1"), state('a', "2"), call("1")}, `thought(a2) call(g1)`},
		{"nothing but state", []form.Block{state('g', "1")}, ``},
	} {
		turn := form.Turn{Role: form.Assistant, Blocks: test.blocks}
		turn.Settle()
		if got := blocksText(turn.Blocks); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func blocksText(blocks []form.Block) string {
	names := map[form.BlockKind]string{form.BlockText: "text", form.BlockCall: "call", form.BlockThought: "thought", form.BlockState: "state"}
	var words []string
	for _, block := range blocks {
		word := names[block.Kind]
		for i, state := range block.State {
			if i == 0 {
				word += "("
			}
			word += string(state.Kind) + string(state.Data)
		}
		if len(block.State) > 0 {
			word += ")"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func TestWithCalls(t *testing.T) {
	t.Parallel()
	for reason := form.StopEnd; reason <= form.StopOther; reason++ {
		want := reason
		if reason == form.StopEnd {
			want = form.StopCalls
		}
		stop := form.Stop{Reason: reason}
		if got := stop.WithCalls(true).Reason; got != want {
			t.Errorf("%d with calls: got %d, want %d", reason, got, want)
		}
		if got := stop.WithCalls(false).Reason; got != reason {
			t.Errorf("%d without calls: got %d", reason, got)
		}
	}
}

func TestEnvelopeIsOfJSON(t *testing.T) {
	t.Parallel()
	// What stands between the quotes may be escaped; the envelope must still hold one JSON array.
	state, ok := form.OpenEnvelope([]byte(form.State{Kind: form.StateRedacted, Data: []byte(`\u0041\"`)}.Envelope()))
	if !ok || !json.Valid(append(append([]byte{'"'}, state.Data...), '"')) {
		t.Errorf("got %q, %t", state, ok)
	}
}

func TestHidden(t *testing.T) {
	t.Parallel()
	thought := rawjson.Text(`"h\n\ud83d"`)
	if got := form.Hidden([]byte(form.Hide(thought))); string(got) != string(thought) {
		t.Errorf("got %s, want %s", got, thought)
	}
	for _, none := range []string{"", "mr1.n.", "mr1.n.!", "mr1.n.e30", "mr1.g.ImhtIg", "ImhtIg"} {
		if got := form.Hidden([]byte(none)); got != nil {
			t.Errorf("%q: got %s", none, got)
		}
	}
	if _, ours := form.OpenEnvelope([]byte(form.Hide(thought))); ours || !form.Enveloped([]byte(form.Hide(thought))) {
		t.Error("it is no state of a vendor's, and a translation put it there")
	}
}
