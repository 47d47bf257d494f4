// Answers in the form of a schema: each client's own helper for them, on every model.
import {token, url} from '../support.js'
import {providers} from './clients/ai.js'
import {last, scripted} from './control.js'
import {models, native} from './models.js'
import {Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled} from '@openai/agents'
import Anthropic from '@anthropic-ai/sdk'
import {zodOutputFormat} from '@anthropic-ai/sdk/helpers/zod'
import {GoogleGenAI} from '@google/genai'
import {ChatAnthropic} from '@langchain/anthropic'
import {ChatGoogleGenerativeAI} from '@langchain/google-genai'
import {ChatOpenAI} from '@langchain/openai'
import {Output, generateObject, generateText, streamText} from 'ai'
import OpenAI from 'openai'
import {zodResponseFormat, zodTextFormat} from 'openai/helpers/zod'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'
import {z} from 'zod'

setTracingDisabled(true)
const openai = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})
const anthropic = new Anthropic({baseURL: url, apiKey: token, maxRetries: 0})
const google = new GoogleGenAI({apiKey: token, httpOptions: {baseUrl: url}})

// boat has what models take differently: bounds, a list, one of several words, a field that may be null.
const boat = z.object({
	name: z.string().describe('As painted on the bow.'), masts: z.number().int().min(1).max(5), kind: z.enum(['cutter', 'ketch']),
	crew: z.array(z.object({name: z.string()})), captain: z.string().nullable(),
})
const answer = {name: 'Méduse "II"', masts: 2, kind: 'ketch', crew: [{name: 'Ann'}, {name: 'Bo'}], captain: null}

const ai = name => ({dialect: providers[name].dialect, of: providers[name].of})

const clients = {
	'openai chat.completions.parse': {dialect: 'chat', ask: async (model, content) => (await openai.chat.completions.parse({
		model, messages: [{role: 'user', content}], response_format: zodResponseFormat(boat, 'boat'),
	})).choices[0].message.parsed},
	'openai chat.completions.stream': {dialect: 'chat', ask: async (model, content) => (await openai.chat.completions.stream({
		model, messages: [{role: 'user', content}], response_format: zodResponseFormat(boat, 'boat'),
	}).finalChatCompletion()).choices[0].message.parsed},
	'openai responses.parse': {dialect: 'responses', ask: async (model, input) => (await openai.responses.parse({
		model, input, store: false, text: {format: zodTextFormat(boat, 'boat')},
	})).output_parsed},
	'anthropic messages.parse': {dialect: 'messages', ask: async (model, content) => (await anthropic.messages.parse({
		model, max_tokens: 1000, messages: [{role: 'user', content}], output_config: {format: zodOutputFormat(boat)},
	})).parsed_output},
	'genai responseJsonSchema': {dialect: 'gemini', ask: async (model, contents) => JSON.parse((await google.models.generateContent({
		model, contents, config: {responseMimeType: 'application/json', responseJsonSchema: z.toJSONSchema(boat)},
	})).text)},
	...Object.fromEntries(Object.keys(providers).flatMap(name => {
		const {dialect, of} = ai(name)
		return [
			[`generateObject with ${name}`, {dialect, ask: async (model, prompt) => (await generateObject({model: of(model), prompt, schema: boat, maxRetries: 0})).object}],
			[`generateText with ${name}`, {dialect, ask: async (model, prompt) => (
				await generateText({model: of(model), prompt, output: Output.object({schema: boat}), maxRetries: 0})).output}],
			[`streamText with ${name}`, {dialect, ask: async (model, prompt) => (
				await streamText({model: of(model), prompt, output: Output.object({schema: boat}), maxRetries: 0}).output)}],
		]
	})),
	'LangChain ChatOpenAI': {dialect: 'chat', ask: (model, text) => new ChatOpenAI({model, apiKey: token, configuration: {baseURL: url + '/v1'}, maxRetries: 0})
		.withStructuredOutput(boat, {method: 'jsonSchema', strict: true}).invoke(text)},
	// The vendor itself refuses how LangChain writes a list of types in its language of schemas.
	'LangChain ChatGoogleGenerativeAI': {dialect: 'gemini', foreign: true, ask: (model, text) => new ChatGoogleGenerativeAI({model, apiKey: token, baseUrl: url, maxRetries: 0})
		.withStructuredOutput(boat, {method: 'jsonSchema'}).invoke(text)},
	'LangChain ChatAnthropic': {dialect: 'messages', ask: (model, text) => new ChatAnthropic({model, apiKey: token, anthropicApiUrl: url, maxRetries: 0, maxTokens: 1000})
		.withStructuredOutput(boat, {method: 'jsonSchema'}).invoke(text)},
	'OpenAI Agents with Responses': {dialect: 'responses', ask: agent(OpenAIResponsesModel)},
	'OpenAI Agents with chat completions': {dialect: 'chat', ask: agent(OpenAIChatCompletionsModel)},
}

function agent(kind) {
	return async (model, text) => (await run(
		new Agent({name: 'keeper', outputType: boat, model: new kind(openai, model), modelSettings: {store: false}}), text,
	)).finalOutput
}

for (const [name, {dialect, foreign, ask}] of Object.entries(clients)) {
	for (const model of models) {
		if (foreign && native({dialect}, model)) continue
		test(`${name} on ${model.name}`, async () => {
			const id = randomUUID()
			const got = await scripted(id, [{parts: [{text: JSON.stringify(answer)}]}], () => ask(model.name, `Which boat lies in ${id}?`))
			assert.deepEqual(got, answer)
			assert.match((await last(model.name)).text, /As painted on the bow/, 'the schema reached the upstream')
		})
	}
}
