package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// geminiVerb is one operation of format B, which stands behind the model in the path.
type geminiVerb struct {
	verb, id, summary, tag string
	name                   providers.Operation
	streams                bool
	body                   func(huma.Registry) (*body.Checker, *huma.RequestBody)
}

// geminiVerbs is the table of format B, in the order the model list shows.
func geminiVerbs() []geminiVerb {
	const generation, embeddings = "Format B content generation", "Embeddings"
	return []geminiVerb{
		{
			verb: "generateContent", id: "generateContent", summary: "Generate content", tag: generation,
			name: providers.GenerateContent, body: geminiBody[geminiGenerate],
		},
		{
			verb: "streamGenerateContent", id: "streamGenerateContent", summary: "Generate content in pieces", tag: generation,
			name: providers.StreamContent, streams: true, body: geminiBody[geminiGenerate],
		},
		{
			verb: "countTokens", id: "countTokens", summary: "Count tokens", tag: generation,
			name: providers.CountTokens, body: geminiBody[geminiCount],
		},
		{
			verb: "embedContent", id: "embedContent", summary: "Embed content", tag: embeddings,
			name: providers.Embeddings, body: geminiBody[geminiEmbed],
		},
		{
			verb: "batchEmbedContents", id: "batchEmbedContents", summary: "Embed several contents", tag: embeddings,
			name: providers.BatchEmbeddings, body: geminiBody[geminiBatchEmbed],
		},
	}
}

// geminiAnswer declares the 200. Without alt=sse a stream is one JSON array, whose items come one by one.
func geminiAnswer(streams bool) map[string]*huma.Response {
	answer := relayedAnswer("The upstream's answer", streams)
	if streams {
		answer["200"].Content["application/json"].Schema = body.ArrayOf(body.AnyObject())
	}
	return answer
}

func geminiBody[Body any](registry huma.Registry) (*body.Checker, *huma.RequestBody) {
	return newGeminiChecker[Body](registry), body.DeclareJSON[Body](registry)
}

// newGeminiChecker is newChecker with what the gateway reads of this format beyond the fields of the contract. The vendor
// takes every name in snake case as well.
func newGeminiChecker[Body any](registry huma.Registry) *body.Checker {
	c := body.NewChecker[Body](registry, "model", "generationConfig.maxOutputTokens", "generationConfig.candidateCount",
		"generationConfig.thinkingConfig.thinkingBudget")
	c.AllowSnakeCase()
	return c
}

// addGemini adds format B: POST {prefix}/models/{model}:{verb} under both prefixes its SDK uses, and its model list.
func (s *Server) addGemini(g *group) {
	s.addGeminiModels(g)
	s.addGeminiVerbs(g, "/v1beta", "")
	s.addGeminiVerbs(g, "/v1", "V1")
}

// geminiRoute is a verb as one prefix serves it.
type geminiRoute struct {
	path  string
	verb  geminiVerb
	check *body.Checker
}

// addGeminiVerbs declares each verb and routes all of them at once: a model's name may hold slashes and colons, which
// no path parameter of the router does.
func (s *Server) addGeminiVerbs(g *group, prefix, suffix string) {
	registry := g.OpenAPI().Components.Schemas
	routes := make(map[string]geminiRoute)
	for _, verb := range geminiVerbs() {
		check, requestBody := verb.body(registry)
		op := huma.Operation{
			OperationID: verb.id + suffix, Method: http.MethodPost, Path: prefix + "/models/{model}:" + verb.verb,
			Tags: []string{verb.tag}, Summary: verb.summary + ", " + prefix,
			Description: "Fields that are not listed here reach the upstream untouched.",
			Parameters:  []*huma.Param{pathParameter("model", "Model id; it may hold slashes and colons")},
			RequestBody: requestBody, Responses: geminiAnswer(verb.streams),
		}
		if verb.streams {
			op.Parameters = append(op.Parameters, &huma.Param{
				Name: "alt", In: "query", Schema: &huma.Schema{Type: huma.TypeString},
				Description: "`sse` streams server-sent events; else the answer is one JSON array, element by element",
			})
		}
		g.DocumentOperation(&op)
		routes[verb.verb] = geminiRoute{path: op.Path, verb: verb, check: check}
	}
	routed := &huma.Operation{Method: http.MethodPost, Path: prefix + "/models/*"}
	g.Adapter().Handle(routed, huma.Middlewares{g.enter}.Handler(func(ctx huma.Context) {
		r, x := unwrap(ctx)
		model, route, err := geminiTarget(routes, x, r)
		if err != nil {
			s.fail(x, err)
			return
		}
		x.operation = route.path
		huma.Middlewares{s.authenticate, s.limit}.Handler(func(huma.Context) {
			if err := s.relayGemini(x, r, model, route); err != nil {
				s.fail(x, err)
			}
		})(ctx)
	}))
}

// geminiTarget splits the path at its last colon. A path without one is a model's, which takes no POST.
func geminiTarget(routes map[string]geminiRoute, x *exchange, r *http.Request) (model string, route geminiRoute, err error) {
	tail := pathTail(r)
	colon := strings.LastIndexByte(tail, ':')
	if colon < 0 {
		x.format = formatOf(r)
		x.Header().Set("Allow", http.MethodGet)
		return "", route, providers.Faultf(providers.MethodNotAllowed, "This path does not take %s.", r.Method)
	}
	route, known := routes[tail[colon+1:]]
	if !known {
		return "", route, nothingHere()
	}
	return tail[:colon], route, nil
}

// relayGemini relays an operation of format B.
func (s *Server) relayGemini(x *exchange, r *http.Request, model string, route geminiRoute) error {
	if err := checkModel(model); err != nil {
		return err
	}
	raw, err := s.readBody(x, r)
	if err != nil {
		return err
	}
	b, err := route.check.Check(raw)
	if err != nil {
		return err
	}
	names, err := geminiNames(b, model)
	if err != nil {
		return err
	}
	return s.callChecked(x, r, providers.Call{
		Endpoint: providers.Endpoint{Format: providers.Gemini, Operation: route.verb.name}, Model: model, NamesAt: names,
		Stream:      route.verb.streams && r.URL.Query().Get("alt") == "sse",
		ContentType: "application/json", Header: callHeader(r), Body: raw, OpenValues: b.Unlisted != nil,
	}, b)
}
