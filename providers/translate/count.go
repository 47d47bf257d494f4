package translate

import (
	"fmt"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/messages"
	"modelrelay/providers/translate/responses"
)

// count translates the call of a token count. If the upstream has no such operation, the answer is an estimate, and no request is sent.
func (t *Translation) count(call *providers.Call, targets []providers.Endpoint) *providers.Fault {
	read, field := messages.Read, "input_tokens"
	if t.from.Format == providers.Gemini {
		read, field = gemini.ReadCount, "totalTokens"
	}
	prompt, _, fault := read(call, &t.loss)
	if fault != nil {
		return fault
	}
	declared, _ := form.Declared(prompt.Tools)
	if fault = checkChoice(prompt, declared); fault != nil {
		return fault
	}
	write := func(n int64) []byte { return fmt.Appendf(nil, `{"%s":%d}`, field, n) }
	to, counted := targets[0], "input_tokens"
	var pieces providers.Payload
	target := form.Target{Model: t.target.Model, Traits: t.traits()}
	switch to.Format {
	case providers.Anthropic:
		pieces, fault = messages.WriteCount(prompt, target, &t.loss)
	case providers.Gemini:
		counted = "totalTokens"
		pieces, fault = gemini.WriteCount(prompt, target, &t.loss)
	default:
		at := slices.IndexFunc(targets, func(e providers.Endpoint) bool { return e.Operation == providers.InputTokens })
		if at < 0 || !target.Traits.OpenAI.Reasons {
			t.loss.Change(field)
			t.Call.Endpoint, t.Counted = to, write(estimate(prompt))
			return nil
		}
		to = targets[at]
		pieces, fault = responses.WriteCount(prompt, target, &t.loss)
	}
	if fault != nil {
		return fault
	}
	t.Call.Endpoint, t.Call.Pieces = to, pieces
	t.document = func(document rawjson.Value) ([]byte, *providers.Fault) {
		n, ok := document.Get(counted).Count()
		if !ok {
			return nil, broken(nil)
		}
		return write(n), nil
	}
	return nil
}

func (t *Translation) embed(call *providers.Call) *providers.Fault {
	own := *call
	own.Model = call.Named()
	embedding, fault := EmbedRequest(&own, t.target.Model, estimate, &t.loss)
	if fault != nil {
		return fault
	}
	t.Call.Endpoint, t.Call.Pieces = embedding.Endpoint, embedding.Pieces
	t.document = func(document rawjson.Value) ([]byte, *providers.Fault) { return EmbedAnswer(embedding, document) }
	return nil
}

// The parts of an estimate, in quarters of a token.
const (
	quarters   = 4
	ofLetter   = 1
	ofOther    = 2
	ofRune     = 4
	ofTurn     = 4 * quarters
	ofTool     = 8 * quarters
	ofImage    = 1600 * quarters
	ofDocument = 3000 * quarters
)

// estimate returns the approximate number of input tokens of a call.
func estimate(p *form.Prompt) int64 {
	var sum int64
	blocks(p.System, &sum)
	for i := range p.Turns {
		sum += ofTurn
		blocks(p.Turns[i].Blocks, &sum)
	}
	for i := range p.Tools {
		tool := &p.Tools[i]
		sum += ofTool + ofText([]byte(tool.Name)) + ofText(tool.Description) + ofText(tool.Schema)
	}
	return (sum + quarters - 1) / quarters
}

func blocks(all []form.Block, sum *int64) {
	for i := range all {
		block := &all[i]
		switch block.Kind {
		case form.BlockMedia:
			switch block.Media.Kind {
			case form.Document:
				*sum += ofDocument
			case form.PlainText:
				*sum += ofText(block.Media.Text.Inner())
			default:
				*sum += ofImage
			}
		case form.BlockCall:
			*sum += ofText([]byte(block.Call.Name)) + ofText(block.Call.Input)
		case form.BlockResult:
			*sum += ofText(block.Result.Object)
			blocks(block.Result.Blocks, sum)
		default:
			*sum += ofText(block.Text.Inner())
		}
	}
}

// ofText estimates a piece of JSON. An escape counts as its character.
func ofText(text []byte) (sum int64) {
	const unicodeEscape = 6 // \uXXXX
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == ' ':
			sum += ofLetter
		case c == '\\' && i+1 < len(text) && text[i+1] == 'u':
			sum += ofRune
			i += unicodeEscape - 1
		case c == '\\':
			sum += ofOther
			i++
		case c < 0x80:
			sum += ofOther
		case c >= 0xC0: // the first byte of a rune
			sum += ofRune
		}
	}
	return sum
}
