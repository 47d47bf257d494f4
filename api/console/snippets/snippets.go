// Package snippets makes programs that call the gateway, for people to copy.
package snippets

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Program is a program in one language that repeats a page's action. The key is always the variable GATEWAY_TOKEN.
type Program struct{ ID, Name, Code string }

// The kinds of programs.
const (
	Chat  = "chat"
	Video = "video"
)

// For returns programs for a gateway at an address: curl, Python, Node, Go.
func For(base, kind, model, prompt string) []Program {
	m, p := quoted(model), quoted(prompt)
	var curl, python, node, golang string
	switch kind {
	case Video:
		body := fmt.Sprintf(`{"model": %s, "prompt": %s, "seconds": "4"}`, m, p)
		curl = fmt.Sprintf("curl %s/v1/videos \\\n  -H \"Authorization: Bearer $GATEWAY_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  -d %s\n# then, with the id of the answer:\ncurl %s/v1/videos/ID -H \"Authorization: Bearer $GATEWAY_TOKEN\"\ncurl %s/v1/videos/ID/content -H \"Authorization: Bearer $GATEWAY_TOKEN\" -o video.mp4", base, shell(body), base, base)
		python = fmt.Sprintf("import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=%s, api_key=os.environ[\"GATEWAY_TOKEN\"])\nvideo = client.videos.create_and_poll(model=%s, prompt=%s, seconds=\"4\")\nclient.videos.download_content(video.id).write_to_file(\"video.mp4\")", quoted(base+"/v1"), m, p)
		node = fmt.Sprintf("import OpenAI from 'openai';\nimport { writeFile } from 'node:fs/promises';\n\nconst client = new OpenAI({ baseURL: %s, apiKey: process.env.GATEWAY_TOKEN });\nlet video = await client.videos.create({ model: %s, prompt: %s, seconds: '4' });\nwhile (video.status === 'queued' || video.status === 'in_progress') {\n  await new Promise((resolve) => setTimeout(resolve, 2000));\n  video = await client.videos.retrieve(video.id);\n}\nconst content = await client.videos.downloadContent(video.id);\nawait writeFile('video.mp4', Buffer.from(await content.arrayBuffer()));", quoted(base+"/v1"), m, p)
		golang = goProgram(base, "/v1/videos", body)
	default:
		body := fmt.Sprintf(`{"model": %s, "messages": [{"role": "user", "content": %s}]}`, m, p)
		curl = fmt.Sprintf("curl %s/v1/chat/completions \\\n  -H \"Authorization: Bearer $GATEWAY_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  -d %s", base, shell(body))
		python = fmt.Sprintf("import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=%s, api_key=os.environ[\"GATEWAY_TOKEN\"])\nchat = client.chat.completions.create(\n    model=%s, messages=[{\"role\": \"user\", \"content\": %s}]\n)\nprint(chat.choices[0].message.content)", quoted(base+"/v1"), m, p)
		node = fmt.Sprintf("import OpenAI from 'openai';\n\nconst client = new OpenAI({ baseURL: %s, apiKey: process.env.GATEWAY_TOKEN });\nconst chat = await client.chat.completions.create({\n  model: %s, messages: [{ role: 'user', content: %s }],\n});\nconsole.log(chat.choices[0].message.content);", quoted(base+"/v1"), m, p)
		golang = goProgram(base, "/v1/chat/completions", body)
	}
	return []Program{{"curl", "curl", curl}, {"python", "Python", python}, {"node", "Node", node}, {"go", "Go", golang}}
}

// ForCall returns programs that make a call like one of the log, none without a model. The log does not have the text of the call.
func ForCall(base, operation, model string, stream bool) []Program {
	const prompt = "Hello"
	if model == "" {
		return nil
	}
	m, p := quoted(model), quoted(prompt)
	streamed := ""
	if stream {
		streamed = `, "stream": true`
	}
	message := fmt.Sprintf(`[{"role": "user", "content": %s}]`, p)
	switch operation {
	case "createChatCompletion":
		return For(base, Chat, model, prompt)
	case "createVideo":
		return For(base, Video, model, prompt)
	case "createResponse":
		return httpSnippets(base, "/v1/responses", fmt.Sprintf(`{"model": %s, "input": %s%s}`, m, p, streamed))
	case "createMessage":
		return httpSnippets(base, "/v1/messages", fmt.Sprintf(`{"model": %s, "max_tokens": 1024, "messages": %s%s}`, m, message, streamed))
	case "createEmbedding":
		return httpSnippets(base, "/v1/embeddings", fmt.Sprintf(`{"model": %s, "input": %s}`, m, p))
	case "createImage":
		return httpSnippets(base, "/v1/images/generations", fmt.Sprintf(`{"model": %s, "prompt": %s}`, m, p))
	case "createSpeech":
		return httpSnippets(base, "/v1/audio/speech", fmt.Sprintf(`{"model": %s, "input": %s, "voice": "alloy"}`, m, p))
	}
	return nil
}

// httpSnippets returns programs that send a body to a path: curl and Go.
func httpSnippets(base, path, body string) []Program {
	curl := fmt.Sprintf("curl %s%s \\\n  -H \"Authorization: Bearer $GATEWAY_TOKEN\" \\\n  -H 'Content-Type: application/json' \\\n  -d %s",
		base, path, shell(body))
	return []Program{{"curl", "curl", curl}, {"go", "Go", goProgram(base, path, body)}}
}

func goProgram(base, path, body string) string {
	return fmt.Sprintf("package main\n\nimport (\n\t\"io\"\n\t\"log\"\n\t\"net/http\"\n\t\"os\"\n\t\"strings\"\n)\n\nfunc main() {\n\tbody := %s\n\treq, err := http.NewRequest(\"POST\", %s, strings.NewReader(body))\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\treq.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"GATEWAY_TOKEN\"))\n\treq.Header.Set(\"Content-Type\", \"application/json\")\n\tres, err := http.DefaultClient.Do(req)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer res.Body.Close()\n\tio.Copy(os.Stdout, res.Body)\n}", quoted(body), quoted(base+path))
}

// quoted formats a text as a string literal of Python, JavaScript, Go and JSON.
func quoted(text string) string {
	raw, _ := json.Marshal(text) // a text always encodes
	return string(raw)
}

// shell formats a text as one word of a shell.
func shell(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
