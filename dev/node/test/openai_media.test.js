import {collect, dataURL, isPNG, passed, picture, seen, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {test} from 'node:test'
import OpenAI, {toFile} from 'openai'

const client = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})
const sound = picture()
const recording = () => toFile(sound, 'lighthöuse.wav', {type: 'audio/wav'})
const heard = `Heard lighthöuse.wav of ${sound.length} bytes.`

test('transcriptions', async () => {
	const answer = await client.audio.transcriptions.create({
		file: await recording(), model: 'whisper-1', language: 'de', response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'],
	})
	assert.equal(answer.text, heard)
	assert.equal(answer.language, 'de')
	assert.equal(answer.words.length, 5)
	await seen('audio.transcriptions', 'whisper-1')
	const text = await client.audio.transcriptions.create({file: await recording(), model: 'whisper-1', response_format: 'vtt'})
	assert.ok(text.startsWith('WEBVTT') && text.includes(heard))
	const events = await collect(await client.audio.transcriptions.create({file: await recording(), model: 'whisper-1', stream: true}))
	assert.equal(events.at(-1).text, heard)
})

test('translations', async () => {
	const answer = await client.audio.translations.create({file: await recording(), model: 'whisper-1'})
	assert.equal(answer.text, heard)
	await seen('audio.translations', 'whisper-1')
})

test('speech', async () => {
	const answer = await client.audio.speech.create({model: 'tts-1', input: 'The lighthouse.', voice: 'nova', response_format: 'wav'})
	assert.equal(answer.headers.get('content-type'), 'audio/wav')
	assert.equal(Buffer.from(await answer.arrayBuffer()).subarray(0, 4).toString(), 'RIFF')
	await passed('audio.speech', 'tts-1')
})

test('images', async () => {
	const ask = {model: 'gpt-image-1', prompt: 'a lighthouse', n: 2, size: '1024x1024'}
	const made = await client.images.generate(ask)
	assert.equal(made.data.length, 2)
	assert.ok(made.data.every(image => isPNG(Buffer.from(image.b64_json, 'base64'))))
	await passed('images.generations', 'gpt-image-1')
	const edited = await client.images.edit({
		model: 'gpt-image-1', prompt: 'more lighthouse',
		image: [await toFile(picture(), 'låmp.png', {type: 'image/png'}), await toFile(Buffer.from('2'), 'tower.webp', {type: 'image/webp'})],
	})
	assert.ok(isPNG(Buffer.from(edited.data[0].b64_json, 'base64')))
	const {text, size} = await seen('images.edits', 'gpt-image-1')
	assert.ok(size > 4 << 20 && text.includes('name="image[]"; filename="låmp.png"\r\nContent-Type: image/png'))
})

test('images, streamed', async () => {
	const stream = await client.images.generate({model: 'gpt-image-1', prompt: 'a lighthouse', stream: true, partial_images: 1})
	const events = []
	for await (const event of stream) events.push(event)
	assert.deepEqual(events.map(event => event.type), ['image_generation.partial_image', 'image_generation.completed'])
	assert.ok(events.every(event => isPNG(Buffer.from(event.b64_json, 'base64'))))
	await passed('images.generations', 'gpt-image-1')
})

test('images in the contract\'s nested shape', async () => {
	for (const [path, content] of [['generations', {text: 'Paint'}], ['edits', {image: dataURL(picture())}]]) {
		const answer = await client.post('/images/' + path, {body: {
			model: 'gpt-image-1', input: {messages: [{role: 'user', content: [content, {text: 'a lighthouse'}]}]}, parameters: {watermark: false},
		}})
		assert.ok(isPNG(Buffer.from(answer.data[0].b64_json, 'base64')))
		await passed('images.' + path, 'gpt-image-1')
	}
	await assert.rejects(client.post('/images/edits', {body: {model: 'gpt-image-1'}}), OpenAI.BadRequestError)
})
