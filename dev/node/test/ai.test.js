import {dataURL, isPNG, picture, question, said, seen, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {test} from 'node:test'
import {createAnthropic} from '@ai-sdk/anthropic'
import {createGoogle} from '@ai-sdk/google'
import {createOpenAI} from '@ai-sdk/openai'
import {APICallError, Output, embedMany, generateImage, generateSpeech, generateText, isStepCount, streamText, tool, transcribe} from 'ai'
import {z} from 'zod'

const openai = createOpenAI({baseURL: url + '/v1', apiKey: token})
const anthropic = createAnthropic({baseURL: url + '/v1', apiKey: token})
const google = createGoogle({baseURL: url + '/v1beta', apiKey: token})
const once = {maxRetries: 0}
// The SDK asks a model it does not know for 128,000 tokens, which is more than the one behind the name gives.
const bounded = {...once, maxOutputTokens: 1000}

const models = {
	'chat': [openai.chat('gpt-4o'), 'chat', 'gpt-4o'],
	'responses': [openai('mapped'), 'responses', 'gpt-4o-mini'],
	'completion': [openai.completion('gpt-3.5-turbo-instruct'), 'completions', 'gpt-3.5-turbo-instruct'],
	'messages': [anthropic('claude-mapped'), 'messages', 'claude-haiku-4-5'],
	'generate': [google('gemini-mapped'), 'generate', 'gemini-2.5-pro'],
}

for (const [name, [model, operation, upstream]] of Object.entries(models)) {
	test(name, async () => {
		const {text, usage, finishReason} = await generateText({...bounded, model, prompt: question})
		assert.match(text, /lighthouse/) // a completion's prompt is more than the question
		assert.ok(usage.totalTokens > 0)
		assert.equal(finishReason, 'stop')
		await seen(operation, upstream)
		const streamed = streamText({...bounded, model, prompt: question})
		let whole = ''
		for await (const delta of streamed.textStream) whole += delta
		assert.equal(whole, text)
		assert.ok((await streamed.usage).totalTokens > 0)
	})
	if (name === 'completion') continue // takes neither tools nor pictures

	test(`${name} with tools`, async () => {
		const calls = []
		const look = tool({inputSchema: z.object({echo: z.string()}), execute: given => { calls.push(given); return 'by the harbour' }})
		const {text, steps} = await generateText({...bounded, model, prompt: question, tools: {look}, stopWhen: isStepCount(3)})
		assert.match(text, /^The tool said: .*by the harbour/)
		assert.equal(steps.length, 2)
		assert.deepEqual(calls, [{echo: question}])
	})

	test(`${name} about a picture of several MB`, async () => {
		const {text} = await generateText({...bounded, model, messages: [{role: 'user', content: [
			{type: 'image', image: dataURL(picture())}, {type: 'text', text: question},
		]}]})
		assert.match(text, /lighthouse/)
		assert.ok((await seen(operation, upstream)).size > 5 << 20)
	})
}

test('objects', async () => {
	for (const model of [openai.chat('gpt-4o'), google('gemini-mapped')]) {
		const {output} = await generateText({...once, model, prompt: question, output: Output.object({schema: z.object({echo: z.string()})})})
		assert.deepEqual(output, {echo: question})
	}
})

test('embeddings, images, speech, transcriptions', async () => {
	for (const model of [openai.embedding('text-embedding-3-small'), google.embedding('gemini-embedding-001')]) {
		const {embeddings} = await embedMany({...once, model, values: ['a lighthouse', 'a harbour']})
		assert.deepEqual(embeddings.map(vector => vector.length > 1000), [true, true])
	}
	const {image} = await generateImage({...once, model: openai.image('gpt-image-1'), prompt: 'a lighthouse'})
	assert.ok(isPNG(image.uint8Array))
	await seen('images.generations', 'gpt-image-1')
	const {audio} = await generateSpeech({...once, model: openai.speech('tts-1'), text: 'The lighthouse.', voice: 'nova', outputFormat: 'wav'})
	assert.equal(Buffer.from(audio.uint8Array).subarray(0, 4).toString(), 'RIFF')
	const {text} = await transcribe({...once, model: openai.transcription('whisper-1'), audio: audio.uint8Array})
	assert.match(text, new RegExp(`of ${audio.uint8Array.length} bytes`))
})

test('errors are of the SDK\'s class', async () => {
	for (const [model, status] of [
		[createOpenAI({baseURL: url + '/v1', apiKey: 'sk-wrong'})('gpt-4o'), 401], [openai.chat('nobody'), 404], [openai.chat('openai-is-full'), 429],
		[createAnthropic({baseURL: url + '/v1', apiKey: 'sk-wrong'})('claude-mapped'), 401], [anthropic('nobody'), 404], [anthropic('anthropic-is-full'), 429],
		[createGoogle({baseURL: url + '/v1beta', apiKey: 'sk-wrong'})('gemini-mapped'), 401], [google('nobody'), 404], [google('gemini-is-full'), 429],
	]) {
		await assert.rejects(generateText({...once, model, prompt: question}), error => {
			assert.ok(APICallError.isInstance(error), error.stack)
			assert.equal(error.statusCode, status)
			return true
		})
	}
})

test('errors within streams', async () => {
	for (const model of [openai.chat('openai-cut'), openai('openai-breaks'), anthropic('anthropic-cut'), google('gemini-cut')]) {
		const errors = []
		const {fullStream} = streamText({...once, model, prompt: question, onError: ({error}) => errors.push(error)})
		for await (const _ of fullStream);
		assert.equal(errors.length, 1, model.modelId)
	}
})
