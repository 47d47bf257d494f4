import {token, url} from '../../support.js'
import assert from 'node:assert/strict'
import {GoogleGenAI} from '@google/genai'

const sdk = new GoogleGenAI({apiKey: token, httpOptions: {baseUrl: url}})

const asked = ({text, image}) => [...image ? [{inlineData: {mimeType: 'image/png', data: image}}] : [], {text}]

const thinking = model => ({includeThoughts: true, ...model.level ? {thinkingLevel: 'MEDIUM'} : {thinkingBudget: 2048}})

const declared = tools => [{functionDeclarations: tools.map(({name, description, json}) => ({name, description, parametersJsonSchema: json}))}]

const step = parts => ({
	text: parts.filter(part => part.text && !part.thought).map(part => part.text).join(''),
	thought: parts.filter(part => part.text && part.thought).map(part => part.text).join(''),
})

const ran = (run, calls) => calls.map(({id, name, args}) => ({functionResponse: {...id ? {id} : {}, name, response: {output: run(name, args)}}}))

// reopened is the same conversation with another model: a Chat keeps to its own.
const reopened = (chat, model, system, tools) => sdk.chats.create({model: model.name, history: chat?.getHistory(true) ?? [], config: {
	systemInstruction: system, thinkingConfig: thinking(model), tools,
}})

const chat = {name: 'genai chats, streamed', dialect: 'gemini', thoughts: true, open({system, tools, run}) {
	let chat
	return async (question, model) => {
		chat = reopened(chat, model, system, declared(tools))
		const steps = []
		for (let message = asked(question); message.length > 0;) {
			const parts = [], calls = []
			let last
			for await (const chunk of await chat.sendMessageStream({message})) {
				parts.push(...chunk.candidates?.[0].content?.parts ?? [])
				calls.push(...chunk.functionCalls ?? [])
				last = chunk
			}
			assert.equal(last.candidates[0].finishReason, 'STOP')
			assert.ok(last.usageMetadata.promptTokenCount > 0 && last.usageMetadata.candidatesTokenCount > 0)
			steps.push(step(parts))
			message = ran(run, calls)
		}
		return steps
	}
}}

const automatic = {name: 'genai automatic function calling', dialect: 'gemini', thoughts: true, open({system, tools, run}) {
	let chat
	const callable = {tool: async () => declared(tools)[0], callTool: async calls => ran(run, calls)}
	return async (question, model) => {
		chat = reopened(chat, model, system, [callable])
		const before = chat.getHistory().length
		await chat.sendMessage({message: asked(question)})
		return chat.getHistory().slice(before).filter(content => content.role === 'model').map(content => step(content.parts))
	}
}}

export default [chat, automatic]
