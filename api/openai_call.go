package api

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// openAICall is one relayed operation of the OpenAI format.
type openAICall struct {
	huma.Operation
	name providers.Operation
	// settle, which may be nil, finishes the call of a checked body: what this operation asks beyond its fields, and what
	// it adds to them.
	settle func(r *http.Request, call *providers.Call, b *body.JSON) error
	// route is the router's pattern where it is not Path.
	route string
}

// addOpenAICall adds an operation whose JSON body, checked as Body says, goes upstream as it came.
func addOpenAICall[Body any](s *Server, g *group, c openAICall) {
	registry := g.OpenAPI().Components.Schemas
	check := newOpenAIChecker[Body](registry)
	c.Method = http.MethodPost
	if c.RequestBody == nil {
		c.RequestBody = body.DeclareJSON[Body](registry)
	}
	c.Middlewares = s.metered()
	if c.route == "" {
		c.route = c.Path
	}
	g.handleAt(c.route, c.Operation, func(x *exchange, r *http.Request) error {
		return s.callJSON(x, r, check, c)
	})
}

// newOpenAIChecker is newChecker with what the gateway reads of this format beyond the fields of the contract.
func newOpenAIChecker[Body any](registry huma.Registry) *body.Checker {
	return body.NewChecker[Body](registry, append(sizeNames(), cacheKey, "stream_options.include_usage", "parameters.n", "background")...)
}

// callJSON reads, checks and relays a JSON body.
func (s *Server) callJSON(x *exchange, r *http.Request, check *body.Checker, c openAICall) error {
	raw, err := s.readBody(x, r)
	if err != nil {
		return err
	}
	b, err := check.Check(raw)
	if err != nil {
		return err
	}
	call := callOf(r, providers.Endpoint{Format: providers.OpenAI, Operation: c.name}, b)
	if c.settle != nil {
		if err := c.settle(r, &call, b); err != nil {
			return err
		}
	}
	if err := checkModel(call.Model); err != nil {
		return err
	}
	return s.callChecked(x, r, call, b)
}

// streamUsage settles calls whose streams report usage only when asked to.
func streamUsage(_ *http.Request, call *providers.Call, b *body.JSON) error {
	if call.Stream {
		askUsage(call, b)
	}
	return nil
}

// setModel makes the model that the path or the configuration names the call's, whatever the body says of it.
func setModel(call *providers.Call, b *body.JSON, model string) {
	named := call.ModelAt != (providers.Span{})
	switch {
	case named && b.Value("model") != nil && call.Model == model:
		return
	case !named:
		inside := body.InsertMember(b.Raw, 0, `"model":`)
		call.ModelAt = inside.At
		empty := len(inside.Text) == len(`"model":`) // no comma: there are no other members
		call.EncodeModel = func(model string) []byte {
			name, _ := json.Marshal(model) // a string always marshals
			text := append([]byte(`"model":`), name...)
			if !empty {
				text = append(text, ',')
			}
			return text
		}
	}
	call.Model, call.ModelUnset = model, true
}

// relayedContent declares the 200 of a relayed call whose body is the upstream's, by media type: JSON objects, event
// streams and text as such, the rest as bytes.
func relayedContent(description string, mediaTypes ...string) map[string]*huma.Response {
	content := make(map[string]*huma.MediaType, len(mediaTypes))
	for _, mediaType := range mediaTypes {
		schema := &huma.Schema{Type: huma.TypeString, Format: "binary"}
		switch mediaType {
		case "application/json":
			schema = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
		case "text/event-stream", "text/plain", "text/vtt":
			schema = &huma.Schema{Type: huma.TypeString}
		}
		content[mediaType] = &huma.MediaType{Schema: schema}
	}
	return map[string]*huma.Response{"200": {Description: description, Content: content}}
}

// relayedAnswer declares the 200 of a relayed call, whose body is the upstream's.
func relayedAnswer(description string, streams bool) map[string]*huma.Response {
	if streams {
		return relayedContent(description, "application/json", "text/event-stream")
	}
	return relayedContent(description, "application/json")
}
