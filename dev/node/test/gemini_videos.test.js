import {token, url} from '../support.js'
import assert from 'node:assert/strict'
import {mkdtemp, readFile, rm} from 'node:fs/promises'
import {tmpdir} from 'node:os'
import {join} from 'node:path'
import {setTimeout as pause} from 'node:timers/promises'
import {test} from 'node:test'
import {createGoogle} from '@ai-sdk/google'
import {ApiError, GoogleGenAI} from '@google/genai'
import {GoogleGenAI as GoogleGenAI2} from '@google/genai-2'
import {experimental_generateVideo as generateVideo} from 'ai'

// The address that the gateway's links begin with. No name server knows its host: here it leads to the gateway.
const publicURL = process.env.GATEWAY_PUBLIC_URL || assert.fail('GATEWAY_PUBLIC_URL is not set')
const fetch = globalThis.fetch
globalThis.fetch = (input, init) => {
	const address = String(input?.url ?? input)
	return fetch(address.startsWith(publicURL) ? url + address.slice(publicURL.length) : input, init)
}

const within = {timeout: 120_000}
const files = new RegExp(`^${publicURL}/v1beta/files/video[0-9a-z]+:download\\?alt=media$`)

// downloaded is the file that a client's files.download writes.
async function downloaded(client, file) {
	const folder = await mkdtemp(join(tmpdir(), 'video-'))
	try {
		const downloadPath = join(folder, 'video.mp4')
		await client.files.download({file, downloadPath})
		return await readFile(downloadPath)
	} finally {
		await rm(folder, {recursive: true})
	}
}

const isVideo = bytes => bytes.subarray(4, 8).toString() === 'ftyp'

test('generateVideos of 2.x', within, async () => {
	const client = new GoogleGenAI2({apiKey: token, httpOptions: {baseUrl: url}})
	let operation = await client.models.generateVideos({model: 'sora-2-fast', prompt: 'a lighthouse', config: {durationSeconds: 4}})
	assert.match(operation.name, /^models\/sora-2-fast\/operations\/video_/)
	while (!operation.done) {
		await pause(100)
		operation = await client.operations.getVideosOperation({operation})
	}
	const [made] = operation.response.generatedVideos
	assert.match(made.video.uri, files)
	assert.ok(isVideo(await downloaded(client, made)))
})

test('generateVideos of 2.x that fails', within, async () => {
	const client = new GoogleGenAI2({apiKey: token, httpOptions: {baseUrl: url}})
	let operation = await client.models.generateVideos({model: 'sora-2-fast-fail', prompt: 'a lighthouse'})
	while (!operation.done) {
		await pause(100)
		operation = await client.operations.getVideosOperation({operation})
	}
	assert.match(operation.error.message, /^[a-z_]+: ./)
	await assert.rejects(client.models.generateVideos({model: 'no-such-model', prompt: 'a lighthouse'}), {name: 'ApiError', status: 404})
})

test('interactions of 3.x', within, async () => {
	const client = new GoogleGenAI({apiKey: token, httpOptions: {baseUrl: url}})
	const response_format = {type: 'video', duration: '4s', delivery: 'uri'}
	const create = {model: 'sora-2-fast', input: 'a lighthouse', background: true, response_format}
	let made = await client.interactions.create(create)
	assert.deepEqual([made.object, made.model, made.status], ['interaction', 'sora-2-fast', 'in_progress'])
	while (made.status === 'in_progress') {
		await pause(100)
		made = await client.interactions.get(made.id)
	}
	assert.equal(made.status, 'completed')
	assert.match(made.output_video.uri, files)
	assert.ok(isVideo(await downloaded(client, made.output_video.uri)))

	const changed = await client.interactions.create({...create, response_format: {type: 'video'}, input: 'at night', previous_interaction_id: made.id})
	assert.equal((await client.interactions.cancel(changed.id)).id, changed.id)
	await client.interactions.delete(made.id)
	await assert.rejects(client.interactions.get(made.id), refused(404))
	await assert.rejects(client.interactions.create({...create, response_format: {...response_format, delivery: 'inline'}}), refused(400))
})

const refused = status => error => error instanceof ApiError && error.status === status || error.statusCode === status

test('the video model of the AI SDK', within, async () => {
	const google = createGoogle({baseURL: publicURL + '/v1beta', apiKey: token})
	const {video} = await generateVideo({
		model: google.video('sora-2-fast'), prompt: 'a lighthouse', duration: 4, maxRetries: 0, poll: {intervalMs: 100},
	})
	assert.ok(isVideo(Buffer.from(video.uint8Array)))
})
