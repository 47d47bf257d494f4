import {token, url} from '../../support.js'
import assert from 'node:assert/strict'
import OpenAI from 'openai'
import {ResponsesToolRunner} from 'openai/helpers/responses-tool-runner'

const sdk = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})

const functions = tools => tools.map(({name, description, json}) => ({type: 'function', function: {name, description, parameters: json}}))

const asked = ({text, image}) => ({role: 'user', content: image
	? [{type: 'image_url', image_url: {url: 'data:image/png;base64,' + image}}, {type: 'text', text}] : text})

const answered = ({choices: [{message}]}) => ({text: message.content ?? ''})

const stream = {name: 'openai chat.completions.stream', dialect: 'chat', open({system, tools, run}) {
	const messages = [{role: 'system', content: system}]
	return async (question, model) => {
		messages.push(asked(question))
		for (const steps = []; ;) {
			const completion = await sdk.chat.completions.stream({
				model: model.name, messages, tools: functions(tools), reasoning_effort: 'medium', stream_options: {include_usage: true},
			}).finalChatCompletion()
			const [{message, finish_reason}] = completion.choices
			assert.ok(completion.usage.prompt_tokens > 0 && completion.usage.completion_tokens > 0)
			messages.push(message)
			steps.push(answered(completion))
			assert.equal(finish_reason, message.tool_calls?.length ? 'tool_calls' : 'stop')
			if (finish_reason === 'stop') return steps
			for (const {id, function: {name, arguments: given}} of message.tool_calls) {
				messages.push({role: 'tool', tool_call_id: id, content: run(name, JSON.parse(given))})
			}
		}
	}
}}

const runTools = {name: 'openai chat.completions.runTools', dialect: 'chat', open({system, tools}) {
	let messages = [{role: 'developer', content: system}]
	return async (question, model) => {
		const runner = sdk.chat.completions.runTools({
			model: model.name, messages: [...messages, asked(question)], reasoning_effort: 'medium', stream: true,
			tools: tools.map(({name, description, json, run}) => (
				{type: 'function', function: {name, description, parameters: json, parse: JSON.parse, function: given => run(given)}})),
		})
		await runner.finalContent()
		messages = runner.messages
		return runner.allChatCompletions().map(answered)
	}
}}

const whole = {name: 'openai chat.completions.create', dialect: 'chat', thoughts: true, open({system, tools, run}) {
	const messages = [{role: 'system', content: system}]
	return async (question, model) => {
		messages.push(asked(question))
		for (const steps = []; ;) {
			const completion = await sdk.chat.completions.create({model: model.name, messages, tools: functions(tools), reasoning_effort: 'medium'})
			const [{message}] = completion.choices
			messages.push(message)
			steps.push({...answered(completion), thought: message.reasoning_content ?? ''})
			if (!message.tool_calls?.length) return steps
			for (const {id, function: {name, arguments: given}} of message.tool_calls) {
				messages.push({role: 'tool', tool_call_id: id, content: run(name, JSON.parse(given))})
			}
		}
	}
}}

const item = ({text, image}) => ({role: 'user', content: [
	...image ? [{type: 'input_image', image_url: 'data:image/png;base64,' + image, detail: 'auto'}] : [], {type: 'input_text', text},
]})

const stateless = {
	store: false, include: ['reasoning.encrypted_content'], reasoning: {effort: 'medium', summary: 'auto'},
}

// unparsed leaves out what the SDK's parser adds to items: the vendor refuses it in the next call
// (https://github.com/openai/openai-python/issues/2374).
const unparsed = output => output.map(({parsed_arguments, ...item}) => (
	item.type === 'message' ? {...item, content: item.content.map(({parsed, ...part}) => part)} : item))

const step = ({output, output_text}) => ({
	text: output_text,
	thought: output.flatMap(item => item.type === 'reasoning' ? item.summary.map(part => part.text) : []).join(''),
})

const tool = ({name, description, json}) => ({type: 'function', name, description, parameters: json, strict: false})

const responses = {name: 'openai responses.stream', dialect: 'responses', thoughts: true, open({system, tools, run}) {
	const input = []
	return async (question, model) => {
		input.push(item(question))
		for (const steps = []; ;) {
			const response = await sdk.responses.stream({...stateless, instructions: system, model: model.name, input, tools: tools.map(tool)}).finalResponse()
			assert.equal(response.status, 'completed')
			assert.ok(response.usage.input_tokens > 0 && response.usage.output_tokens > 0)
			input.push(...unparsed(response.output))
			steps.push(step(response))
			const calls = response.output.filter(item => item.type === 'function_call')
			if (calls.length === 0) return steps
			for (const {call_id, name, arguments: given} of calls) {
				input.push({type: 'function_call_output', call_id, output: run(name, JSON.parse(given))})
			}
		}
	}
}}

const runner = {name: 'openai ResponsesToolRunner', dialect: 'responses', thoughts: true, open({system, tools}) {
	const outputs = []
	const functions = tools.map(one => ({tool: tool(one), execute: given => outputs[outputs.push(one.run(given)) - 1]}))
	const runner = new ResponsesToolRunner({functions})
	let input = []
	return async (question, model) => {
		input.push(item(question))
		const steps = []
		let called = []
		for await (const {response} of runner.iterate(sdk, {...stateless, instructions: system, model: model.name, input: [...input]}, {stream: true})) {
			input.push(...called.map(({call_id}) => ({type: 'function_call_output', call_id, output: outputs.shift()})), ...unparsed(response.output))
			called = response.output.filter(item => item.type === 'function_call')
			steps.push(step(response))
		}
		return steps
	}
}}

export default [stream, runTools, whole, responses, runner]
