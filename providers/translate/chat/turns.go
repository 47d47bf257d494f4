package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

type message struct {
	rawjson.Object

	at form.Path
}

func (r *reading) readMessages() {
	messages := r.root.Get("messages")
	r.Turns = make([]form.Turn, 0, messages.Len())
	for i, value := range messages.Items() {
		m := message{value.Object(), form.In("messages", i)}
		r.loss.DropOthers(m.at, m.Object, "role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio",
			"reasoning_content", "reasoning", "cache_control", "prompt_cache_breakpoint")
		turn := r.turn(&m)
		markLast(turn.Blocks, max(form.MarkOf(m.Get("cache_control")), form.MarkOf(m.Get("prompt_cache_breakpoint"))))
		if turn.Role == form.System && len(r.Turns) == 0 {
			r.System = append(r.System, turn.Blocks...)
			continue
		}
		r.Turns = append(r.Turns, turn)
	}
	if n := len(r.Turns); n > 0 {
		markLast(r.Turns[n-1].Blocks, r.mark)
	}
}

// markLast puts the mark of a message on its last block.
func markLast(blocks []form.Block, mark form.Mark) {
	if n := len(blocks); n > 0 && mark != form.NoMark {
		blocks[n-1].Cache = mark
	}
}

func (r *reading) turn(m *message) form.Turn {
	turn := form.Turn{At: m.at}
	name := m.Get("name").Text()
	switch role := m.Get("role").Text(); {
	case role.Is("user"):
		turn.Blocks = r.blocks(m.Get("content"), m.at)
	case role.Is("system"), role.Is("developer"):
		turn.Role = form.System
		turn.Blocks = r.blocks(m.Get("content"), m.at)
	case role.Is("assistant"):
		turn.Role = form.Assistant
		turn.Blocks = r.assistant(m)
	case role.Is("tool"), role.Is("function"):
		result := &form.Result{ID: m.Get("tool_call_id").Text().String(), Name: name.String()}
		if role.Is("function") {
			result.ID = legacyID(result.Name)
		}
		result.Blocks = r.blocks(m.Get("content"), m.at)
		turn.Blocks = []form.Block{{Kind: form.BlockResult, Result: result, At: m.at}}
		for i := range result.Blocks {
			turn.Blocks[0].Cache = max(turn.Blocks[0].Cache, result.Blocks[i].Cache)
			result.Blocks[i].Cache = form.NoMark
		}
		return turn
	default:
		r.Refuse(m.at.Field("role").String(), "The role must be system, developer, user, assistant, tool or function.")
	}
	if !name.Empty() {
		r.loss.Drop(m.at.Field("name").Name())
	}
	return turn
}

// legacyID returns an id for a call of the old form, which has none.
func legacyID(name string) string { return "call_" + name }

// assistant reads a turn of the model: its thoughts, its text, and its calls.
func (r *reading) assistant(m *message) []form.Block {
	var blocks []form.Block
	thought := m.Get("reasoning_content").Text() // of DeepSeek and compatible servers
	if thought.Empty() {
		thought = m.Get("reasoning").Text() // of OpenRouter and vLLM
	}
	if !thought.Empty() {
		blocks = append(blocks, form.Block{Kind: form.BlockThought, Text: thought, At: m.at})
	}
	blocks = append(blocks, r.blocks(m.Get("content"), m.at)...)
	if refusal := m.Get("refusal").Text(); !refusal.Empty() {
		blocks = append(blocks, form.Block{Kind: form.BlockText, Text: refusal, At: m.at})
	}
	if !m.Get("audio").Absent() {
		// The id of an answer's sound is valid only at the upstream that made it.
		r.Refuse(m.at.Field("audio").String(), "The sound of an earlier answer cannot be translated for the model's upstream.")
	}
	for i, value := range m.Get("tool_calls").Items() {
		blocks = append(blocks, r.call(value, m.at.Item("tool_calls", i)))
	}
	if call := m.Get("function_call"); !call.Absent() {
		name := call.Get("name").Text().String()
		blocks = append(blocks, form.Block{
			Kind: form.BlockCall, At: m.at.Field("function_call"),
			Call: form.Call{ID: legacyID(name), Name: name, Input: input(call.Get("arguments"))},
		})
	}
	turn := form.Turn{Role: form.Assistant, Blocks: blocks}
	turn.Settle()
	return turn.Blocks
}

// call reads a tool call, and the signature that Google's endpoint of this dialect adds: https://ai.google.dev/gemini-api/docs/openai
func (r *reading) call(value rawjson.Value, at form.Path) form.Block {
	block := form.Block{Kind: form.BlockCall, At: at}
	block.Call.ID = value.Get("id").Text().String()
	if custom := value.Get("custom"); custom.IsObject() {
		block.Call.Name, block.Call.Custom = custom.Get("name").Text().String(), true
		block.Call.Input = form.CustomInput(custom.Get("input").Text())
	} else {
		function := value.Get("function")
		block.Call.Name, block.Call.Input = function.Get("name").Text().String(), input(function.Get("arguments"))
	}
	if block.Call.Name == "" {
		r.Refuse(at.String(), "A call must be of a function or of a custom tool, by its name.")
	}
	if signature := signature(value); signature != nil {
		block.State = []form.State{{Kind: form.StateGemini, Data: signature.Inner()}}
	}
	block.Cache = form.MarkOf(value.Get("cache_control"))
	return block
}

// signature returns Google's signature next to a call, nil for none.
func signature(call rawjson.Value) rawjson.Text {
	if text := call.At("extra_content", "google", "thought_signature").Text(); !text.Empty() {
		return text
	}
	return nil
}

// input reads the arguments of a call. They are a text; some clients send an object, which is accepted, too.
func input(arguments rawjson.Value) rawjson.Value {
	if arguments.IsObject() {
		return arguments
	}
	return form.ReadArguments(arguments.Text())
}
