import {broken, collect, mapped, passed, picture, question, said, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {test} from 'node:test'
import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({baseURL: url, apiKey: token, maxRetries: 0})
const ask = {model: 'claude-sonnet-4-5', max_tokens: 100, system: 'Be short.', messages: [{role: 'user', content: question}]}

test('messages', async () => {
	for (const sdk of [client, new Anthropic({baseURL: url, apiKey: null, authToken: token, maxRetries: 0})]) {
		const answer = await sdk.messages.create({...ask, model: 'claude-mapped'}, {headers: {'anthropic-beta': 'files-api-2025-04-14'}})
		assert.equal(answer.content[0].text, said)
		assert.equal(answer.stop_reason, 'end_turn')
		const got = await mapped('messages', 'claude-mapped', 'claude-haiku-4-5')
		assert.deepEqual(got.header['Anthropic-Beta'], ['files-api-2025-04-14'])
	}
})

test('messages, streamed', async () => {
	const stream = client.messages.stream(ask)
	assert.equal(await stream.finalText(), said)
	const types = (await collect(await client.messages.create({...ask, stream: true}))).map(event => event.type)
	assert.deepEqual([types[0], types.at(-1)], ['message_start', 'message_stop'])
	await passed('messages', ask.model)
})

test('messages with tools and a picture of several MB', async () => {
	const params = {
		...ask, tools: [{name: 'look', input_schema: {type: 'object', properties: {echo: {type: 'string'}}}}],
		messages: [{role: 'user', content: [
			{type: 'image', source: {type: 'base64', media_type: 'image/png', data: picture().toString('base64')}}, {type: 'text', text: question},
		]}],
	}
	const called = await client.messages.create(params)
	assert.equal(called.stop_reason, 'tool_use')
	const [use] = called.content
	assert.match(use.input.echo, /lighthouse/)
	assert.ok((await passed('messages', ask.model)).size > 5 << 20)
	const streamed = await client.messages.stream(params).finalMessage()
	assert.deepEqual(streamed.content[0].input, use.input)
	const told = await client.messages.create({...params, messages: [
		...params.messages, {role: 'assistant', content: called.content},
		{role: 'user', content: [{type: 'tool_result', tool_use_id: use.id, content: 'by the harbour'}]},
	]})
	assert.equal(told.content[0].text, 'The tool said: by the harbour')
})

test('count tokens', async () => {
	const {model, system, messages} = ask
	assert.ok((await client.messages.countTokens({model, system, messages})).input_tokens > 0)
	await passed('messages.count_tokens', model)
})

test('models', async () => {
	const names = (await collect(client.models.list())).map(model => model.id)
	for (const name of ['claude-mapped', 'gpt-4o', 'org/llama:70b']) assert.ok(names.includes(name), name)
	const model = await client.models.retrieve('org/llama:70b')
	assert.deepEqual([model.type, model.id], ['model', 'org/llama:70b'])
})

test('errors are of the SDK\'s classes', async () => {
	for (const [model, kind, status, type, more, options] of [
		['claude-sonnet-4-5', Anthropic.AuthenticationError, 401, 'authentication_error', {}, {headers: {authorization: null, 'x-api-key': 'sk-wrong'}}],
		['nobody', Anthropic.NotFoundError, 404, 'not_found_error'],
		['claude-sonnet-4-5', Anthropic.BadRequestError, 400, 'invalid_request_error', {speed: 'warp'}],
		['claude-sonnet-4-5', Anthropic.BadRequestError, 400, 'invalid_request_error', {}, {headers: {'anthropic-version': null}}],
		['anthropic-says-400', Anthropic.BadRequestError, 400, 'invalid_request_error'],
		['anthropic-says-401', Anthropic.InternalServerError, 502, 'api_error'],
		['anthropic-says-429', Anthropic.RateLimitError, 429, 'rate_limit_error'],
		['anthropic-says-500', Anthropic.InternalServerError, 502, 'api_error'],
		['anthropic-says-503', Anthropic.InternalServerError, 529, 'overloaded_error'],
		['anthropic-says-html', Anthropic.InternalServerError, 502, 'api_error'],
	]) {
		await assert.rejects(client.messages.create({...ask, model, ...more}, options), error => {
			assert.ok(error instanceof kind, `${model}: got ${error.constructor.name}: ${error.message}`)
			assert.deepEqual([error.status, error.type], [status, type], model)
			return true
		})
	}
})

test('errors within streams', async () => {
	const {events, error} = await broken(await client.messages.create({...ask, model: 'anthropic-cut', stream: true}))
	assert.equal(events, 2)
	assert.ok(error instanceof Anthropic.APIError, error.stack)
	assert.equal(error.type, 'api_error')
})

test('messages in the background by a header', async () => {
	for (const model of [ask.model, 'gpt-4o', 'gemini-2.5-flash']) {
		const {data, response} = await client.messages.create({...ask, model}, {headers: {Prefer: 'respond-async, wait=60'}}).withResponse()
		assert.equal(data.content[0].text, said)
		assert.match(response.headers.get('content-location'), /^\/v1\/tasks\/call_\w+\/result$/)

		const started = await client.messages.create({...ask, model, stream: true}, {headers: {Prefer: 'respond-async'}}).asResponse()
		assert.equal(started.status, 202)
		let task = await started.json()
		assert.equal(task.kind, 'call')
		const types = (await collect(await client.get(`/v1/tasks/${task.id}/events`, {stream: true}))).map(event => event.type)
		assert.deepEqual([types[0], types.at(-1)], ['message_start', 'message_stop'])
		while (['queued', 'in_progress'].includes(task.status)) task = await client.get(`/v1/tasks/${task.id}`, {query: {wait: 30}})
		assert.equal(task.status, 'completed')
		assert.ok(task.usage.total_tokens > 0)
	}
	const failed = client.messages.create({...ask, model: 'anthropic-says-400'}, {headers: {Prefer: 'respond-async, wait=60'}, maxRetries: 2})
	await assert.rejects(failed, {status: 400, type: 'invalid_request_error'})
})
