import {broken, collect, dataURL, mapped, passed, picture, question, said, seen, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {test} from 'node:test'
import OpenAI from 'openai'

const client = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})
const messages = [{role: 'user', content: question}]
const look = {type: 'object', properties: {echo: {type: 'string'}}}

test('chat', async () => {
	const answer = await client.chat.completions.create({model: 'mapped', messages})
	assert.equal(answer.choices[0].message.content, said)
	assert.ok(answer.usage.total_tokens > 0)
	await mapped('chat', 'mapped', 'gpt-4o-mini')
	// OpenAI itself refuses what it does not know; who imitates it may not.
	await client.chat.completions.create({model: 'org/llama:70b', messages, reasoning_effort: 'max', own_field: 1.5})
	await passed('chat', 'org/llama:70b')
})

test('chat, streamed', async () => {
	for (const include_usage of [false, true]) {
		const chunks = await collect(await client.chat.completions.create({
			model: 'gpt-4o', messages, stream: true, ...include_usage ? {stream_options: {include_usage}} : {},
		}))
		assert.equal(chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join(''), said)
		assert.equal(chunks.filter(chunk => chunk.usage).length, include_usage ? 1 : 0)
		const got = JSON.parse((await seen('chat', 'gpt-4o')).text)
		assert.deepEqual(got, {model: 'gpt-4o', messages, stream: true, stream_options: {include_usage: true}})
	}
	const stream = client.chat.completions.stream({model: 'gpt-4o', messages})
	assert.equal(await stream.finalContent(), said)
})

test('chat with tools', async () => {
	const calls = []
	const runner = client.chat.completions.runTools({
		model: 'gpt-4o', messages,
		tools: [{type: 'function', function: {name: 'look', parameters: look, parse: JSON.parse, function: given => { calls.push(given); return 'by the harbour' }}}],
	})
	assert.equal(await runner.finalContent(), 'The tool said: by the harbour')
	assert.deepEqual(calls, [{echo: question}])
	const streamed = client.chat.completions.stream({
		model: 'gpt-4o', messages, tools: [{type: 'function', function: {name: 'look', parameters: look}}],
	})
	const [call] = (await streamed.finalMessage()).tool_calls
	assert.deepEqual(JSON.parse(call.function.arguments), {echo: question})
})

test('chat about a picture of several MB', async () => {
	const answer = await client.chat.completions.create({model: 'gpt-4o', messages: [{role: 'user', content: [
		{type: 'image_url', image_url: {url: dataURL(picture()), detail: 'high'}}, {type: 'text', text: question},
	]}]})
	assert.match(answer.choices[0].message.content, /lighthouse/)
	assert.ok((await passed('chat', 'gpt-4o')).size > 5 << 20)
})

test('responses', async () => {
	const answer = await client.responses.create({model: 'mapped', input: question, instructions: 'Be short.'})
	assert.equal(answer.output_text, said)
	await mapped('responses', 'mapped', 'gpt-4o-mini')
	const stream = client.responses.stream({model: 'gpt-4o', input: question})
	const events = await collect(stream)
	assert.deepEqual(events.map(event => event.sequence_number), events.map((_, i) => i))
	assert.equal((await stream.finalResponse()).output_text, said)
	await passed('responses', 'gpt-4o')

	const tools = [{type: 'function', name: 'look', parameters: look, strict: false}]
	const input = [{role: 'user', content: [{type: 'input_image', image_url: dataURL(picture()), detail: 'auto'}, {type: 'input_text', text: question}]}]
	const called = await client.responses.create({model: 'gpt-4o', input, tools})
	assert.equal(called.output[0].type, 'function_call')
	await passed('responses', 'gpt-4o')
	const told = await client.responses.create({model: 'gpt-4o', input: [
		...input, ...called.output, {type: 'function_call_output', call_id: called.output[0].call_id, output: 'by the harbour'},
	], tools})
	assert.equal(told.output_text, 'The tool said: by the harbour')

	const compacted = await client.responses.compact({model: 'gpt-4o', input: 'a long talk of the lighthouse'})
	assert.equal(compacted.output[0].type, 'compaction')
	await passed('responses.compact', 'gpt-4o')
})

