package console

import (
	"encoding/json"
	"fmt"
	"strings"
)

// program is a request for which the template "snippets" shows programs to copy. Their key is always the variable GATEWAY_TOKEN.
type program struct {
	// Base is the gateway's address, and Body the JSON that is sent to the path.
	Base, Path, Body, Model, Prompt string
	Languages                       []string
	// Video: the request creates a video, which the programs wait for and download.
	Video bool
}

// The operations that also have programs with the SDKs of OpenAI.
const (
	createChat  = "createChatCompletion"
	createVideo = "createVideo"
)

// programFor returns the request of an operation for a model; nil without a model, or if no program is known.
func programFor(base, operation, model, prompt string, stream bool) *program {
	known := map[string]struct{ path, body string }{
		createChat:        {"/v1/chat/completions", `{"model": %s, "messages": [{"role": "user", "content": %s}]`},
		createVideo:       {"/v1/videos", `{"model": %s, "prompt": %s, "seconds": "4"`},
		"createResponse":  {"/v1/responses", `{"model": %s, "input": %s`},
		"createMessage":   {"/v1/messages", `{"model": %s, "max_tokens": 1024, "messages": [{"role": "user", "content": %s}]`},
		"createEmbedding": {"/v1/embeddings", `{"model": %s, "input": %s`},
		"createImage":     {"/v1/images/generations", `{"model": %s, "prompt": %s`},
		"createSpeech":    {"/v1/audio/speech", `{"model": %s, "input": %s, "voice": "alloy"`},
	}
	request, ok := known[operation]
	if !ok || model == "" {
		return nil
	}
	p := &program{Base: base, Path: request.path, Model: model, Prompt: prompt, Video: operation == createVideo}
	p.Body = fmt.Sprintf(request.body, quoted(model), quoted(prompt))
	switch operation {
	case createChat, createVideo:
		p.Languages = []string{"curl", "Python", "Node", "Go"}
	default:
		p.Languages = []string{"curl", "Go"}
		if stream {
			p.Body += `, "stream": true`
		}
	}
	p.Body += "}"
	return p
}

// quoted formats a text as a string literal of Python, JavaScript, Go and JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a text always encodes
	return string(raw)
}

// shell formats a text as one word of a shell.
func shell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
