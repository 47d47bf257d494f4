// Every client on every model: the conversation of plan.js comes out the same, and reaches the upstream whole.
import '../support.js'
import {last, scripted} from './control.js'
import {models, operations, spoken} from './models.js'
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
	const steps = await scripted(id, answers, async () => [...await ask(questions[0], first), ...await ask(questions[1], second)])
	assert.deepEqual(box.calls, expected.calls)
	assert.deepEqual(steps.map(step => step.text), expected.texts)
	if (client.thoughts) assert.deepEqual(steps.map(step => step.thought), expected.thoughts)
	const request = await last(second.name)
	assert.ok(operations[spoken(client.dialect, second)].includes(request.operation), `the upstream was asked for ${request.operation}`)
	// Clients keep what the model said in pieces, as it came.
	const said = expected.texts.slice(0, perQuestion).flatMap(text => text.split(' '))
	for (const text of [id, image, ...results, questions[1].text, ...said]) {
		assert.ok(request.text.includes(text), `the upstream's last request lacks ${text}: ${request.text}`)
	}
}

// native says whether a client is on a model of its own dialect.
const native = (client, model) => client.dialect === spoken(client.dialect, model)

for (const client of clients) {
	for (const model of models) {
		if (!native(client, model) || client.foreign) continue
		test(`${client.name} on ${model.name}`, () => converse(client, model, model))
	}
}
