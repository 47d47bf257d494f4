package translate

import (
	"modelrelay/providers"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/messages"
	"modelrelay/providers/translate/responses"
)

// codec has the functions of a dialect's package.
type codec struct {
	// read reads a client's call. write writes an upstream's call.
	read  func(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault)
	write func(prompt *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault)
	// reader reads an upstream's answer. writer writes a client's answer.
	reader func() form.AnswerReader
	writer func(ask form.Ask) form.AnswerWriter
}

func codecOf(d form.Dialect) codec {
	switch d {
	case form.Responses:
		return codec{responses.Read, responses.Write, responses.NewReader, responses.NewWriter}
	case form.Messages:
		return codec{messages.Read, messages.Write, messages.NewReader, messages.NewWriter}
	case form.Gemini:
		return codec{gemini.Read, gemini.Write, gemini.NewReader, gemini.NewWriter}
	default:
		return codec{chat.Read, chat.Write, chat.NewReader, chat.NewWriter}
	}
}
