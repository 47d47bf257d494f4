import {question, said, seen, tlsURL, token} from '../support.js'
import assert from 'node:assert/strict'
import {once} from 'node:events'
import {test} from 'node:test'
import OpenAI from 'openai'
import {OpenAIRealtimeWebSocket} from 'openai/realtime/websocket'
import {OpenAIRealtimeWS} from 'openai/realtime/ws'

// The SDK opens wss: only, whatever the base URL says.
const client = key => new OpenAI({baseURL: tlsURL + '/v1', apiKey: key})

// converse says one thing, hears it back, and has the upstream end the conversation.
async function converse(socket) {
	const heard = []
	const done = new Promise((resolve, reject) => {
		socket.on('error', reject)
		socket.on('response.output_text.delta', event => heard.push(event.delta))
		socket.on('response.done', resolve)
		socket.on('session.created', () => {
			socket.send({type: 'conversation.item.create', item: {type: 'message', role: 'user', content: [{type: 'input_text', text: question}]}})
			socket.send({type: 'response.create'})
		})
	})
	const {response} = await done
	assert.equal(heard.join(''), said)
	assert.ok(response.usage.total_tokens > 0)
}

test('a conversation over ws', {timeout: 60_000}, async () => {
	const socket = new OpenAIRealtimeWS({model: 'mapped'}, client(token))
	const closed = once(socket.socket, 'close')
	await converse(socket)
	const got = await seen('realtime', 'gpt-4o-mini')
	assert.ok(got.target.endsWith('/realtime?model=gpt-4o-mini'))
	socket.send({type: 'fake.close', code: 4321, reason: 'enough'})
	const [code, reason] = await closed
	assert.deepEqual([code, reason.toString()], [4321, 'enough'])
})

test('a conversation as browsers hold it', {timeout: 60_000}, async () => {
	const socket = new OpenAIRealtimeWebSocket({model: 'gpt-realtime'}, client(token))
	const closed = new Promise(resolve => socket.socket.addEventListener('close', resolve))
	await converse(socket)
	assert.equal(socket.socket.protocol, 'realtime')
	await seen('realtime', 'gpt-realtime')
	socket.close({code: 1000, reason: 'OK'})
	assert.equal((await closed).code, 1000)
})

test('a refusal is an HTTP answer', {timeout: 60_000}, async () => {
	for (const [key, model, status] of [['sk-wrong', 'gpt-realtime', 401], [token, 'nobody', 404], [token, 'openai-limits', 429], [token, 'openai-fails', 502]]) {
		const socket = new OpenAIRealtimeWS({model}, client(key))
		const [error] = await once(socket, 'error')
		assert.match(error.message, new RegExp(`\\b${status}\\b`), model)
	}
})
