package messages_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

var update = flag.Bool("update", false, "write the golden files")

// client makes a client's call of a body.
func client(body string) *providers.Call {
	return &providers.Call{Model: "public", Stream: true, Content: providers.Content{Body: []byte(body)}}
}

// read reads a client's call, which must be in order.
func read(t *testing.T, body string) (*form.Prompt, form.Ask, *form.Loss) {
	t.Helper()
	loss := new(form.Loss)
	p, ask, fault := messages.Read(client(body), loss)
	if fault != nil {
		t.Fatal(fault)
	}
	return p, ask, loss
}

// traits of generations of models.
var (
	modern = providers.AnthropicTraits{
		Adaptive: true, Effort: true, XHigh: true, Schema: true, InlineSystem: true, MaxOutput: 128000,
	}
	budget = providers.AnthropicTraits{
		Sampling: true, OneSampler: true, Budget: true, Schema: true, Prefill: true, MaxOutput: 64000,
	}
	always = providers.AnthropicTraits{
		Adaptive: true, AlwaysThinks: true, Effort: true, XHigh: true, Schema: true, InlineSystem: true,
		MaxOutput: 128000,
	}
	old = providers.AnthropicTraits{Sampling: true, Prefill: true, MaxOutput: 4096}
)

// write writes a prompt as an indented document.
func write(t *testing.T, p *form.Prompt, traits providers.AnthropicTraits, loss *form.Loss) (string, *providers.Fault) {
	t.Helper()
	payload, fault := messages.Write(p, form.Target{Model: "claude", Traits: providers.Traits{Anthropic: traits}}, loss)
	if fault != nil {
		return "", fault
	}
	return pretty(t, bytes.Join(payload, nil)), nil
}

func pretty(t *testing.T, document []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, document, "", "  "); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return out.String() + "\n"
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s", name, got)
	}
}

// losses shows what was lost.
func losses(l *form.Loss) string {
	return fmt.Sprintf("dropped: %s; changed: %s", form.Listed(l.Dropped), form.Listed(l.Changed))
}

// describe shows a prompt, for golden files.
func describe(p *form.Prompt) string {
	var b strings.Builder
	for _, block := range p.System {
		fmt.Fprintf(&b, "system %s\n", describeBlock(&block))
	}
	for _, turn := range p.Turns {
		fmt.Fprintf(&b, "%s %s\n", []string{"user", "assistant", "system"}[turn.Role], turn.At)
		for _, block := range turn.Blocks {
			fmt.Fprintf(&b, "  %s\n", describeBlock(&block))
		}
	}
	for _, tool := range p.Tools {
		fmt.Fprintf(&b, "tool %s %s %s", tool.Name, tool.Description, tool.Schema)
		if tool.Strict != nil {
			fmt.Fprintf(&b, " strict=%t", *tool.Strict)
		}
		fmt.Fprintf(&b, " mark=%d %s\n", tool.Cache, tool.At)
	}
	fmt.Fprintf(&b, "choice %+v parallel %v\n", p.Choice, p.Parallel == nil || *p.Parallel)
	fmt.Fprintf(&b, "output %d %s\n", p.Output.Kind, p.Output.Schema)
	fmt.Fprintf(&b, "thinking %+v\n", p.Thinking)
	s := p.Sampling
	fmt.Fprintf(&b, "sampling temperature=%s top_p=%s top_k=%s\n", s.Temperature, s.TopP, s.TopK)
	fmt.Fprintf(&b, "limits max=%s stop=%q user=%s\n", p.Limits.MaxTokens, p.Limits.Stop, p.User)
	for _, own := range p.Own {
		fmt.Fprintf(&b, "own %s must=%t\n", own.Name, own.Must)
	}
	return b.String()
}

func describeBlock(block *form.Block) string {
	var b strings.Builder
	switch block.Kind {
	case form.BlockText:
		fmt.Fprintf(&b, "text %s", []byte(block.Text))
	case form.BlockThought:
		fmt.Fprintf(&b, "thought %s", []byte(block.Text))
	case form.BlockCall:
		fmt.Fprintf(&b, "call %s %s %s", block.Call.ID, block.Call.Name, block.Call.Input)
	case form.BlockResult:
		fmt.Fprintf(&b, "result %s failed=%t", block.Result.ID, block.Result.Failed)
		for i := range block.Result.Blocks {
			fmt.Fprintf(&b, " [%s]", describeBlock(&block.Result.Blocks[i]))
		}
	case form.BlockMedia:
		m := block.Media
		fmt.Fprintf(&b, "media %d %s data=%s url=%s file=%s text=%s title=%s", m.Kind, m.Type, m.Data, []byte(m.URL), []byte(m.File),
			[]byte(m.Text), []byte(m.Title))
	default:
		fmt.Fprintf(&b, "block %d", block.Kind)
	}
	for _, state := range block.State {
		fmt.Fprintf(&b, " state %c %s %s %s", state.Kind, state.Data, []byte(state.Text), state.ID)
	}
	if block.Cache != form.NoMark {
		fmt.Fprintf(&b, " mark=%d", block.Cache)
	}
	return b.String() + " " + block.At.String()
}
