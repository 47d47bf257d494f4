package gemini

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// verb is one operation of the Gemini format. It follows the model in the path.
type verb struct {
	verb, summary, tag string
	name               providers.Operation
	body               func(huma.Registry) (*body.Checker, *huma.RequestBody)
}

func (v verb) streams() bool { return v.name == providers.StreamContent }

// verbs is the table of the operations, in the order of the model list.
func verbs() []verb {
	const generation, embeddings = "Format B content generation", "Embeddings"
	return []verb{
		{"generateContent", "Generate content", generation, providers.GenerateContent, newBody[geminiGenerate]},
		{"streamGenerateContent", "Generate content in pieces", generation, providers.StreamContent, newBody[geminiGenerate]},
		{"countTokens", "Count tokens", generation, providers.CountTokens, newBody[geminiCount]},
		{"embedContent", "Embed content", embeddings, providers.Embeddings, newBody[geminiEmbed]},
		{"batchEmbedContents", "Embed several contents", embeddings, providers.BatchEmbeddings, newBody[geminiBatchEmbed]},
	}
}

// declareAnswer declares the 200. Without alt=sse, a stream is a JSON array that is sent item by item.
func declareAnswer(streams bool) map[string]*huma.Response {
	answer := calls.DeclareAnswer("The upstream's answer", streams)
	if streams {
		answer["200"].Content["application/json"].Schema = body.ArrayOf(body.AnyObject())
	}
	return answer
}

// newBody declares a body and its check, with the fields that the gateway reads in addition to the contract. The vendor also accepts every
// name in snake case.
func newBody[Body any](registry huma.Registry) (*body.Checker, *huma.RequestBody) {
	c := body.NewChecker[Body](registry, "model", "generationConfig.maxOutputTokens", "generationConfig.candidateCount",
		"generationConfig.thinkingConfig.thinkingBudget")
	c.AllowSnakeCase()
	return c, body.DeclareJSON[Body](registry)
}

// Add adds the format: POST {prefix}/models/{model}:{verb} under both prefixes of its SDK, and its model list. long begins a long-running
// operation with a model, and read reads one: another package implements them.
func Add(g *edge.Group, c *calls.Calls, long, read edge.PathOperation) {
	addModels(g, c, read)
	long.Document(g)
	addVerbs(g, c, "/v1beta", "", map[string]edge.PathOperation{longVerb: long})
	addVerbs(g, c, "/v1", "V1", make(map[string]edge.PathOperation))
}

const longVerb = "predictLongRunning"

// addVerbs declares each verb, and routes all of them and those in routes with one handler: a model's name may contain slashes and colons,
// which the router's path parameters do not match.
func addVerbs(g *edge.Group, c *calls.Calls, prefix, suffix string, routes map[string]edge.PathOperation) {
	registry := g.OpenAPI().Components.Schemas
	for _, verb := range verbs() {
		check, requestBody := verb.body(registry)
		op := &huma.Operation{
			OperationID: verb.verb + suffix, Method: http.MethodPost, Path: prefix + "/models/{model}:" + verb.verb,
			Tags: []string{verb.tag}, Summary: verb.summary + ", " + prefix,
			Description: "Fields that are not listed here reach the upstream untouched.",
			Parameters:  []*huma.Param{edge.PathParameter("model", "Model id; it may contain slashes and colons")},
			RequestBody: requestBody, Responses: declareAnswer(verb.streams()),
		}
		if verb.streams() {
			op.Parameters = append(op.Parameters, edge.Parameter("query", "alt",
				"`sse` streams server-sent events; otherwise the answer is one JSON array, element by element"))
		}
		to := edge.PathOperation{Operation: op, Access: calls.Access(), Handle: func(x *edge.Request, r *http.Request, model string) error {
			return c.Relayed(func(_ *edge.Request, r *http.Request, raw []byte) (*calls.Call, error) {
				return read(r, raw, model, verb, check)
			})(x, r)
		}}
		to.Document(g)
		routes[verb.verb] = to
	}
	g.HandleAny(http.MethodPost, prefix+"/models/*", func(x *edge.Request, r *http.Request) (edge.PathOperation, string, error) {
		return target(routes, x, r)
	})
}

// target splits the path at its last colon. A path without a colon is that of a model, which has no POST.
func target(routes map[string]edge.PathOperation, x *edge.Request, r *http.Request) (to edge.PathOperation, model string, err error) {
	tail := edge.PathTail(r)
	colon := strings.LastIndexByte(tail, ':')
	if colon < 0 {
		x.Header().Set("Allow", http.MethodGet)
		return to, "", providers.Faultf(providers.MethodNotAllowed, "This path does not take %s.", r.Method)
	}
	to, known := routes[tail[colon+1:]]
	if !known {
		return to, "", edge.NothingHere()
	}
	return to, tail[:colon], nil
}

func read(r *http.Request, raw []byte, model string, verb verb, check *body.Checker) (call *calls.Call, err error) {
	b, err := check.Check(raw)
	if err != nil {
		return call, err
	}
	call = calls.JSONCall(providers.Endpoint{Format: providers.Gemini, Operation: verb.name}, b)
	call.Model, call.ModelAt = model, providers.Span{}
	call.Stream = verb.streams() && r.URL.Query().Get("alt") == "sse"
	call.Output, call.N = sizeOf(b)
	call.NamesAt, err = modelNames(b, model)
	return call, err
}

// sizeOf reads the size of the answer from the body's configuration: the maximum tokens of one answer, and the number of answers.
func sizeOf(b *body.JSON) (output, n int64) {
	config := b.Value("generationConfig")
	thinking := config.GetCamel("thinkingConfig")
	if thinking == nil {
		thinking = config
	}
	output = max(body.Whole(config.GetCamel("maxOutputTokens")), body.Whole(thinking.GetCamel("thinkingBudget")))
	return output, body.Whole(config.GetCamel("candidateCount"))
}
