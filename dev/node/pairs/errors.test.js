// What a client meets when the upstream fails: its own SDK's errors, with the upstream's words where they are about the request.
import {broken} from '../support.js'
import {scripted} from './control.js'
import {models, native, spoken} from './models.js'
import {raw} from './raw.js'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'

// said is how many events of a stream there are before the second of text.
const said = {chat: 3, responses: 6, messages: 4, gemini: 2}

// fails has the upstream end its answer so, and returns the question that it is asked.
const fails = (answer, work) => {
	const id = randomUUID()
	return scripted(id, [answer], () => work(`Where is ${id}?`))
}

for (const [dialect, client] of Object.entries(raw)) {
	for (const model of models) {
		for (const how of ['whole', 'stream']) {
			for (const [status, seen] of [[400, 400], [429, 429], [500, 502]]) {
				test(`${dialect}, ${how}, on ${model.name}, which answers ${status}`, () => fails(
					{break: {after: 0, how: 'error', status, message: 'No boat of that name.'}},
					question => assert.rejects(client[how](model.name, question), error => {
						assert.ok(error instanceof client.errors[status], error.stack)
						assert.equal(error.status, seen)
						assert.equal(error.message.includes('No boat of that name.'), status === 400, error.message)
						return true
					}),
				))
			}
		}
		for (const how of ['error', 'cut', 'end']) {
			if (how === 'end' && native({dialect}, model)) continue // nobody reads a native stream for its end
			test(`${dialect} on ${model.name}, whose stream breaks: ${how}`, () => fails(
				{parts: [{text: 'There it lies at anchor.'}], break: {after: said[spoken(dialect, model)], how, status: 500, message: 'Lost at sea.'}},
				async question => {
					const {events, error} = await broken(await client.stream(model.name, question))
					assert.ok(events > 0)
					assert.ok(error instanceof Error)
				},
			))
		}
	}
}
