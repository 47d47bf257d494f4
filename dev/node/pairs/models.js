// The models that the clients are run on, by the dialect in which an upstream is asked for each when the client speaks another.
// dev/e2e has a channel for each of them.
export const models = [
	{name: 'gpt-5.2', dialect: 'responses', chats: true},
	{name: 'gpt-5.5', dialect: 'responses'}, // calls tools in Responses alone
	{name: 'glm-5', dialect: 'chat'}, // of an imitator that has no Responses
	{name: 'claude-sonnet-4-5', dialect: 'messages'},
	{name: 'claude-opus-4-8', dialect: 'messages', adaptive: true},
	{name: 'gemini-2.5-flash', dialect: 'gemini'},
	{name: 'gemini-3-pro', dialect: 'gemini', level: true},
]

// spoken is the dialect in which the upstream of a model is asked by a client of a dialect.
export const spoken = (client, model) => client === 'chat' && model.chats ? 'chat' : model.dialect

// native says whether a client is on a model of its own dialect.
export const native = (client, model) => client.dialect === spoken(client.dialect, model)

// operations are the names of the upstreams' operations.
export const operations = {chat: ['chat'], responses: ['responses'], messages: ['messages'], gemini: ['generate', 'stream']}
