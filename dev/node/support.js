// What the tests of all SDKs share. The gateway and its fake upstreams are named by the environment:
//
//	GATEWAY_URL       the gateway
//	GATEWAY_TLS_URL   the same behind TLS, for clients that take nothing else; not for every test
//	GATEWAY_TOKEN     the token the SDKs are given as their key
//	UPSTREAM_CONTROL  the control interface of the fake upstreams, see dev/upstream/doc.go
//
// Import it before an SDK: it notes what the SDKs send.
import assert from 'node:assert/strict'
import {createHash} from 'node:crypto'

const need = name => process.env[name] || assert.fail(`${name} is not set: dev/e2e runs these tests`)

export const url = need('GATEWAY_URL')
export const tlsURL = process.env.GATEWAY_TLS_URL
export const token = need('GATEWAY_TOKEN')
const control = need('UPSTREAM_CONTROL')

export const question = 'Where is the lighthouse?'
export const said = 'You said: ' + question

let sent, version
const fetch = globalThis.fetch
globalThis.fetch = async (input, init) => {
	sent = init?.body
	version = new Headers(init?.headers).get('anthropic-version')
	return fetch(input, init)
}

// vendorKeys are the headers the vendors take their keys in, and what stands before a key.
const vendorKeys = {
	openai: ['Authorization', 'Bearer '],
	anthropic: ['X-Api-Key', ''],
	gemini: ['X-Goog-Api-Key', ''],
}

const mayTravel = /^(Accept|Accept-Encoding|Connection|Content-Length|Content-Type|Upgrade|User-Agent|Anthropic-Beta|Anthropic-Version|Openai-Beta|Sec-Websocket-.*)$/

// seen returns the last request of an operation that reached the upstream for its own model, after checking that it
// came with the channel's key and nothing of the client's. body, if any, is what must have come.
export async function seen(operation, model, body) {
	const answer = await fetch(`${control}/requests?${new URLSearchParams({operation, model, last: 1})}`)
	const [request] = (await answer.json()).requests
	assert.ok(request, `no upstream saw ${operation} for ${model}`)
	const [name, prefix] = vendorKeys[request.vendor]
	assert.match(request.key, new RegExp(`^sk-upstream-${request.vendor}`))
	assert.deepEqual(request.header[name], [prefix + request.key])
	for (const [header, values] of Object.entries(request.header)) {
		assert.ok(header === name || mayTravel.test(header), `the upstream got the header ${header}`)
		assert.ok(!values.some(value => value.includes(token)), `the client's token reached the upstream as ${header}`)
	}
	assert.ok(!request.target.includes(token) && !request.target.includes('key='), `the upstream got ${request.target}`)
	if (request.vendor === 'anthropic') {
		assert.deepEqual(request.header['Anthropic-Version'], [version])
	}
	request.text = Buffer.from(request.head ?? '', 'base64').toString()
	if (body !== undefined) {
		const want = createHash('sha256').update(body).digest('hex')
		assert.equal(request.sha256, want, `the upstream got ${request.text.slice(0, 300)}, want ${String(body).slice(0, 300)}`)
	}
	return request
}

// passed checks that the JSON the SDK sent last reached the upstream byte for byte.
export const passed = (operation, model) => seen(operation, model, sent)

// mapped is passed for a body that named the model as the gateway's clients do.
export const mapped = (operation, model, upstream) => {
	assert.ok(sent.includes(`"${model}"`), `the SDK did not send ${model}`)
	return seen(operation, upstream, sent.replace(`"${model}"`, `"${upstream}"`))
}

// picture is several MB that compress to nothing less, as a photograph's.
export function picture() {
	const blocks = [Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')]
	let block = createHash('sha256').update('picture').digest()
	for (let size = 0; size < 4 << 20; size += block.length) {
		blocks.push(block)
		block = createHash('sha256').update(block).digest()
	}
	return Buffer.concat(blocks)
}

export const dataURL = bytes => 'data:image/png;base64,' + bytes.toString('base64')

export const isPNG = bytes => Buffer.from(bytes).subarray(1, 4).toString() === 'PNG'

// collect reads a stream to its end.
export async function collect(stream) {
	const events = []
	for await (const event of stream) events.push(event)
	return events
}

// broken reads a stream that must fail, and returns how many events came first and the failure.
export async function broken(stream) {
	let events = 0
	try {
		for await (const _ of stream) events++
	} catch (error) {
		return {events, error}
	}
	assert.fail(`the stream ended after ${events} events without an error`)
}
