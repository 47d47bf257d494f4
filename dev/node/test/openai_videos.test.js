import {picture, token, url} from '../support.js'
import assert from 'node:assert/strict'
import {setTimeout as pause} from 'node:timers/promises'
import {test} from 'node:test'
import OpenAI, {toFile} from 'openai'

const client = new OpenAI({baseURL: url + '/v1', apiKey: token})

// end asks until the task has ended; only one that failed may show less than before.
async function end(id) {
	for (let last = 0; ; await pause(100)) {
		const video = await client.videos.retrieve(id)
		assert.ok(video.progress >= last || video.status === 'failed', `progress fell from ${last} to ${video.progress}`)
		last = video.progress
		if (['completed', 'failed'].includes(video.status)) return video
	}
}

test('a video from create to download', {timeout: 120_000}, async () => {
	const created = await client.videos.create({
		model: 'sora-2-fast', prompt: 'a lighthouse', seconds: '4', size: '720x1280',
		input_reference: await toFile(picture(), 'låmp.png', {type: 'image/png'}),
	})
	assert.match(created.id, /^video_/)
	assert.deepEqual([created.object, created.status, created.progress, created.model], ['video', 'queued', 0, 'sora-2-fast'])
	const video = await end(created.id)
	assert.deepEqual([video.status, video.progress, video.error, video.seconds], ['completed', 100, null, '4'])
	const content = await client.videos.downloadContent(video.id)
	assert.equal(content.headers.get('content-type'), 'video/mp4')
	const bytes = Buffer.from(await content.arrayBuffer())
	assert.equal(bytes.length, Number(content.headers.get('content-length')))
	assert.equal(bytes.subarray(4, 8).toString(), 'ftyp')
	const listed = await client.videos.list({limit: 1})
	assert.equal(listed.data[0].id, video.id)
	assert.equal((await client.videos.delete(video.id)).deleted, true)
	await assert.rejects(client.videos.retrieve(video.id), OpenAI.NotFoundError)
})

test('a video that fails', {timeout: 120_000}, async () => {
	const video = await end((await client.videos.create({model: 'sora-2-fast-fail', prompt: 'a lighthouse'})).id)
	assert.equal(video.status, 'failed')
	assert.ok(video.error.code && video.error.message)
	await assert.rejects(client.videos.downloadContent(video.id), OpenAI.NotFoundError)
})

test('edits, extensions and characters', {timeout: 120_000}, async () => {
	const source = await end((await client.videos.create({model: 'sora-2-fast', prompt: 'a lighthouse'})).id)
	const edited = await end((await client.videos.edit({prompt: 'at night', video: {id: source.id}})).id)
	assert.deepEqual([edited.status, edited.remixed_from_video_id], ['completed', source.id])
	// The upstream makes variations of its own videos and takes no others.
	await assert.rejects(client.videos.extend({prompt: 'it leaves', seconds: '4', video: {id: source.id}}), OpenAI.BadRequestError)
	const film = await toFile(await (await client.videos.downloadContent(source.id)).arrayBuffer(), 'film.mp4', {type: 'video/mp4'})
	await assert.rejects(client.videos.edit({prompt: 'at night', video: film}), OpenAI.BadRequestError)
	await assert.rejects(client.videos.createCharacter({name: 'Ann', video: film}), OpenAI.BadRequestError)
	await assert.rejects(client.videos.getCharacter('char_1'), OpenAI.BadRequestError)
})
