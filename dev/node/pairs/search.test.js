// Web search, which each vendor has in its own form: every client asks for it in its own, on models of all vendors, whole and streamed.
import {collect} from '../support.js'
import {providers} from './clients/ai.js'
import {last, scripted} from './control.js'
import {anthropic, google, openai} from './raw.js'
import {anthropic as anthropicTools} from '@ai-sdk/anthropic'
import {google as googleTools} from '@ai-sdk/google'
import {openai as openaiTools} from '@ai-sdk/openai'
import {generateText, streamText} from 'ai'
import assert from 'node:assert/strict'
import {randomUUID} from 'node:crypto'
import {test} from 'node:test'

// One model of each dialect; of OpenAI's, one that is asked in Responses alone and one that searches in chat completions alone.
const models = [
	{name: 'gpt-5.5', dialect: 'responses'},
	{name: 'gpt-4o-search-preview', dialect: 'chat'},
	{name: 'claude-opus-4-8', dialect: 'messages'},
	{name: 'gemini-2.5-flash', dialect: 'gemini'},
]

const query = 'harbour lights', before = 'Grüße 🗼: ', said = 'the light is green', after = ', Captain.'
const pages = [{url: 'https://harbour.example/lights', title: 'Lights'}, {url: 'https://harbour.example/greens', title: 'Greens "at" sea'}]
const answer = {parts: [{search: {query, pages}}, {text: before}, {cited: {text: said, page: 1}}, {text: after}]}

const of = (kind, list) => list.filter(({type}) => type === kind)

// characters is a range of a text as OpenAI counts, bytes one as Gemini counts.
const characters = (text, from, to) => [...text].slice(from, to).join('')
const bytes = (text, from = 0, to = 0) => Buffer.from(text).subarray(from, to).toString()

// clients ask for a search, and tell what came: the text, the citations with the text that cites, and the searches with their pages
// where the format has a place for them.
const clients = {
	chat: {
		asked: {web_search_options: {user_location: {type: 'approximate', approximate: {country: 'FR'}}}},
		async ask(model, content, stream) {
			const params = {model, messages: [{role: 'user', content}], ...this.asked}
			if (!stream) return (await openai.chat.completions.create(params)).choices[0].message
			const deltas = (await collect(await openai.chat.completions.create({...params, stream: true}))).map(({choices}) => choices[0]?.delta)
			return {content: deltas.map(delta => delta?.content ?? '').join(''), annotations: deltas.flatMap(delta => delta?.annotations ?? [])}
		},
		found: ({content, annotations}) => ({text: content, cites: annotations.map(({type, url_citation: {start_index, end_index, url, title}}) => (
			{type, url, title, said: characters(content, start_index, end_index)}))}),
		cites: 'url_citation',
	},
	responses: {
		asked: {tools: [{type: 'web_search', user_location: {type: 'approximate', country: 'FR'}}], include: ['web_search_call.action.sources']},
		async ask(model, input, stream) {
			const params = {model, input, store: false, ...this.asked}
			if (!stream) return openai.responses.create(params)
			const events = openai.responses.stream(params)
			const types = (await collect(events)).map(({type}) => type)
			const response = await events.finalResponse()
			for (const {content} of of('message', response.output)) {
				assert.equal(of('response.output_text.annotation.added', types.map(type => ({type}))).length, content.flatMap(({annotations}) => annotations).length)
			}
			if (of('web_search_call', response.output).length > 0) {
				assert.deepEqual(types.filter(type => type.includes('web_search_call')), ['in_progress', 'searching', 'completed'].map(state => `response.web_search_call.${state}`))
			}
			return response
		},
		found({output}) {
			const parts = of('message', output).flatMap(({content}) => content)
			return {
				text: parts.map(({text}) => text).join(''), cites: parts.flatMap(({text, annotations}) => annotations.map(({type, start_index, end_index, url, title}) => (
					{type, url, title, said: characters(text, start_index, end_index)}))),
				searches: of('web_search_call', output).map(({status, action: {type, query, sources}}) => {
					assert.deepEqual([status, type], ['completed', 'search'])
					return {query, pages: sources.map(({url}) => ({url}))}
				}),
			}
		},
		cites: 'url_citation',
	},
	messages: {
		asked: {tools: [{type: 'web_search_20250305', name: 'web_search', user_location: {type: 'approximate', country: 'FR'}}]},
		ask(model, content, stream) {
			const params = {model, max_tokens: 1000, messages: [{role: 'user', content}], ...this.asked}
			return stream ? anthropic.messages.stream(params).finalMessage() : anthropic.messages.create(params)
		},
		found({content, usage, stop_reason}) {
			const searches = of('server_tool_use', content)
			assert.equal(stop_reason, 'end_turn')
			assert.equal(usage.server_tool_use?.web_search_requests ?? 0, searches.length)
			return {
				text: of('text', content).map(({text}) => text).join(''),
				cites: of('text', content).flatMap(({citations}) => citations ?? []).map(({type, url, title, cited_text, encrypted_index}) => {
					assert.ok(encrypted_index)
					return {type, url, title, said: cited_text}
				}),
				searches: searches.map(({id, name, input: {query}}) => {
					assert.equal(name, 'web_search')
					const result = of('web_search_tool_result', content).find(({tool_use_id}) => tool_use_id === id)
					return {query, pages: result.content.map(({type, url, title, encrypted_content}) => {
						assert.ok(type === 'web_search_result' && encrypted_content)
						return {url, title}
					})}
				}),
			}
		},
		cites: 'web_search_result_location',
	},
	gemini: {
		asked: {tools: [{googleSearch: {}}]},
		async ask(model, contents, stream) {
			const params = {model, contents, config: this.asked}
			return stream ? collect(await google.models.generateContentStream(params)) : [await google.models.generateContent(params)]
		},
		found(chunks) {
			const text = chunks.map(({text}) => text ?? '').join('')
			const {webSearchQueries = [], groundingChunks, groundingSupports} = chunks.at(-1).candidates[0].groundingMetadata
			return {
				text, cites: groundingSupports.flatMap(({segment: {startIndex, endIndex, text: cited}, groundingChunkIndices}) => groundingChunkIndices.map(index => {
					assert.equal(bytes(text, startIndex, endIndex), cited)
					const {uri, title} = groundingChunks[index].web
					return {url: uri, title, said: cited}
				})),
				searches: webSearchQueries.map(query => ({query, pages: groundingChunks.map(({web: {uri, title}}) => ({url: uri, title}))})),
			}
		},
	},
}

