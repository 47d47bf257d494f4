// The fake upstreams' control interface, see dev/upstream/doc.go.
import assert from 'node:assert/strict'

const base = process.env.UPSTREAM_CONTROL

async function call(method, path, body) {
	const answer = await fetch(base + path, {method, body: body && JSON.stringify(body)})
	const text = await answer.text()
	assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
	return JSON.parse(text)
}

// scripted answers the calls that hold a text as told while work runs, and checks that every answer was taken.
export async function scripted(contains, answers, work) {
	const {id} = await call('POST', '/scripts', {contains, answers})
	try {
		const result = await work()
		const {scripts} = await call('GET', '/scripts')
		assert.equal(scripts.find(script => script.id === id).taken, answers.length, 'answers that were taken')
		return result
	} finally {
		await call('DELETE', `/scripts/${id}`)
	}
}

// last returns the last request for a model that reached an upstream, with its body as text.
export async function last(model) {
	const {requests} = await call('GET', `/requests?${new URLSearchParams({model, last: 1})}`)
	assert.ok(requests.length > 0, `no upstream saw a call for ${model}`)
	const request = requests.at(-1)
	return {...request, text: Buffer.from(request.head ?? '', 'base64').toString()}
}
