package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

type message struct {
	role, name, callID        rawjson.Text
	content, calls            rawjson.Value
	functionCall, audio       rawjson.Value
	refusal, thought, another rawjson.Text
	mark                      form.Mark
	at                        form.Path
}

func (r *reading) readMessages() {
	r.Turns = make([]form.Turn, 0, r.messages.Len())
	for i, value := range r.messages.Items() {
		m := message{at: form.In("messages", i)}
		r.readMessage(&m, value)
		turn := r.turn(&m)
		markLast(turn.Blocks, m.mark)
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

func (r *reading) readMessage(m *message, value rawjson.Value) {
	for name, value := range value.Members() {
		switch string(name.Decoded()) {
		case "role":
			m.role = value.Text()
		case "content":
			m.content = value
		case "name":
			m.name = value.Text()
		case "tool_calls":
			m.calls = value
		case "tool_call_id":
			m.callID = value.Text()
		case "function_call":
			m.functionCall = value
		case "refusal":
			m.refusal = value.Text()
		case "audio":
			m.audio = value
		case "reasoning_content": // of DeepSeek and compatible servers
			m.thought = value.Text()
		case "reasoning": // of OpenRouter and vLLM
			m.another = value.Text()
		case "cache_control", "prompt_cache_breakpoint":
			m.mark = max(m.mark, form.MarkOf(value))
		default:
			dropUnknown(r.loss, m.at, name, value)
		}
	}
	if m.thought.Empty() {
		m.thought = m.another
	}
}

func (r *reading) turn(m *message) form.Turn {
	turn := form.Turn{At: m.at}
	switch {
	case m.role.Is("user"):
		turn.Blocks = r.blocks(m.content, m.at)
	case m.role.Is("system"), m.role.Is("developer"):
		turn.Role = form.System
		turn.Blocks = r.blocks(m.content, m.at)
	case m.role.Is("assistant"):
		turn.Role = form.Assistant
		turn.Blocks = r.assistant(m)
	case m.role.Is("tool"), m.role.Is("function"):
		result := &form.Result{ID: m.callID.String(), Name: m.name.String()}
		if m.role.Is("function") {
			result.ID = legacyID(result.Name)
		}
		result.Blocks = r.blocks(m.content, m.at)
		turn.Blocks = []form.Block{{Kind: form.BlockResult, Result: result, At: m.at}}
		for i := range result.Blocks {
			turn.Blocks[0].Cache = max(turn.Blocks[0].Cache, result.Blocks[i].Cache)
			result.Blocks[i].Cache = form.NoMark
		}
		return turn
	default:
		r.Refuse(m.at.Field("role").String(), "The role must be system, developer, user, assistant, tool or function.")
	}
	if !m.name.Empty() {
		r.loss.Drop(m.at.Field("name").Name())
	}
	return turn
}

// legacyID returns an id for a call of the old form, which has none.
func legacyID(name string) string { return "call_" + name }

// assistant reads a turn of the model: its thoughts, its text, and its calls.
func (r *reading) assistant(m *message) []form.Block {
	var blocks []form.Block
	if !m.thought.Empty() {
		blocks = append(blocks, form.Block{Kind: form.BlockThought, Text: m.thought, At: m.at})
	}
	if blocks = append(blocks, r.blocks(m.content, m.at)...); !m.refusal.Empty() {
		blocks = append(blocks, form.Block{Kind: form.BlockText, Text: m.refusal, At: m.at})
	}
	if !m.audio.Absent() {
		// The id of an answer's sound is valid only at the upstream that made it.
		r.Refuse(m.at.Field("audio").String(), "The sound of an earlier answer cannot be translated for the model's upstream.")
	}
	for i, value := range m.calls.Items() {
		blocks = append(blocks, r.call(value, m.at.Item("tool_calls", i)))
	}
	if !m.functionCall.Absent() {
		name := m.functionCall.Get("name").Text().String()
		blocks = append(blocks, form.Block{
			Kind: form.BlockCall, At: m.at.Field("function_call"),
			Call: form.Call{ID: legacyID(name), Name: name, Input: input(m.functionCall.Get("arguments"))},
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
