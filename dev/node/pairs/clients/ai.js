import {token, url} from '../../support.js'
import assert from 'node:assert/strict'
import {createAnthropic} from '@ai-sdk/anthropic'
import {createGoogle} from '@ai-sdk/google'
import {createOpenAI} from '@ai-sdk/openai'
import {createOpenAICompatible} from '@ai-sdk/openai-compatible'
import {generateText, isStepCount, streamText, tool} from 'ai'

const openai = createOpenAI({baseURL: url + '/v1', apiKey: token})
const compatible = createOpenAICompatible({name: 'relay', baseURL: url + '/v1', apiKey: token, includeUsage: true, supportsStructuredOutputs: true})
const anthropic = createAnthropic({baseURL: url + '/v1', apiKey: token})
const google = createGoogle({baseURL: url + '/v1beta', apiKey: token})

const asked = ({text, image}) => ({role: 'user', content: [
	...image ? [{type: 'file', data: image, mediaType: 'image/png'}] : [], {type: 'text', text},
]})

const reasons = {forceReasoning: true, reasoningEffort: 'medium'}

// providers are the model of a provider, and what makes it think.
export const providers = {
	'@ai-sdk/openai chat': {dialect: 'chat', of: name => openai.chat(name), options: () => ({openai: reasons})},
	'@ai-sdk/openai-compatible': {dialect: 'chat', thoughts: true, of: name => compatible(name), options: () => ({relay: {reasoningEffort: 'medium'}})},
	'@ai-sdk/openai': {
		dialect: 'responses', thoughts: true, of: name => openai(name),
		options: () => ({openai: {...reasons, reasoningSummary: 'auto', store: false, include: ['reasoning.encrypted_content']}}),
	},
	// The provider's own default: it refers to the items of answers, which the gateway stores of models of other formats.
	'@ai-sdk/openai stored': {
		dialect: 'responses', thoughts: true, foreign: true, of: name => openai(name), options: () => ({openai: {...reasons, reasoningSummary: 'auto'}}),
	},
	'@ai-sdk/anthropic': {
		dialect: 'messages', thoughts: true, of: name => anthropic(name),
		options: ({adaptive}) => ({anthropic: {thinking: adaptive ? {type: 'adaptive', display: 'summarized'} : {type: 'enabled', budgetTokens: 2048}}}),
	},
	'@ai-sdk/google': {
		dialect: 'gemini', thoughts: true, of: name => google(name),
		options: ({level}) => ({google: {thinkingConfig: {includeThoughts: true, ...level ? {thinkingLevel: 'medium'} : {thinkingBudget: 2048}}}}),
	},
}

const client = (how, provider, {dialect, thoughts, foreign, of, options}) => ({name: `${how} with ${provider}`, dialect, thoughts, foreign, open({system, tools}) {
	const set = Object.fromEntries(tools.map(({name, description, schema, run}) => [name, tool({description, inputSchema: schema, execute: given => run(given)})]))
	const messages = []
	return async (question, model) => {
		messages.push(asked(question))
		const errors = []
		const params = {
			model: of(model.name), system, messages, tools: set, stopWhen: isStepCount(10), maxRetries: 0, providerOptions: options(model),
			...dialect === 'messages' ? {maxOutputTokens: 8192} : {},
		}
		const result = how === 'streamText' ? streamText({...params, onError: ({error}) => errors.push(error)}) : await generateText(params)
		if (how === 'streamText') await result.consumeStream()
		if (errors.length > 0) throw errors[0]
		const steps = await result.steps
		for (const {usage} of steps) assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0)
		messages.push(...await result.responseMessages ?? (await result.response).messages)
		return steps.map(({text, reasoningText}) => ({text, thought: reasoningText ?? ''}))
	}
}})

export default Object.entries(providers).flatMap(([name, provider]) => ['streamText', 'generateText'].map(how => client(how, name, provider)))
