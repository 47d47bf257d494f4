package api

import (
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/admin"
	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/tasks"
	"modelrelay/providers/pricing"
)

// contractVersion is the version of the interface description.
const contractVersion = "1.0.0"

// OpenAPI returns the document of all operations of a Server, as YAML. version is that of the program. It requires none of the dependencies
// of a Server.
func OpenAPI(version string) ([]byte, error) {
	return New(Options{Version: version}).api.OpenAPI().YAML()
}

// apiConfig returns huma's configuration without huma's own routes: this package serves documents and pages itself. version is the
// program's.
func apiConfig(version string) huma.Config {
	config := huma.DefaultConfig("Model Relay", contractVersion)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Formats = edge.JSONBodies(body.DuplicateName)
	config.AllowAdditionalPropertiesByDefault = true
	config.Info.License = &huma.License{Name: "Apache License 2.0", Identifier: "Apache-2.0"}
	config.Info.Extensions = map[string]any{"x-gateway-version": version}
	config.Info.Description = "A gateway for AI model calls. Clients keep their own SDK, name a model, and the gateway " +
		"routes the call to a configured upstream channel. OpenAI's SDKs use this server's address with `/v1` as their base URL, " +
		"Anthropic's and Google's SDKs the address without a path. The API key is a token of this gateway."
	config.Tags = categories()
	config.Servers = []*huma.Server{{URL: "/", Description: "Where this document is served"}}
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	// An amount of money is a JSON number, although its type is a string elsewhere.
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[pricing.Money](), reflect.TypeFor[float64]())
	config.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[pricing.Decimal](), reflect.TypeFor[*float64]())
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{bearerScheme: {
		Type: "http", Scheme: "bearer", Description: "`Authorization: Bearer <API_TOKEN>`. A token may be limited to source networks and to operations. " +
			"The `x-permission` of an operation (relay, video or realtime) names its permission; every token may call an operation without it.",
	}, admin.Scheme: {
		Type: "http", Scheme: "bearer", Description: "`Authorization: Bearer <ADMIN_KEY>`, the deployment's `admin_key` or the key of one of its `operators`. " +
			"A viewer may only send GET. Without operators these paths are 404. With `admin.listen` they are at that address only. " +
			"After ten wrong keys within a minute a network is answered 429; the right key always passes.",
	}}
	for _, other := range otherCredentials() {
		config.Components.SecuritySchemes[other.scheme] = &huma.SecurityScheme{
			Type: "apiKey", In: other.in, Name: other.name, Description: "The token, in the place that " + other.sender + " uses",
		}
	}
	return config
}

// declareBackground declares the task as the answer of operations that may run in the background.
func declareBackground(doc *huma.OpenAPI) {
	task := doc.Paths["/v1/tasks/{task_id}"].Get.Responses["200"].Content
	for path, item := range doc.Paths {
		if item.Post == nil || !slices.ContainsFunc(backgroundPaths(), func(end string) bool { return strings.HasSuffix(path, end) }) {
			continue
		}
		item.Post.Responses["202"] = &huma.Response{Description: "The task of a call in the background", Content: task}
		item.Post.Parameters = append(item.Post.Parameters,
			edge.Parameter("header", "Prefer", "respond-async runs the call in the background, and wait=N waits N seconds for its end"))
	}
}

// backgroundPaths returns the suffixes of the paths of the operations that may run in the background.
func backgroundPaths() []string {
	return []string{
		"/completions", "/responses", "/responses/compact", "/messages", ":generateContent", ":streamGenerateContent", "/embeddings",
		":embedContent",
		":batchEmbedContents", "/images/generations", "/images/edits", "/audio/transcriptions", "/audio/translations", "/audio/speech",
		"/moderations", "/rerank",
	}
}

// schemaName is the name of a type in the document. Types of the operator's actions have short names, which types for clients also use.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch path.Base(t.PkgPath()) {
	case "operator":
		return "Admin" + name
	case "audit":
		return "Audit" + name
	case "setup":
		return map[string]string{"Finding": "AdminFinding", "Result": "AdminSetupResult"}[name]
	}
	return name
}

// bearerScheme is the security scheme that every client operation declares.
const bearerScheme = "bearer"

// otherCredential is a place for the token other than the bearer scheme.
type otherCredential struct{ scheme, in, name, sender string }

// otherCredentials returns the places in the order of precedence; the bearer scheme precedes them.
func otherCredentials() []otherCredential {
	return []otherCredential{
		{"apiKeyA", "header", "x-api-key", "a client of format A (Anthropic's) or of vendor C (Volcengine's)"},
		{"apiKeyB", "header", "x-vendorB-api-key", "a client of format B (Google Gemini's)"},
		{"apiKeyGoogle", "header", "x-goog-api-key", "Google's SDK"},
		{"apiKeyQuery", "query", "key", "a client that can set no headers"},
	}
}

// tokenSecurity lists the ways to send a token. A request needs one of them.
func tokenSecurity() []map[string][]string {
	list := []map[string][]string{{bearerScheme: {}}}
	for _, other := range otherCredentials() {
		list = append(list, map[string][]string{other.scheme: {}})
	}
	return list
}

// categories are the tags of the document, in the order for a new reader; the operator's are last.
func categories() []*huma.Tag {
	return []*huma.Tag{
		{Name: edge.ModelsTag, Description: "The models that the token may call, in the shape that the request's headers select"},
		{Name: "Chat format", Description: "OpenAI's chat completions"},
		{Name: "Responses format", Description: "OpenAI's responses"},
		{Name: "Messages format (format A)", Description: "Format A is Anthropic's"},
		{Name: "Format B content generation", Description: "Format B is Google Gemini's, under `/v1beta` and `/v1`"},
		{Name: gemini.InteractionsTag, Description: "Format B's newer interface: videos as tasks of any vendor, everything else on a Gemini upstream"},
		{Name: "Completions"},
		{Name: "Embeddings"},
		{Name: "Image generation"},
		{Name: "Audio"},
		{Name: "Rerank"},
		{Name: "Moderations"},
		{Name: edge.RealtimeTag},
		{Name: edge.VideoTag, Description: "Video tasks: created in one of four formats, read in any of them"},
		{Name: tasks.Tag, Description: "Tasks of every kind: calls in the background, and videos"},
		{Name: edge.AccountTag, Description: "The token itself: its limits and budget, what remains of them, its usage and its calls"},
		{Name: admin.Tag, Description: "Requires the key of an operator, not a token"},
	}
}

// dropHumaErrors removes huma's own error schema, which no answer uses, from the document.
func dropHumaErrors(document *huma.OpenAPI) {
	schemas := document.Components.Schemas.Map()
	delete(schemas, "ErrorModel")
	delete(schemas, "ErrorDetail")
}

// document serves bytes that do not change.
func document(contentType string, content []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write(content) // the client may have left
	}
}
