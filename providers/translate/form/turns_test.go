package form_test

import (
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// prompt makes a prompt of lines, one a turn: "s", "u" or "a", a colon, and its blocks with " | " between them: a text,
// "!id name" for a call, "?id name" for its result, "~text" for a thought.
func prompt(lines ...string) *form.Prompt {
	p := new(form.Prompt)
	p.Fields[form.FieldTurns], p.Fields[form.FieldResultID] = "messages", "call_id"
	for i, line := range lines {
		side, rest, _ := strings.Cut(line, ":")
		turn := form.Turn{Role: map[string]form.Role{"u": form.User, "a": form.Assistant, "s": form.System}[side], At: form.In("messages", i)}
		for j, word := range strings.Split(rest, " | ") {
			block := form.Block{At: turn.At.Item("content", j)}
			rest := word[min(1, len(word)):]
			id, name, _ := strings.Cut(rest, " ")
			switch {
			case strings.HasPrefix(word, "!"):
				block.Kind, block.Call = form.BlockCall, form.Call{ID: id, Name: name, Input: rawjson.Value("{}")}
			case strings.HasPrefix(word, "?"):
				block.Kind, block.Result = form.BlockResult,
					&form.Result{ID: id, Name: name, Blocks: []form.Block{{Text: rawjson.Quote("")}, {Text: rawjson.Quote("r")}}}
			case strings.HasPrefix(word, "~"):
				block.Kind, block.Text = form.BlockThought, rawjson.Quote(rest)
			default:
				block.Text = rawjson.Quote(word)
			}
			turn.Blocks = append(turn.Blocks, block)
		}
		p.Turns = append(p.Turns, turn)
	}
	return p
}

// lines is the other way.
func lines(turns []form.Turn) (all []string) {
	for _, turn := range turns {
		var words []string
		for _, block := range turn.Blocks {
			switch block.Kind {
			case form.BlockCall:
				words = append(words, "!"+block.Call.ID+" "+block.Call.Name)
			case form.BlockResult:
				words = append(words, "?"+block.Result.ID+" "+block.Result.Name)
			case form.BlockThought:
				words = append(words, "~"+block.Text.String())
			default:
				words = append(words, block.Text.String())
			}
		}
		all = append(all, []string{"u:", "a:", "s:"}[turn.Role]+strings.Join(words, " | "))
	}
	return all
}

func TestArrange(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in, want []string
		inline   bool
		thoughts bool
	}{
		"sides alternate": {
			in:   []string{"u:one", "u:two", "a:three", "a:four", "u:five"},
			want: []string{"u:one | two", "a:three | four", "u:five"},
		},
		"nothing is said by empty texts": {
			in:   []string{"u:one", "a: \t\n", "u:two | ", "a: | !c f", "u:?c f"},
			want: []string{"u:one | two", "a:!c f", "u:?c f"},
		},
		// MoonshotAI/kosong #45, QuantumNous/new-api #3040, BerriAI/litellm #16525: parallel results each in a user message.
		"parallel results are one turn": {
			in:   []string{"u:go", "a:!1 f | !2 g", "u:?1 ", "u:?2 "},
			want: []string{"u:go", "a:!1 f | !2 g", "u:?1 f | ?2 g"},
		},
		"results come first, in the order of the calls": {
			in:   []string{"u:go", "a:!1 f | !2 g", "u:look | ?2 ", "u:?1 | and"},
			want: []string{"u:go", "a:!1 f | !2 g", "u:?1 f | ?2 g | look | and"},
		},
		// router-for-me/CLIProxyAPI #5199: results paired by place.
		"a late result goes behind its call": {
			in:   []string{"u:go", "a:!1 f", "u:wait", "a:yes", "u:?1 | so"},
			want: []string{"u:go", "a:!1 f", "u:?1 f | wait", "a:yes", "u:so"},
		},
		"an early result goes behind its call": {
			in:   []string{"u:go | ?1 ", "a:!1 f"},
			want: []string{"u:go", "a:!1 f", "u:?1 f"},
		},
		"steps stay apart": {
			in:   []string{"u:go", "a:!1 f", "u:?1 ", "a:!2 f", "u:?2 "},
			want: []string{"u:go", "a:!1 f", "u:?1 f", "a:!2 f", "u:?2 f"},
		},
		"a call interrupted by the user has its result at once": {
			in:   []string{"u:go", "a:!1 f | !2 g", "u:?1 ", "a:hm", "u:?2 "},
			want: []string{"u:go", "a:!1 f | !2 g", "u:?1 f | ?2 g", "a:hm"},
		},
		"without ids by name, the first unanswered first": {
			in:   []string{"u:go", "a:! f | ! g | ! f", "u:? g | ? f | ? f", "a:! f", "u:? f"},
			want: []string{"u:go", "a:!call_1 f | !call_2 g | !call_3 f", "u:?call_1 f | ?call_2 g | ?call_3 f", "a:!call_4 f", "u:?call_4 f"},
		},
		"an id that is made is no other's": {
			in:   []string{"u:go", "a:!call_2 f | ! g", "u:?call_2 | ? g"},
			want: []string{"u:go", "a:!call_2 f | !call_2#2 g", "u:?call_2 f | ?call_2#2 g"},
		},
		// The older functions of OpenAI's chat completions have the name for an id.
		"an id that comes again is another one": {
			in:   []string{"u:go", "a:!f f", "u:?f ", "a:!f f", "u:?f ", "a:!f f | !f f", "u:?f | ?f "},
			want: []string{"u:go", "a:!f f", "u:?f f", "a:!f#2 f", "u:?f#2 f", "a:!f#3 f | !f#4 f", "u:?f#3 f | ?f#4 f"},
		},
		"later instructions are marked text of the user": {
			in:   []string{"u:one", "s:be brief", "a:two", "s:be kind", "u:three"},
			want: []string{"u:one | <system>be brief</system>", "a:two", "u:<system>be kind</system> | three"},
		},
		// platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages: behind a user turn, and before an
		// assistant's or at the end.
		"later instructions stand in place where they may": {
			inline: true,
			in:     []string{"u:one", "s:be brief", "s:be kind", "a:two", "s:be fast", "u:three", "s:be right"},
			want:   []string{"u:one", "s:be brief | be kind", "a:two", "u:<system>be fast</system> | three", "s:be right"},
		},
		"instructions never part a call from its result": {
			inline: true,
			in:     []string{"u:one", "a:!1 f", "s:be brief", "u:?1 | two"},
			want:   []string{"u:one", "a:!1 f", "u:?1 f | <system>be brief</system> | two"},
		},
		"instructions behind results": {
			inline: true,
			in:     []string{"u:one", "a:!1 f", "s:be brief", "u:?1 ", "a:two"},
			want:   []string{"u:one", "a:!1 f", "u:?1 f", "s:be brief", "a:two"},
		},
		"thoughts that cannot be said": {
			in:   []string{"u:one", "a:~hm", "u:two", "a:~hm | !1 f", "u:?1 "},
			want: []string{"u:one | two", "a:!1 f", "u:?1 f"},
		},
		"thoughts that can": {
			thoughts: true,
			in:       []string{"u:one", "a:~hm | !1 f", "u:?1 ", "a:~so | yes"},
			want:     []string{"u:one", "a:~hm | !1 f", "u:?1 f", "a:~so | yes"},
		},
		// tailcallhq/forgecode #3071: "The final block in an assistant message cannot be `thinking`."
		"thoughts that nothing follows": {
			thoughts: true,
			in:       []string{"u:one", "a:~hm", "u:two", "a:yes | ~so", "u:three"},
			want:     []string{"u:one | two", "a:yes", "u:three"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prompt(test.in...)
			before := strings.Join(lines(p.Turns), "\n")
			_, turns, fault := p.Arrange(form.Arrangement{
				Takes:        func(*form.Block) bool { return test.thoughts },
				InlineSystem: test.inline,
			})
			if fault != nil {
				t.Fatal(fault)
			}
			if got, want := strings.Join(lines(turns), "\n"), strings.Join(test.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if after := strings.Join(lines(p.Turns), "\n"); after != before {
				t.Errorf("the prompt became\n%s", after)
			}
			for _, turn := range turns {
				for _, block := range turn.Blocks {
					if block.Kind == form.BlockResult && len(block.Result.Blocks) != 1 {
						t.Errorf("the result of %q has %d blocks", block.Result.ID, len(block.Result.Blocks))
					}
				}
			}
		})
	}
}

func TestArrangeApart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ in, want []string }{
		"users stay apart, system where it is": {
			in:   []string{"u:one", "u:two | three", "s:be brief", "u:four", "a:five", "s:be long", "a:six", "a:seven"},
			want: []string{"u:one", "u:two | three", "s:be brief", "u:four", "a:five", "s:be long", "a:six | seven"},
		},
		"results are behind their calls": {
			in:   []string{"u:go", "a:!1 f", "a:!2 g", "s:hurry", "u:?2  | and", "u:?1 ", "u:more", "a:done"},
			want: []string{"u:go", "a:!1 f | !2 g", "u:?1 f | ?2 g", "s:hurry", "u:and", "u:more", "a:done"},
		},
		"a result before its call": {
			in:   []string{"u:go", "u:?1 ", "a:!1 f"},
			want: []string{"u:go", "a:!1 f", "u:?1 f"},
		},
		"nothing is said by empty texts": {
			in:   []string{"u: ", "u:one", "s: ", "a: ", "a:two"},
			want: []string{"u:one", "a:two"},
		},
	} {
		_, turns, fault := prompt(test.in...).Arrange(form.Arrangement{Apart: true})
		if fault != nil {
			t.Errorf("%s: %v", name, fault)
			continue
		}
		if got, want := strings.Join(lines(turns), "\n"), strings.Join(test.want, "\n"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestArrangeRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in    []string
		param string
	}{
		"a result of no call":     {[]string{"u:go", "a:!1 f", "u:?1 | ?2 "}, "messages[2].content[1].call_id"},
		"a result of another id":  {[]string{"u:go", "a:!1 f", "u:?2 f"}, "messages[2].content[0].call_id"},
		"a result without a call": {[]string{"u:go | ? f"}, "messages[0].content[1].call_id"},
		"nothing said":            {[]string{"u: ", "a:"}, "messages"},
		"nothing at all":          {nil, "messages"},
		// Every vendor refuses a call without a result: microsoft/vscode #299295 (Gemini), JohnnyZ93/oai-compatible-copilot #35
		// (Anthropic), QwenLM/qwen-code #606 (OpenAI). LiteLLM puts a text in its place where modify_params is set, not by
		// default: https://docs.litellm.ai/docs/completion/message_sanitization. vertesia/llumiverse #563: such a text misleads.
		"a call without a result":   {[]string{"u:go", "a:!1 f | !2 g", "u:?2 "}, "messages[1].content[0]"},
		"a call at the end":         {[]string{"u:go", "a:!1 f"}, "messages[1].content[0]"},
		"a call that others follow": {[]string{"u:go", "a:!1 f", "u:no", "a:!1 f", "u:?1 "}, "messages[1].content[0]"},
		// RooCodeInc/Roo-Code #10027
		"a second result of a call":        {[]string{"u:go", "a:!1 f", "u:?1 | ?1 "}, "messages[2].content[1].call_id"},
		"a second result by a tool's name": {[]string{"u:go", "a:! f", "u:? f | ? f"}, "messages[2].content[1].call_id"},
		"a result of an empty one":         {[]string{"u:go", "a:!1 f", "u:? "}, "messages[2].content[0].call_id"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, fault := prompt(test.in...).Arrange(form.Arrangement{}); fault == nil || fault.Param != test.param {
				t.Errorf("got %+v, want a fault of %s", fault, test.param)
			}
		})
	}
}

// TestArrangeOnlySystem: a prompt with only system messages gets a user's turn (braintrustdata/braintrust-proxy #250).
func TestArrangeOnlySystem(t *testing.T) {
	t.Parallel()
	p := prompt("u: ")
	p.System = []form.Block{{Text: rawjson.Quote("one")}, {Text: rawjson.Quote("two")}, {Text: rawjson.Quote(" ")}}
	system, turns, fault := p.Arrange(form.Arrangement{})
	if fault != nil || len(system) != 1 || !system[0].Text.Is("one") || strings.Join(lines(turns), "\n") != "u:two" {
		t.Errorf("got %v, %q and %v", system, lines(turns), fault)
	}
}

func TestSinceUser(t *testing.T) {
	t.Parallel()
	for want, p := range []*form.Prompt{
		prompt("a:one", "u:?1 "), prompt("u:go", "a:!1 f", "u:?1 ", "a:!2 f", "u:?2 "), prompt("a:!1 f", "u:?1 | more", "a:!2 f"),
	} {
		if got := form.SinceUser(p.Turns); got != want {
			t.Errorf("%q: got %d, want %d", lines(p.Turns), got, want)
		}
	}
}
