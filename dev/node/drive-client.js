// Drives every operation of the gateway with a generated client: node drive-client.js CLIENT PLAN
//
// CLIENT is the compiled module that generate-client.js made, PLAN the list of calls that the Go client has as well. The
// environment names the gateway (GATEWAY_URL) and its keys (GATEWAY_TOKEN, GATEWAY_ADMIN_KEY).
import assert from 'node:assert/strict'
import {readFileSync} from 'node:fs'
import {resolve} from 'node:path'
import {pathToFileURL} from 'node:url'

const [folder, plan] = process.argv.slice(2)
const load = name => import(pathToFileURL(resolve(folder, name)))
const sdk = await load('sdk.gen.js')
const {client} = await load('client.gen.js')
client.setConfig({baseUrl: process.env.GATEWAY_URL})

const kept = {client: 'typescript-client'}
const fill = value => JSON.parse(JSON.stringify(value ?? {}).replace(/\{(\w+)\}/g, (all, name) => kept[name] ?? all))
const sound = new File([new Uint8Array([0x52, 0x49, 0x46, 0x46, 0x24, 0, 0, 0, 0x57, 0x41, 0x56, 0x45])], 'sound.wav')

for (const step of JSON.parse(readFileSync(plan, 'utf8'))) {
	const key = process.env[step.admin ? 'GATEWAY_ADMIN_KEY' : 'GATEWAY_TOKEN']
	const options = {
		auth: way => (way.scheme === 'bearer' ? key : undefined),
		headers: step.headers, path: fill(step.path), query: fill(step.query),
		sseMaxRetryAttempts: 1,
	}
	if (step.body) options.body = fill(step.body)
	if (step.form) options.body = {...step.form, [step.file]: sound}
	const call = sdk[step.operation]
	assert(call, `${step.operation}: the client has no such function`)
	const answer = await call(options)
	if (answer.stream) { // server-sent events: to their end
		let events = 0
		for await (const event of answer.stream) events += event ? 1 : 0
		assert(events > 0, `${step.operation}: no event came`)
	} else {
		const said = JSON.stringify(answer.error ?? answer.data)?.slice(0, 300)
		assert.equal(answer.response?.status, step.status ?? 200, `${step.operation}: ${said} ${answer.error}`)
		for (const [name, member] of Object.entries(step.keep ?? {})) kept[name] = String(answer.data[member])
	}
	console.log('ok', step.operation)
}
