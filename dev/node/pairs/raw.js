// The vendors' own SDKs, each asked one plain question: whole and streamed.
import {token, url} from '../support.js'
import Anthropic from '@anthropic-ai/sdk'
import {ApiError, GoogleGenAI} from '@google/genai'
import OpenAI from 'openai'

export const openai = new OpenAI({baseURL: url + '/v1', apiKey: token, maxRetries: 0})
export const anthropic = new Anthropic({baseURL: url, apiKey: token, maxRetries: 0})
export const google = new GoogleGenAI({apiKey: token, httpOptions: {baseUrl: url}})

// raw has for each dialect how to ask for a whole answer's text and for a stream's events, and the text within an event.
export const raw = {
	chat: {
		errors: {400: OpenAI.BadRequestError, 429: OpenAI.RateLimitError, 500: OpenAI.InternalServerError},
		whole: async (model, content, more) => (
			await openai.chat.completions.create({model, messages: [{role: 'user', content}], ...more})).choices[0].message.content,
		stream: (model, content) => openai.chat.completions.create({model, messages: [{role: 'user', content}], stream: true}),
		text: event => event.choices[0]?.delta.content ?? '',
	},
	responses: {
		errors: {400: OpenAI.BadRequestError, 429: OpenAI.RateLimitError, 500: OpenAI.InternalServerError},
		whole: async (model, input, more) => (await openai.responses.create({model, input, store: false, ...more})).output_text,
		stream: (model, input) => openai.responses.create({model, input, store: false, stream: true}),
		text: event => event.type === 'response.output_text.delta' ? event.delta : '',
	},
	messages: {
		errors: {400: Anthropic.BadRequestError, 429: Anthropic.RateLimitError, 500: Anthropic.InternalServerError},
		whole: async (model, content, more) => (
			await anthropic.messages.create({model, max_tokens: 1000, messages: [{role: 'user', content}], ...more})).content.find(({type}) => type === 'text').text,
		stream: (model, content) => anthropic.messages.create({model, max_tokens: 1000, messages: [{role: 'user', content}], stream: true}),
		text: event => event.delta?.text ?? '',
	},
	gemini: {
		errors: {400: ApiError, 429: ApiError, 500: ApiError},
		whole: async (model, contents, config) => (await google.models.generateContent({model, contents, config})).text,
		stream: (model, contents) => google.models.generateContentStream({model, contents}),
		text: event => event.text ?? '',
	},
}
