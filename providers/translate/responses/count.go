package responses

import (
	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// WriteCount writes the call that counts the input of a prompt, for POST /v1/responses/input_tokens: InputTokenCountParams of
// openai-node 7.55. What it leaves out counts nothing.
func WriteCount(p *form.Prompt, to form.Target, loss *form.Loss) (providers.Payload, *providers.Fault) {
	w := newWriting(p, to, loss)
	w.Begin()
	w.KeyString("model", to.Model)
	w.conversation()
	w.tools()
	w.text()
	w.reasoning()
	w.End()
	return w.Payload(), w.Fault
}