const found = (work, of = answer) => {
	const id = randomUUID()
	return scripted(id, [of], () => work(`What are the lights of ${id}?`))
}

for (const [dialect, client] of Object.entries(clients)) {
	for (const model of models) {
		for (const stream of [false, true]) {
			test(`${dialect} on ${model.name} searches, ${stream ? 'streamed' : 'whole'}`, async () => {
				const got = client.found(await found(question => client.ask(model.name, question, stream)))
				assert.equal(got.text, before + said + after)
				assert.deepEqual(got.cites, [{...client.cites ? {type: client.cites} : {}, ...pages[1], said}])
				// Chat completions have no place for searches. Responses have pages without titles, which have their addresses in place of one.
				// The title of a page that is cited comes with the citation: in Gemini's form in time.
				if (dialect === 'chat' || model.dialect === 'chat') return
				const shown = pages.map(({url, title}, i) => (
					dialect === 'responses' ? {url} : {url, title: model.dialect === 'responses' && !(dialect === 'gemini' && i === 1) ? url : title}))
				assert.deepEqual(got.searches, [{query, pages: shown}])
			})
		}
	}

	test(`${dialect} on a model that cannot search: the call succeeds without`, async () => {
		const answered = {parts: [{text: 'Aye.'}]}
		const got = await found(question => client.ask('glm-5', question, false), answered)
		assert.ok(JSON.stringify(got).includes('Aye.'))
		if (dialect !== 'chat') assert.doesNotMatch((await last('glm-5')).text, /search/i)
	})
}

// tools are the searches of the AI SDK's providers. Google's sends its search to models of its own names alone.
const tools = {
	'@ai-sdk/openai': {web_search: openaiTools.tools.webSearch({})},
	'@ai-sdk/anthropic': {web_search: anthropicTools.tools.webSearch_20250305({})},
	'@ai-sdk/google': {google_search: googleTools.tools.googleSearch({})},
}

for (const [name, set] of Object.entries(tools)) {
	for (const model of models.filter(({dialect}) => name !== '@ai-sdk/google' || dialect === 'gemini')) {
		for (const ask of [generateText, streamText]) {
			test(`${ask.name} with ${name} on ${model.name} searches`, async () => {
				const {text, sources} = await found(async prompt => {
					const result = await ask({model: providers[name].of(model.name), prompt, tools: set, maxRetries: 0})
					return {text: await result.text, sources: await result.sources}
				})
				assert.equal(text, before + said + after)
				assert.ok(sources.some(({url}) => url === pages[1].url), JSON.stringify(sources))
			})
		}
	}
}
