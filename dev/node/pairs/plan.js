// The conversation that every client has with every model: two questions, the first with an image, and six answers with thinking,
// parallel calls, a call without arguments, quotes and runes outside of ASCII.
import assert from 'node:assert/strict'
import {z} from 'zod'

// system names the conversation: the upstreams' script is chosen by it.
export const system = id => `You keep the book of harbour ${id}.`

// image is a PNG of one pixel, base64.
export const image = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

export const questions = [{text: 'What is in this picture?', image}, {text: 'And at night?'}]

const east = 'the "east" pier', tower = 'tür 🗼', bow = 'bow', stern = 'stern'

// answers are what the upstream's script says, in the words of dev/upstream/script.
export const answers = [
	{parts: [
		{think: 'Two things at once are faster.'}, {text: 'I look twice.'},
		{call: {name: 'look', arguments: {place: east}}}, {call: {name: 'count', arguments: {what: 'boats', above: 3}}},
	]},
	{parts: [{think: 'Now the tower.'}, {call: {name: 'look', arguments: {place: tower}}}]},
	{parts: [{think: 'That will do.'}, {text: 'Seven boats lie in fog.'}]},
	{parts: [{think: 'Both ends.'}, {call: {name: 'look', arguments: {place: bow}}}, {call: {name: 'look', arguments: {place: stern}}}]},
	{parts: [{think: 'Enough for a day.'}, {call: {name: 'rest', arguments: {}}}]},
	{parts: [{text: 'At night they sleep.'}]},
]

// perQuestion is how many of the answers belong to the first question.
export const perQuestion = 3

const word = kind => answers.map(({parts}) => parts.find(part => part[kind])?.[kind] ?? '')

// expected is what a client makes of the answers: a text and a thought for each, and the calls of the tools in order.
export const expected = {
	texts: word('text'), thoughts: word('think'),
	calls: answers.flatMap(({parts}) => parts.filter(part => part.call).map(({call}) => [call.name, call.arguments])),
}

// results are what the tools answer; each stands as it is in the last request of the conversation.
export const results = [east, tower, bow, stern].map(seen).concat('There are 7 of them.', 'Rested.')

function seen(place) {
	return `Fog over ${place.length} letters of ${place.replaceAll(/[^a-z ]/g, '')}.`
}

// toolbox is a set of tools that notes in calls what it was asked to do. A plain one has nothing in its schemas that Gemini's own
// language of schemas lacks: LangChain sends them in it as they are.
export function toolbox({plain = false} = {}) {
	const calls = []
	const tool = (name, description, schema, does) => ({name, description, schema, json: z.toJSONSchema(schema), run: given => {
		calls.push([name, given])
		return does(given)
	}})
	const tools = [
		tool('look', 'Looks at a place.', z.object({place: z.string().describe('Where to look.')}), ({place}) => seen(place)),
		tool('count', 'Counts what is there.', z.object({what: z.string().min(1), above: plain ? z.number() : z.number().gt(0)}), () => 'There are 7 of them.'),
		tool('rest', 'Does nothing.', z.object({}), () => 'Rested.'),
	]
	const run = (name, given) => {
		const found = tools.find(tool => tool.name === name)
		assert.ok(found, `a call of ${name}, which was not offered`)
		return found.run(found.schema.parse(given))
	}
	return {tools, calls, run}
}
