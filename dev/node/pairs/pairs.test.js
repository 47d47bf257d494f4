// Every client on every model: the conversation of plan.js comes out the same, and reaches the upstream whole.
import '../support.js'
import {last, scripted} from './control.js'
import {models, native, operations, spoken} from './models.js'
import {answers, expected, image, perQuestion, questions, results, system, toolbox} from './plan.js'
import agents from './clients/agents.js'
import ai from './clients/ai.js'
import anthropic from './clients/anthropic.js'
import google from './clients/google.js'
import langchain from './clients/langchain.js'
import openai from './clients/openai.js'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'

const clients = [...openai, ...anthropic, ...google, ...ai, ...langchain, ...agents]

// converse has the first question answered by one model and the second by another, or the same.
async function converse(client, first, second) {
	const id = randomUUID()
	const box = toolbox(client)
	const ask = client.open({...box, system: system(id)})
	const question = {...questions[0], image: client.blind ? undefined : image}
	const steps = await scripted(id, answers, async () => [...await ask(question, first), ...await ask(questions[1], second)])
	assert.deepEqual(box.calls, expected.calls)
	assert.deepEqual(steps.map(step => step.text), expected.texts)
	const shown = thoughts => thoughts.filter((_, i) => shows(client, i < perQuestion ? first : second))
	assert.deepEqual(shown(steps.map(step => step.thought)), shown(expected.thoughts))
	const request = await last(second.name)
	assert.ok(operations[spoken(client.dialect, second)].includes(request.operation), `the upstream was asked for ${request.operation}`)
	// Clients keep what the model said in pieces, as it came.
	const said = expected.texts.slice(0, perQuestion).flatMap(text => text.split(' '))
	for (const text of [id, ...client.blind ? [] : [image], ...results, questions[1].text, ...said]) {
		assert.ok(request.text.includes(text), `the upstream's last request lacks ${text}: ${request.text}`)
	}
}

// shows says whether a client shows what a model thinks.
const shows = ({thoughts}, model) => typeof thoughts === 'function' ? thoughts(model) : thoughts

// may says whether a client works on a model at all.
const may = (client, model) => !(client.foreign && native(client, model))

for (const client of clients) {
	const mine = models.filter(model => may(client, model))
	for (const model of mine) {
		test(`${client.name} on ${model.name}`, () => converse(client, model, model))
	}
	// One model of each dialect, and each other one behind it in the middle of the conversation.
	const others = mine.filter((model, i) => mine.findLastIndex(({dialect}) => dialect === model.dialect) === i)
	for (const first of others) {
		for (const second of others.filter(other => other !== first)) {
			test(`${client.name} on ${first.name}, then on ${second.name}`, () => converse(client, first, second))
		}
	}
}
