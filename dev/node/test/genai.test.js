import {broken, collect, isPNG, passed, picture, question, said, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {test} from 'node:test'
import {ApiError, GoogleGenAI} from '@google/genai'

const sdk = (apiKey, apiVersion) => new GoogleGenAI({apiKey, apiVersion, httpOptions: {baseUrl: url}})
const client = sdk(token)

for (const version of ['v1beta', 'v1']) {
	const {models} = sdk(token, version)

	test(`generate under /${version}`, async () => {
		const answer = await models.generateContent({model: 'gemini-mapped', contents: question, config: {temperature: 0.25}})
		assert.equal(answer.text, said)
		await passed('generate', 'gemini-2.5-pro')
		const chunks = await collect(await models.generateContentStream({model: 'gemini-mapped', contents: question}))
		assert.equal(chunks.map(chunk => chunk.text).join(''), said)
		assert.ok(chunks.length > 2 && chunks.at(-1).usageMetadata.candidatesTokenCount > 0)
		await passed('stream', 'gemini-2.5-pro')
	})

	test(`count and embed under /${version}`, async () => {
		assert.ok((await models.countTokens({model: 'gemini-2.5-flash', contents: question})).totalTokens > 0)
		await passed('count_tokens', 'gemini-2.5-flash')
		const embedded = await models.embedContent({
			model: 'gemini-embedding-001', contents: ['a lighthouse', 'a harbour'], config: {outputDimensionality: 3},
		})
		assert.deepEqual(embedded.embeddings.map(one => one.values.length), [3, 3])
		await passed('embed.batch', 'gemini-embedding-001')
	})

	test(`models under /${version}`, async () => {
		const names = (await collect(await models.list())).map(model => model.name)
		for (const name of ['models/gemini-mapped', 'models/gpt-4o', 'models/org/llama:70b']) assert.ok(names.includes(name), name)
		assert.equal((await models.get({model: 'gemini-2.5-flash'})).name, 'models/gemini-2.5-flash')
	})
}

test('tools and a picture of several MB', async () => {
	const config = {tools: [{functionDeclarations: [{name: 'look', parametersJsonSchema: {type: 'object', properties: {echo: {type: 'string'}}}}]}]}
	const contents = [{role: 'user', parts: [{inlineData: {mimeType: 'image/png', data: picture().toString('base64')}}, {text: question}]}]
	const called = await client.models.generateContent({model: 'gemini-2.5-flash', contents, config})
	assert.equal(called.functionCalls[0].args.echo, '[image/png]' + question)
	assert.ok((await passed('generate', 'gemini-2.5-flash')).size > 5 << 20)
	const told = await collect(await client.models.generateContentStream({model: 'gemini-2.5-flash', config, contents: [
		...contents, called.candidates[0].content,
		{role: 'user', parts: [{functionResponse: {name: 'look', response: {place: 'by the harbour'}}}]},
	]}))
	assert.match(told.map(chunk => chunk.text).join(''), /^The tool said: .*by the harbour/)
})

test('images', async () => {
	const answer = await client.models.generateContent({
		model: 'gemini-2.5-flash', contents: 'a lighthouse', config: {responseModalities: ['TEXT', 'IMAGE'], imageConfig: {aspectRatio: '16:9', imageSize: '1K'}},
	})
	assert.ok(isPNG(Buffer.from(answer.data, 'base64')))
	await passed('generate', 'gemini-2.5-flash')
})

test('errors are of the SDK\'s class', async () => {
	for (const [status, word, model, from = client, config] of [
		[401, 'UNAUTHENTICATED', 'gemini-2.5-flash', sdk('sk-wrong')],
		[404, 'NOT_FOUND', 'nobody'],
		[400, 'INVALID_ARGUMENT', 'gemini-2.5-flash', client, {responseModalities: ['SMELL']}],
		[400, 'INVALID_ARGUMENT', 'gemini-says-400'],
		[502, 'INTERNAL', 'gemini-says-401'],
		[429, 'RESOURCE_EXHAUSTED', 'gemini-says-429'],
		[502, 'INTERNAL', 'gemini-says-500'],
		[503, 'UNAVAILABLE', 'gemini-says-503'],
		[502, 'INTERNAL', 'gemini-says-html'],
	]) {
		await assert.rejects(from.models.generateContent({model, contents: question, config}), error => {
			assert.ok(error instanceof ApiError, `${model}: got ${error.stack}`)
			assert.equal(error.status, status, model)
			assert.equal(JSON.parse(error.message).error.status, word, model)
			return true
		})
	}
})

test('errors within streams', async () => {
	const {events, error} = await broken(await client.models.generateContentStream({model: 'gemini-cut', contents: question}))
	assert.equal(events, 2)
	assert.ok(error instanceof ApiError, error.stack)
	assert.equal(error.status, 502)
})

test('interactions in the background', async () => {
	const {interactions} = client
	const create = {model: 'gemini-2.5-flash', input: question, background: true}
	let made = await interactions.create(create)
	assert.deepEqual([made.status, made.model], ['in_progress', create.model])
	while (made.status === 'in_progress') made = await interactions.get(made.id, {include_input: true})
	assert.deepEqual([made.status, made.output_text, made.input], ['completed', said, question])

	let id, last
	for await (const event of await interactions.create({...create, stream: true})) {
		id ??= event.interaction.id
		last = Number(event.event_id)
		if (last === 4) break // the connection is lost
	}
	const events = await collect(await interactions.get(id, {stream: true, last_event_id: String(last)}))
	assert.deepEqual(events.map(event => event.event_id), events.map((_, i) => String(last + 1 + i)))
	assert.equal(events.at(-1).interaction.status, 'completed')
	const next = await interactions.create({model: create.model, input: question, previous_interaction_id: id})
	assert.equal(next.previous_interaction_id, id)
	made = await interactions.cancel(id)
	assert.deepEqual([made.status, made.output_text], ['completed', said])
	await interactions.delete(id)
	await assert.rejects(interactions.get(id), {status: 404})
	await assert.rejects(interactions.create({...create, store: false}), {status: 400})
})

test('calls in the background by a header', async () => {
	for (const model of ['gemini-2.5-flash', 'gpt-4o', 'claude-sonnet-4-5']) {
		const answer = await client.models.generateContent({model, contents: question, config: {httpOptions: {headers: {Prefer: 'respond-async, wait=60'}}}})
		assert.equal(answer.text, said)
		assert.match(answer.sdkHttpResponse.headers['content-location'], /^\/v1\/tasks\/call_\w+\/result$/)

		const started = await client.models.generateContent({model, contents: question, config: {httpOptions: {headers: {Prefer: 'respond-async'}}}})
		const {location} = started.sdkHttpResponse.headers
		assert.match(location, /^\/v1\/tasks\/call_\w+$/)
		const read = async path => (await fetch(url + path, {headers: {'x-goog-api-key': token}})).json()
		let status = 'queued'
		while (['queued', 'in_progress'].includes(status)) ({status} = await read(`${location}?wait=60`))
		assert.equal(status, 'completed')
		assert.equal((await read(`${location}/result`)).candidates[0].content.parts.at(-1).text, said)
	}
	const failed = client.models.generateContent({model: 'gemini-says-400', contents: question, config: {httpOptions: {headers: {Prefer: 'respond-async, wait=60'}}}})
	await assert.rejects(failed, error => error instanceof ApiError && error.status === 400)
})
