package responses_test

import (
	"fmt"
	"strings"

	"modelrelay/providers/translate/form"
)

// said writes the content of a prompt, one line for each block, tool and field.
func said(p *form.Prompt) string {
	var lines strings.Builder
	for _, block := range p.System {
		fmt.Fprintf(&lines, "instructions: %s\n", saidBlock(block))
	}
	for _, turn := range p.Turns {
		for _, block := range turn.Blocks {
			fmt.Fprintf(&lines, "%s %s\n", [...]string{"user", "assistant", "system"}[turn.Role], saidBlock(block))
		}
		lines.WriteString("--\n")
	}
	for _, tool := range p.Tools {
		fmt.Fprintf(&lines, "tool %s %s", tool.Name, tool.Description)
		if tool.Schema != nil {
			fmt.Fprintf(&lines, " schema %s", tool.Schema)
		}
		if tool.Strict != nil {
			fmt.Fprintf(&lines, " strict %v", *tool.Strict)
		}
		if tool.Custom {
			fmt.Fprintf(&lines, " custom %s%s", tool.Grammar.Syntax, tool.Grammar.Definition)
		}
		fmt.Fprintf(&lines, " at %s\n", tool.At)
	}
	if p.Choice.Mode != form.ChoiceUnset {
		fmt.Fprintf(&lines, "choice %s %v\n", [...]string{"", "auto", "none", "any"}[p.Choice.Mode], p.Choice.Names)
	}
	if p.Parallel != nil {
		fmt.Fprintf(&lines, "parallel %v\n", *p.Parallel)
	}
	if o := p.Output; o.Kind != form.OutputText {
		fmt.Fprintf(&lines, "output %d %q %s strict %v %s\n", o.Kind, o.Name, o.Schema, o.Strict, o.Description)
	}
	if s := p.Sampling; s.Temperature != nil || s.TopP != nil || s.Logprobs {
		fmt.Fprintf(&lines, "sampling %s %s logprobs %v %s\n", s.Temperature, s.TopP, s.Logprobs, s.TopLogprobs)
	}
	if t := p.Thinking; t != (form.Thinking{}) {
		fmt.Fprintf(&lines, "thinking %d %q show %v\n", t.Mode, t.Effort, t.Show)
	}
	if p.Limits.MaxTokens != nil {
		fmt.Fprintf(&lines, "max %s\n", p.Limits.MaxTokens)
	}
	if p.User != nil {
		fmt.Fprintf(&lines, "for %s\n", p.User)
	}
	for _, own := range p.Own {
		fmt.Fprintf(&lines, "own %s %s must %v\n", own.Name, own.Value, own.Must)
	}
	return lines.String()
}

func saidBlock(b form.Block) string {
	var line string
	switch b.Kind {
	case form.BlockText:
		line = "text " + string(b.Text)
	case form.BlockThought:
		line = "thought " + string(b.Text)
	case form.BlockMedia:
		line = "media " + saidMedia(b.Media)
	case form.BlockCall:
		line = fmt.Sprintf("call %s %s %s", b.Call.ID, b.Call.Name, b.Call.Input)
		if b.Call.Custom {
			line += " custom"
		}
	case form.BlockResult:
		inside := make([]string, len(b.Result.Blocks))
		for i, block := range b.Result.Blocks {
			inside[i] = saidBlock(block)
		}
		line = fmt.Sprintf("result %s [%s]", b.Result.ID, strings.Join(inside, "; "))
	case form.BlockState:
		line = "unsettled"
	}
	for _, state := range b.State {
		line += fmt.Sprintf(" state %c:%s", state.Kind, state.Data)
	}
	if b.Cache != form.NoMark {
		line += fmt.Sprintf(" mark %d", b.Cache)
	}
	return fmt.Sprintf("%s at %s", line, b.At)
}

func saidMedia(m form.Media) string {
	line := [...]string{"image", "document", "plain", "audio", "video"}[m.Kind] + " " + m.Type
	for _, field := range []struct{ name, value string }{
		{"data", string(m.Data)}, {"url", string(m.URL)}, {"file", string(m.File)}, {"text", string(m.Text)}, {"title", string(m.Title)},
	} {
		if field.value != "" {
			line += " " + field.name + " " + field.value
		}
	}
	return line
}
