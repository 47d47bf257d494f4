import {token, url} from '../../support.js'
import {Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool, user} from '@openai/agents'
import OpenAI from 'openai'

setTracingDisabled(true)
const sdk = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})

const asked = ({text, image}) => user([
	...image ? [{type: 'input_image', image: 'data:image/png;base64,' + image}] : [], {type: 'input_text', text},
])

// steps are the answers of the model, which the SDK cuts into items.
function stepsOf(responses) {
	return responses.map(({output}) => ({
		text: output.flatMap(item => item.type === 'message' ? item.content.map(part => part.text ?? '') : []).join(''),
		thought: output.flatMap(item => item.type === 'reasoning' ? item.content.map(part => part.text) : []).join(''),
	}))
}

const client = (name, dialect, kind, thoughts, more) => ({name: `OpenAI Agents with ${name}`, dialect, thoughts, open({system, tools}) {
	const set = tools.map(({name, description, schema, run}) => tool({name, description, parameters: schema, execute: given => run(given)}))
	let history = []
	return async (question, model) => {
		const agent = new Agent({
			name: 'keeper', instructions: system, tools: set, model: new kind(sdk, model.name),
			modelSettings: {reasoning: {effort: 'medium', summary: 'auto'}, store: false, ...more},
		})
		const result = await run(agent, [...history, asked(question)], {stream: true, maxTurns: 10})
		for await (const _ of result);
		await result.completed
		history = result.history
		return stepsOf(result.rawResponses)
	}
}})

export default [
	client('Responses', 'responses', OpenAIResponsesModel, true, {providerData: {include: ['reasoning.encrypted_content']}}),
	client('chat completions', 'chat', OpenAIChatCompletionsModel, false),
]
