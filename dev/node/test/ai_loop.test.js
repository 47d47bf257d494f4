// The OpenAI provider of the AI SDK as it comes: it says nothing of store, and refers to the items of earlier answers by their ids.
import {token, url} from '../support.js'
import {last, scripted} from '../pairs/control.js'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'
import {createOpenAI} from '@ai-sdk/openai'
import {generateText, isStepCount, streamText, tool} from 'ai'
import {z} from 'zod'

const piers = ['north', 'east', 'south', 'west', 'old']
const answers = [...piers.map(pier => ({parts: [{text: `I look at the ${pier} pier.`}, {call: {name: 'look', arguments: {pier}}}]})), {parts: [{text: 'Fog at all of them.'}]}]

for (const model of ['claude-sonnet-4-5', 'gemini-2.5-flash']) {
	for (const [name, ask] of Object.entries({generateText, streamText})) {
		test(`a loop of five calls of a tool on ${model}, ${name}`, async () => {
			const bodies = [], looked = [], id = randomUUID()
			const openai = createOpenAI({baseURL: url + '/v1', apiKey: token, fetch: (input, init) => {
				bodies.push(init.body)
				return fetch(input, init)
			}})
			const look = tool({inputSchema: z.object({pier: z.string()}), execute: ({pier}) => {
				looked.push(pier)
				return `Fog at the ${pier} pier.`
			}})
			const [text, steps] = await scripted(id, answers, async () => {
				const result = await ask({model: openai(model), prompt: `Where is ${id}?`, tools: {look}, stopWhen: isStepCount(10), maxRetries: 0})
				await result.consumeStream?.()
				return [await result.text, await result.steps]
			})
			assert.equal(text, 'Fog at all of them.')
			assert.equal(steps.length, answers.length)
			assert.deepEqual(looked, piers)
			assert.equal(bodies.length, answers.length)
			assert.ok(!bodies.some(body => 'store' in JSON.parse(body)), 'the SDK said store')
			const referred = JSON.parse(bodies.at(-1)).input.filter(item => item.type === 'item_reference')
			assert.ok(referred.length >= piers.length, `the SDK's last call refers to ${referred.length} items`)
			const upstream = await last(model)
			for (const pier of piers) assert.ok(upstream.text.includes(`Fog at the ${pier} pier.`) && upstream.text.includes(`I look at the ${pier} pier.`), upstream.text)
		})
	}
}