test('embeddings', async () => {
	const ask = {model: 'text-embedding-3-small', input: ['a lighthouse', 'a harbour'], dimensions: 3}
	const unasked = await client.embeddings.create(ask) // the SDK asks for base64 and decodes it
	assert.match((await passed('embeddings', ask.model)).text, /"encoding_format":"base64"/)
	const floats = await client.embeddings.create({...ask, encoding_format: 'float'})
	await passed('embeddings', ask.model)
	for (const i of [0, 1]) {
		assert.equal(unasked.data[i].embedding.length, 3)
		assert.deepEqual([...unasked.data[i].embedding], floats.data[i].embedding.map(Math.fround))
	}
	const base64 = await client.embeddings.create({...ask, encoding_format: 'base64'})
	assert.equal(base64.data[0].embedding.length, 16)
	const engine = await client.post('/engines/org%2Fllama:70b/embeddings', {body: {input: 'a lighthouse', dimensions: 2}})
	assert.equal(engine.data[0].embedding.length, 2)
	await seen('embeddings', 'org/llama:70b', '{"model":"org/llama:70b","input":"a lighthouse","dimensions":2}')
})

test('completions', async () => {
	const ask = {model: 'gpt-3.5-turbo-instruct', prompt: ['A lighthouse.'], suffix: '!', echo: true}
	const want = 'A lighthouse.You said: A lighthouse.!'
	assert.equal((await client.completions.create(ask)).choices[0].text, want)
	await passed('completions', ask.model)
	const chunks = await collect(await client.completions.create({...ask, stream: true}))
	assert.equal(chunks.map(chunk => chunk.choices[0]?.text ?? '').join(''), want)
	assert.ok(chunks.every(chunk => !chunk.usage))
})

test('moderations and rerank', async () => {
	for (const model of [undefined, 'omni-moderation-latest']) {
		const answer = await client.moderations.create({model, input: [{type: 'text', text: 'violence at the lighthouse'}]})
		assert.equal(answer.results[0].categories.violence, true)
		await seen('moderations', 'omni-moderation-latest')
	}
	const ranked = await client.post('/rerank', {body: {model: 'rerank-v3.5', query: 'lighthouse', documents: ['a harbour', {text: 'a lighthouse'}], top_n: 1}})
	assert.deepEqual(ranked.results.map(result => result.index), [1])
	await passed('rerank', 'rerank-v3.5')
})

test('models', async () => {
	const names = (await collect(client.models.list())).map(model => model.id)
	for (const name of ['gpt-4o', 'mapped', 'org/llama:70b', 'claude-sonnet-4-5', 'gemini-2.5-flash']) assert.ok(names.includes(name), name)
	assert.equal((await client.models.retrieve('org/llama:70b')).id, 'org/llama:70b')
	await assert.rejects(client.models.retrieve('gpt-4o-mini'), OpenAI.NotFoundError)
})

test('errors are of the SDK\'s classes', async () => {
	const ask = (model, more, options) => client.chat.completions.create({model, messages, ...more}, options)
	const fails = (promise, kind, want) => assert.rejects(promise, error => {
		assert.ok(error instanceof kind, `got ${error.constructor.name}: ${error.message}`)
		for (const [name, value] of Object.entries(want)) assert.equal(error[name], value, name)
		assert.ok(error.requestID)
		return true
	})
	await fails(ask('gpt-4o', {}, {headers: {Authorization: 'Bearer sk-wrong'}}), OpenAI.AuthenticationError, {status: 401, code: 'invalid_api_key'})
	await fails(ask('nobody'), OpenAI.NotFoundError, {status: 404, code: 'model_not_found', param: 'model'})
	await fails(ask('gpt-4o', {temperature: 'hot'}), OpenAI.BadRequestError, {status: 400, code: 'invalid_request', param: 'temperature'})
	await fails(ask('openai-says-400'), OpenAI.BadRequestError, {status: 400, type: 'invalid_request_error'})
	await fails(ask('openai-says-401'), OpenAI.InternalServerError, {status: 502, code: 'upstream_error'})
	await fails(ask('openai-says-429'), OpenAI.RateLimitError, {status: 429, code: 'rate_limit_exceeded'})
	await fails(ask('openai-says-500'), OpenAI.InternalServerError, {status: 502, code: 'upstream_error'})
	await fails(ask('openai-says-503'), OpenAI.InternalServerError, {status: 503, code: 'overloaded'})
	await fails(ask('openai-says-html'), OpenAI.InternalServerError, {status: 502, code: 'upstream_error'})
})

