import {token, url} from '../../support.js'
import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'
import {betaTool} from '@anthropic-ai/sdk/helpers/beta/json-schema'

const sdk = new Anthropic({baseURL: url, apiKey: token, maxRetries: 0})

const asked = ({text, image}) => ({role: 'user', content: [
	...image ? [{type: 'image', source: {type: 'base64', media_type: 'image/png', data: image}}] : [], {type: 'text', text},
]})

// thinking is asked for by budget, but of the vendor's models that know it no more.
const params = model => ({
	model: model.name, max_tokens: 8192,
	thinking: model.adaptive ? {type: 'adaptive', display: 'summarized'} : {type: 'enabled', budget_tokens: 2048},
})

const join = (content, type, field) => content.filter(block => block.type === type).map(block => block[field]).join('')

const step = ({content, usage}) => {
	assert.ok(usage.input_tokens > 0 && usage.output_tokens > 0)
	return {text: join(content, 'text', 'text'), thought: join(content, 'thinking', 'thinking')}
}

const byHand = (name, answer) => ({name, dialect: 'messages', thoughts: true, open({system, tools, run}) {
	const messages = []
	return async (question, model) => {
		messages.push(asked(question))
		for (const steps = []; ;) {
			const message = await answer({
				...params(model), system, messages, tools: tools.map(({name, description, json}) => ({name, description, input_schema: json})),
			})
			messages.push({role: 'assistant', content: message.content})
			steps.push(step(message))
			const calls = message.content.filter(block => block.type === 'tool_use')
			assert.equal(message.stop_reason, calls.length ? 'tool_use' : 'end_turn')
			if (calls.length === 0) return steps
			messages.push({role: 'user', content: calls.map(({id, name, input}) => ({type: 'tool_result', tool_use_id: id, content: run(name, input)}))})
		}
	}
}})

const runner = stream => ({name: `anthropic toolRunner${stream ? ', streamed' : ''}`, dialect: 'messages', thoughts: true, open({system, tools}) {
	let messages = []
	const runnable = tools.map(({name, description, json, run}) => betaTool({name, description, inputSchema: json, run}))
	return async (question, model) => {
		const runner = sdk.beta.messages.toolRunner({
			...params(model), system, messages: [...messages, asked(question)], tools: runnable, thread: false, stream, max_iterations: 10,
		})
		const steps = []
		for await (const turn of runner) steps.push(step(stream ? await turn.finalMessage() : turn))
		messages = runner.params.messages
		return steps
	}
}})

export default [
	byHand('anthropic messages.stream', params => sdk.messages.stream(params).finalMessage()),
	byHand('anthropic messages.create', params => sdk.messages.create(params)),
	runner(true), runner(false),
]
