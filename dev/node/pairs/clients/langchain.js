import {token, url} from '../../support.js'
import assert from 'node:assert/strict'
import {ChatAnthropic} from '@langchain/anthropic'
import {HumanMessage, SystemMessage, ToolMessage} from '@langchain/core/messages'
import {tool} from '@langchain/core/tools'
import {ChatGoogleGenerativeAI} from '@langchain/google-genai'
import {ChatOpenAI} from '@langchain/openai'

const openai = {apiKey: token, configuration: {baseURL: url + '/v1'}, maxRetries: 0}

// models are LangChain's, and what makes each think. The vendor itself refuses what ChatGoogleGenerativeAI makes of the results of parallel
// calls, a content for each (https://github.com/langchain-ai/langchainjs/issues/10341), and it shows images to none but models named gemini.
// ChatOpenAI asks none but models named gpt to think.
const models = {
	'ChatOpenAI': {dialect: 'chat', of: ({name}) => new ChatOpenAI({...openai, model: name, reasoning: {effort: 'medium'}})},
	'ChatOpenAI with Responses': {dialect: 'responses', thoughts: ({name}) => name.startsWith('gpt-'), include: ['reasoning.encrypted_content'], of: ({name}) => new ChatOpenAI({
		...openai, model: name, useResponsesApi: true, zdrEnabled: true, reasoning: {effort: 'medium', summary: 'auto'},
	})},
	'ChatAnthropic': {dialect: 'messages', thoughts: true, of: ({name, adaptive}) => new ChatAnthropic({
		model: name, apiKey: token, anthropicApiUrl: url, maxRetries: 0, maxTokens: 8192,
		thinking: adaptive ? {type: 'adaptive', display: 'summarized'} : {type: 'enabled', budget_tokens: 2048},
	})},
	'ChatGoogleGenerativeAI': {dialect: 'gemini', thoughts: true, plain: true, foreign: true, blind: true, of: ({name, level}) => new ChatGoogleGenerativeAI({
		model: name, apiKey: token, baseUrl: url, maxRetries: 0,
		thinkingConfig: {includeThoughts: true, ...level ? {thinkingLevel: 'MEDIUM'} : {thinkingBudget: 2048}},
	})},
}

const asked = ({text, image}) => new HumanMessage({content: [
	...image ? [{type: 'image_url', image_url: {url: 'data:image/png;base64,' + image}}] : [], {type: 'text', text},
]})

const thought = ({content}) => Array.isArray(content) ? content.map(block => block.thinking ?? block.reasoning ?? '').join('') : ''

export default Object.entries(models).map(([name, {dialect, thoughts, plain, foreign, blind, include, of}]) => ({name: `LangChain ${name}`, dialect, thoughts, plain, foreign, blind, open({system, tools}) {
	const bound = tools.map(({name, description, schema, run}) => tool(run, {name, description, schema}))
	const messages = [new SystemMessage(system)]
	return async (question, model) => {
		const chat = of(model).bindTools(bound, {include})
		messages.push(asked(question))
		for (const steps = []; ;) {
			let message
			for await (const chunk of await chat.stream(messages)) message = message ? message.concat(chunk) : chunk
			messages.push(message)
			assert.deepEqual(message.invalid_tool_calls, [])
			assert.ok(message.usage_metadata.input_tokens > 0 && message.usage_metadata.output_tokens > 0)
			steps.push({text: message.text, thought: thought(message)})
			if (message.tool_calls.length === 0) return steps
			for (const call of message.tool_calls) {
				const content = await bound.find(one => one.name === call.name).invoke(call.args)
				messages.push(new ToolMessage({content, tool_call_id: call.id, name: call.name}))
			}
		}
	}
}}))
