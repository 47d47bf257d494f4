package translatetest

import (
	"bytes"
	"encoding/json"
	"testing"
)

// chatChunk has the members of a chunk: openai-node 7.55, ChatCompletionChunk, and the fields of compatible servers that are written.
type chatChunk struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created *int64          `json:"created"`
	Model   string          `json:"model"`
	Choices *[]chatChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type chatChoice struct {
	Index        *int            `json:"index"`
	Delta        *chatDelta      `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

type chatDelta struct {
	Role      *string     `json:"role"`
	Content   *string     `json:"content"`
	Refusal   *string     `json:"refusal"`
	Thought   *string     `json:"reasoning_content"`
	ToolCalls []chatPiece `json:"tool_calls"`
	Legacy    *chatInput  `json:"function_call"`
}

type chatPiece struct {
	Index        *int            `json:"index"`
	ID           *string         `json:"id"`
	Type         *string         `json:"type"`
	Function     *chatInput      `json:"function"`
	Custom       *chatInput      `json:"custom"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

type chatInput struct {
	Name      *string `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Input     *string `json:"input,omitempty"`
}

// ChatAnswer is one choice of a completion.
type ChatAnswer struct {
	Content, Refusal, Thought, Finish string
	Calls                             []ChatCall
	Logprobs                          []json.RawMessage
}

// ChatCall is a call of a custom tool or of a function.
type ChatCall struct {
	ID, Name, Input, Signature string
	Custom                     bool
}

// chatStream follows the chunks of a completion.
type chatStream struct {
	testing.TB
	head    chatChunk
	seen    bool
	answers map[int]*ChatAnswer
	usage   json.RawMessage
}

// CheckChat fails the test if OpenAI's SDKs or the AI SDK cannot follow a stream. All chunks have one id. A choice begins with its role and
// ends with its finish_reason. Indices of calls have no gaps, a call begins once, its pieces have a function, and its arguments are an
// object. The stream has an end, which may be an error.
func CheckChat(tb testing.TB, stream []byte) {
	tb.Helper()
	FoldChat(tb, stream)
}

// FoldChat checks a stream as CheckChat does, and returns its choices and its usage, nil for none.
func FoldChat(tb testing.TB, stream []byte) (answers map[int]*ChatAnswer, usage json.RawMessage) {
	tb.Helper()
	s := &chatStream{TB: tb, answers: make(map[int]*ChatAnswer)}
	done := false
	for block := range bytes.SplitSeq(bytes.TrimSuffix(stream, []byte("\n\n")), []byte("\n\n")) {
		data, is := bytes.CutPrefix(block, []byte("data: "))
		switch {
		case bytes.HasPrefix(block, []byte(": ")):
		case !is || done:
			tb.Errorf("%s is no event, or behind the last one", block)
		case string(data) == "[DONE]":
			done = true
			s.checkEnd()
		default:
			done = s.take(data)
		}
	}
	if !done {
		tb.Error("the stream has no end")
	}
	return s.answers, s.usage
}

// checkEnd checks that each choice has ended.
func (s *chatStream) checkEnd() {
	s.Helper()
	if len(s.answers) == 0 {
		s.Error("no choice")
	}
	for i, answer := range s.answers {
		if answer.Finish == "" {
			s.Errorf("choice %d does not end", i)
		}
		if called := len(answer.Calls) > 0; (answer.Finish == "tool_calls" || answer.Finish == "function_call") && !called ||
			answer.Finish == "stop" && called {
			s.Errorf("choice %d ends by %s, calls: %t", i, answer.Finish, called)
		}
		for _, call := range answer.Calls {
			if answer.Finish == "tool_calls" && !call.Custom && json.Unmarshal([]byte(call.Input), new(map[string]any)) != nil {
				s.Errorf("the arguments of %s are %q", call.ID, call.Input)
			}
		}
	}
}

// take reads a chunk, and reports whether it is an error, which ends the stream.
func (s *chatStream) take(data []byte) (ended bool) {
	s.Helper()
	var chunk chatChunk
	if err := json.Unmarshal(data, &chunk); err != nil {
		s.Errorf("%s: %v", data, err)
		return false
	}
	if chunk.Error != nil {
		return true
	}
	if chunk.ID == "" || chunk.Object != "chat.completion.chunk" || chunk.Created == nil || chunk.Choices == nil {
		s.Errorf("a member is missing: %s", data)
		return false
	}
	if s.seen && (chunk.ID != s.head.ID || *chunk.Created != *s.head.Created || chunk.Model != s.head.Model) {
		s.Errorf("a chunk of another answer: %s", data)
	}
	s.head, s.seen = chunk, true
	if s.usage != nil {
		s.Errorf("behind the usage: %s", data)
	}
	if len(*chunk.Choices) == 0 {
		s.usage = chunk.Usage
		for i, answer := range s.answers {
			if answer.Finish == "" {
				s.Errorf("usage before choice %d has ended", i)
			}
		}
	} else if chunk.Usage != nil && string(chunk.Usage) != "null" {
		s.Errorf("usage beside choices: %s", data)
	}
	for _, choice := range *chunk.Choices {
		s.choice(choice, data)
	}
	return false
}

func (s *chatStream) choice(choice chatChoice, data []byte) {
	s.Helper()
	if choice.Index == nil || choice.Delta == nil {
		s.Errorf("no index or no delta: %s", data)
		return
	}
	answer, known := s.answers[*choice.Index]
	if known == (choice.Delta.Role != nil) || choice.Delta.Role != nil && *choice.Delta.Role != "assistant" {
		s.Errorf("the role stands in the first chunk of a choice alone: %s", data)
	}
	if !known {
		answer = new(ChatAnswer)
		s.answers[*choice.Index] = answer
	}
	if answer.Finish != "" {
		s.Errorf("choice %d has ended: %s", *choice.Index, data)
	}
	delta := choice.Delta
	for _, piece := range []struct {
		to   *string
		text *string
	}{{&answer.Content, delta.Content}, {&answer.Refusal, delta.Refusal}, {&answer.Thought, delta.Thought}} {
		if piece.text != nil {
			if *piece.text == "" && delta.Role == nil {
				s.Errorf("an empty piece: %s", data)
			}
			*piece.to += *piece.text
		}
	}
	var logprobs struct{ Content []json.RawMessage }
	if len(choice.Logprobs) > 0 && json.Unmarshal(choice.Logprobs, &logprobs) != nil {
		s.Errorf("logprobs: %s", data)
	}
	answer.Logprobs = append(answer.Logprobs, logprobs.Content...)
	for _, piece := range delta.ToolCalls {
		s.piece(answer, &piece, data)
	}
	if delta.Legacy != nil {
		s.legacy(answer, delta.Legacy, data)
	}
	if choice.FinishReason != nil {
		answer.Finish = *choice.FinishReason
	}
}

func (s *chatStream) piece(answer *ChatAnswer, piece *chatPiece, data []byte) {
	s.Helper()
	input := piece.Function
	if piece.Custom != nil {
		input = piece.Custom
	}
	if piece.Index == nil || input == nil || *piece.Index > len(answer.Calls) || *piece.Index < 0 {
		s.Errorf("no function, or an index with a gap: %s", data)
		return
	}
	begins := *piece.Index == len(answer.Calls)
	if begins != (piece.ID != nil && *piece.ID != "") || begins != (input.Name != nil && *input.Name != "") || begins != (piece.Type != nil) {
		s.Errorf("id, type and name stand in the first piece of a call alone: %s", data)
	}
	if begins {
		answer.Calls = append(answer.Calls, ChatCall{Custom: piece.Custom != nil})
		call := &answer.Calls[*piece.Index]
		if piece.ID != nil && input.Name != nil {
			call.ID, call.Name = *piece.ID, *input.Name
		}
		var extra struct {
			Google struct {
				Signature string `json:"thought_signature"`
			}
		}
		if piece.ExtraContent != nil && json.Unmarshal(piece.ExtraContent, &extra) != nil {
			s.Errorf("extra content: %s", data)
		}
		call.Signature = extra.Google.Signature
	} else if piece.ExtraContent != nil {
		s.Errorf("extra content behind the first piece of a call: %s", data)
	}
	for _, text := range []*string{input.Arguments, input.Input} {
		if text != nil {
			answer.Calls[*piece.Index].Input += *text
		}
	}
}

// legacy reads a piece of the only call in the old form.
func (s *chatStream) legacy(answer *ChatAnswer, input *chatInput, data []byte) {
	s.Helper()
	if begins := len(answer.Calls) == 0; begins != (input.Name != nil) || input.Arguments == nil {
		s.Errorf("the name stands in the first piece of a call alone: %s", data)
		return
	}
	if input.Name != nil {
		answer.Calls = append(answer.Calls, ChatCall{Name: *input.Name})
	}
	answer.Calls[0].Input += *input.Arguments
}
