// Makes a TypeScript client of an OpenAPI document: node generate-client.js DOCUMENT FOLDER
import {createClient} from '@hey-api/openapi-ts'

const [input, path] = process.argv.slice(2)
await createClient({
	input,
	logs: {level: 'warn'},
	output: {path, module: {extension: '.js'}},
	plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
})