test('errors within streams', async () => {
	const chat = await broken(await client.chat.completions.create({model: 'openai-cut', messages, stream: true}))
	assert.equal(chat.events, 2)
	assert.ok(chat.error instanceof OpenAI.APIError, chat.error.stack)
	assert.equal(chat.error.code, 'upstream_error')
	const response = await broken(await client.responses.create({model: 'openai-breaks', input: question, stream: true}))
	assert.equal(response.events, 2)
	assert.ok(response.error instanceof OpenAI.APIError, response.error.stack)
	assert.equal(response.error.code, 'upstream_error')
})

for (const model of ['gpt-4o', 'claude-sonnet-4-5', 'gemini-2.5-flash']) {
	test(`responses in the background, ${model}`, async () => {
		let response = await client.responses.create({model, input: question, background: true})
		assert.equal(response.status, 'queued')
		while (['queued', 'in_progress'].includes(response.status)) response = await client.responses.retrieve(response.id)
		assert.equal(response.output_text, said)
		assert.equal((await client.responses.inputItems.list(response.id)).data.length, 1)

		let id, last
		for await (const event of await client.responses.create({model, input: question, background: true, stream: true})) {
			if (event.response) id = event.response.id
			last = event.sequence_number
			if (last === 3) break // the connection is lost
		}
		const numbers = []
		const resumed = client.responses.stream({response_id: id, starting_after: last})
		for await (const event of resumed) numbers.push(event.sequence_number)
		assert.deepEqual(numbers, numbers.map((_, i) => last + 1 + i))
		const next = await client.responses.create({model, input: question, previous_response_id: id})
		assert.equal(next.previous_response_id, id)
		assert.equal((await client.responses.cancel(id)).status, 'completed')
		await client.responses.delete(id)
		await assert.rejects(client.responses.retrieve(id), {status: 404})
	})
}

test('calls in the background by a header', async () => {
	const ask = headers => client.chat.completions.create({model: 'claude-sonnet-4-5', messages}, {headers})
	const {data, response} = await ask({Prefer: 'respond-async, wait=60'}).withResponse()
	assert.equal(data.choices[0].message.content, said)
	assert.equal(response.headers.get('preference-applied'), 'respond-async, wait=60')
	assert.match(response.headers.get('content-location'), /^\/v1\/tasks\/call_\w+\/result$/)

	const started = await ask({Prefer: 'respond-async'}).asResponse()
	assert.equal(started.status, 202)
	let task = await started.json()
	assert.equal(started.headers.get('location'), `/v1/tasks/${task.id}`)
	while (['queued', 'in_progress'].includes(task.status)) task = await client.get(`/tasks/${task.id}`, {query: {wait: 30}})
	assert.equal((await client.get(`/tasks/${task.id}/result`)).choices[0].message.content, said)

	const streamed = await client.chat.completions.create({model: 'gpt-4o', messages, stream: true}, {headers: {Prefer: 'respond-async'}}).asResponse()
	assert.equal(streamed.status, 202)
	const {id} = await streamed.json()
	const events = await collect(await client.get(`/tasks/${id}/events`, {stream: true}))
	assert.equal(events.map(chunk => chunk.choices[0]?.delta.content ?? '').join(''), said)

	const image = await client.images.generate({model: 'gpt-image-1', prompt: 'a lighthouse'}, {headers: {Prefer: 'respond-async, wait=60'}})
	assert.ok(image.data[0].b64_json)
	const file = await OpenAI.toFile(picture(), 'lighthouse.wav')
	const heard = await client.audio.transcriptions.create({model: 'whisper-1', file}, {headers: {Prefer: 'respond-async, wait=60'}})
	assert.match(heard.text, /lighthouse/)

	const failed = client.chat.completions.create({model: 'openai-says-400', messages}, {headers: {Prefer: 'respond-async, wait=60'}, maxRetries: 2})
	await assert.rejects(failed, error => {
		assert.ok(error instanceof OpenAI.BadRequestError, error.stack)
		assert.equal(error.headers.get('x-should-retry'), 'false')
		return true
	})
})

test('a response in the background is cancelled, its stream ends', async () => {
	const stream = await client.responses.create({model: 'gpt-4o-2s', input: question, background: true, stream: true})
	let id
	const kinds = []
	for await (const event of stream) {
		kinds.push(event.type)
		if (id) continue
		id = event.response.id
		await client.responses.cancel(id) // it waits for the effect, though not for long
	}
	assert.ok(kinds.length >= 2 && !kinds.some(kind => /completed|failed|error/.test(kind)), kinds)
	let status = 'in_progress'
	while (status === 'in_progress') ({status} = await client.responses.retrieve(id))
	assert.equal(status, 'cancelled')
	await client.responses.delete(id)
})
