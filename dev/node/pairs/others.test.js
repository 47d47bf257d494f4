// What is not a conversation: counting, embeddings, lists of models, tools that must be called, what cannot be said.
import {token, url} from '../support.js'
import {providers} from './clients/ai.js'
import {last, scripted} from './control.js'
import {models, native} from './models.js'
import {anthropic, google, openai, raw} from './raw.js'
import Anthropic from '@anthropic-ai/sdk'
import {ApiError} from '@google/genai'
import {generateText, tool} from 'ai'
import OpenAI from 'openai'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'
import {z} from 'zod'

const translated = (dialect, model) => !native({dialect}, model)

const listed = async pages => {
	const names = []
	for await (const {id, name} of pages) names.push(id ?? name)
	return names
}

test('every model stands in every list', async () => {
	for (const [list, prefix] of [[await openai.models.list(), ''], [await anthropic.models.list(), ''], [await google.models.list(), 'models/']]) {
		const names = await listed(list)
		for (const {name} of models) assert.ok(names.includes(prefix + name), `${name} is not in ${names}`)
	}
	for (const {name} of models) {
		const {supportedActions} = await google.models.get({model: name})
		for (const action of ['generateContent', 'streamGenerateContent', 'countTokens']) assert.ok(supportedActions.includes(action), `${name}: ${supportedActions}`)
	}
})

for (const model of models) {
	test(`tokens are counted of ${model.name}`, async () => {
		const messages = [{role: 'user', content: 'How deep is the harbour at the eastern pier?'}]
		const counted = await anthropic.messages.countTokens({model: model.name, system: 'Be short.', messages})
		assert.ok(counted.input_tokens > 5 && counted.input_tokens < 100, JSON.stringify(counted))
		const {totalTokens} = await google.models.countTokens({model: model.name, contents: messages[0].content})
		assert.ok(totalTokens > 5 && totalTokens < 100, totalTokens)
	})

	for (const [dialect, {whole}] of Object.entries(raw)) {
		if (!translated(dialect, model)) continue
		test(`${dialect} on ${model.name}: the answer says that it was translated, and what was dropped`, async () => {
			const id = randomUUID()
			const asked = {
				chat: ['/v1/chat/completions', {model: model.name, messages: [{role: 'user', content: id}], logit_bias: {42: 1}, user: 'me'}, 'logit_bias'],
				responses: ['/v1/responses', {model: model.name, input: id, store: false, max_tool_calls: 3}, 'max_tool_calls'],
				messages: ['/v1/messages', {model: model.name, max_tokens: 1000, top_k: 3, inference_geo: 'eu', messages: [{role: 'user', content: id}]}, 'inference_geo'],
				gemini: [`/v1beta/models/${model.name}:generateContent`, {contents: [{parts: [{text: id}]}], labels: {a: 'b'}}, 'labels'],
			}[dialect]
			const answer = await scripted(id, [{parts: [{text: 'Aye.'}]}], () => fetch(url + asked[0], {
				method: 'POST', body: JSON.stringify(asked[1]), headers: {authorization: `Bearer ${token}`, 'content-type': 'application/json', 'anthropic-version': '2023-06-01'},
			}))
			assert.equal(answer.status, 200, await answer.clone().text())
			const {operation} = await last(model.name)
			const endpoints = {chat: 'openai.chat', responses: 'openai.responses', messages: 'anthropic.messages', generate: 'gemini.generate_content'}
			assert.equal(answer.headers.get('x-relay-translated'), endpoints[operation])
			assert.ok(answer.headers.get('x-relay-dropped')?.split(', ').includes(asked[2]), answer.headers.get('x-relay-dropped'))
			assert.ok((await answer.text()).includes('Aye.'))
		})

		test(`${dialect} on ${model.name}: an answer that was not translated says nothing of it`, async () => {
			assert.ok(await whole(model.name, 'Ahoy?'))
		})
	}
}

test('what a model cannot be told is refused with the client\'s own field', async () => {
	const refused = async (asked, kind, field) => assert.rejects(asked, error => {
		assert.ok(error instanceof kind, error.stack)
		assert.equal(error.status, 400)
		assert.ok(error.message.includes(field) || error.param?.startsWith(field), `${field}: ${error.message}`)
		return true
	})
	const said = {messages: [{role: 'user', content: 'Ahoy?'}]}
	await refused(openai.chat.completions.create({...said, model: 'claude-sonnet-4-5', n: 2}), OpenAI.BadRequestError, 'n')
	await refused(openai.chat.completions.create({...said, model: 'gemini-3-pro', tools: [{type: 'web_search'}]}), OpenAI.BadRequestError, 'tools[0]')
	await refused(openai.responses.create({model: 'claude-sonnet-4-5', input: 'Ahoy?', previous_response_id: 'resp_1'}), OpenAI.BadRequestError, 'previous_response_id')
	await refused(anthropic.messages.create({
		...said, model: 'gpt-5.5', max_tokens: 100, tools: [{type: 'code_execution_20250825', name: 'code_execution'}],
	}), Anthropic.BadRequestError, 'tools[0]')
	await refused(google.models.generateContent({model: 'claude-sonnet-4-5', contents: 'Ahoy?', config: {tools: [{codeExecution: {}}]}}), ApiError, 'tools[0]')
})

for (const [name, {dialect, of}] of Object.entries(providers)) {
	for (const model of models) {
		test(`${name} on ${model.name}: a tool that must be called`, async () => {
			const id = randomUUID()
			const look = tool({description: 'Looks.', inputSchema: z.object({place: z.string()})}), rest = tool({inputSchema: z.object({})})
			const {toolCalls, finishReason} = await scripted(id, [{parts: [{call: {name: 'look', arguments: {place: 'east'}}}]}], () => generateText({
				model: of(model.name), prompt: `Where is ${id}?`, tools: {look, rest}, toolChoice: {type: 'tool', toolName: 'look'}, maxRetries: 0,
			}))
			assert.deepEqual(toolCalls.map(({toolName, input}) => [toolName, input]), [['look', {place: 'east'}]])
			assert.equal(finishReason, 'tool-calls')
			assert.equal(dialect, providers[name].dialect)
		})
	}
}

test('embeddings of the other vendor', async () => {
	const input = ['a lighthouse', 'a harbour']
	for (const encoding_format of ['float', 'base64', undefined]) {
		const {data, model, usage} = await openai.embeddings.create({model: 'gemini-embedding-001', input, dimensions: 3, encoding_format})
		assert.equal(model, 'gemini-embedding-001')
		assert.deepEqual(data.map(({index}) => index), [0, 1])
		assert.ok(usage.prompt_tokens > 0)
		if (encoding_format === 'base64') {
			assert.equal(Buffer.from(data[0].embedding, 'base64').length, 12)
			continue
		}
		for (const {embedding} of data) {
			assert.equal(embedding.length, 3)
			assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-3, 'of length one')
		}
	}
	const one = await openai.embeddings.create({model: 'gemini-embedding-001', input: input[0]})
	assert.ok(one.data[0].embedding.length > 3)
	const {embeddings} = await google.models.embedContent({model: 'text-embedding-3-small', contents: input, config: {outputDimensionality: 3}})
	assert.deepEqual(embeddings.map(({values}) => values.length), [3, 3])
})
