package edge

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// The tags of operations in the OpenAPI document that decide about their faults.
const (
	ModelsTag   = "Model list"
	VideoTag    = "Video" // tasks
	RealtimeTag = "Realtime"
	AccountTag  = "Account" // about the token itself
)

// declareFaults adds an operation's faults to the OpenAPI document, as components that the group shares. "default" covers all others.
func (g *Group) declareFaults(op *huma.Operation) {
	kinds := faultKinds(op, g.options.Access)
	if g.options.Kinds != nil {
		kinds = g.options.Kinds(op)
	}
	for _, kind := range kinds {
		for _, status := range g.statuses(kind) {
			code := strconv.Itoa(status)
			if op.Responses[code] == nil {
				op.Responses[code] = &huma.Response{Ref: g.faultComponent(kind, status)}
			}
		}
	}
	op.Responses["default"] = &huma.Response{
		Description: "Any other fault, in the format's own shape",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: g.FaultSchema()}},
	}
}

// FaultSchema declares the body of the group's faults.
func (g *Group) FaultSchema() *huma.Schema {
	registry := g.OpenAPI().Components.Schemas
	if len(g.options.Formats) == 1 {
		return g.options.Formats[0].FaultSchema(registry)
	}
	several := new(huma.Schema)
	for _, format := range g.options.Formats {
		several.AnyOf = append(several.AnyOf, format.FaultSchema(registry))
	}
	return several
}

func faultKinds(op *huma.Operation, access Access) []providers.Kind {
	kinds := []providers.Kind{
		providers.Unauthenticated, providers.Forbidden, providers.RateLimited, providers.Internal, providers.Overloaded,
	}
	task := slices.Contains(op.Tags, VideoTag)
	reads := func(in string) bool {
		return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == in })
	}
	if op.RequestBody != nil || reads("query") {
		kinds = append(kinds, providers.Invalid)
	}
	if strings.Contains(op.Path, "{") {
		kinds = append(kinds, providers.NotFound)
		if !task {
			kinds = append(kinds, providers.Invalid) // the name of a model may be too long
		}
	}
	if op.RequestBody != nil {
		kinds = append(kinds, providers.TooLarge, providers.UnsupportedMedia)
	}
	switch metered := op.RequestBody != nil || access.Meter != Unmetered; {
	case task && op.RequestBody == nil: // it reads
		kinds = append(kinds, providers.RateLimited)
	case metered && task:
		kinds = append(kinds, providers.ModelNotFound, providers.RateLimited, providers.Conflict, providers.Mismatch)
	case metered:
		kinds = append(kinds, providers.ModelNotFound, providers.RateLimited, providers.Upstream, providers.Timeout)
	}
	return kinds
}

func (g *Group) statuses(kind providers.Kind) []int {
	var list []int
	for _, format := range g.options.Formats {
		if status := format.status(kind); !slices.Contains(list, status) {
			list = append(list, status)
		}
	}
	return list
}

// faultComponent declares the answer of a fault once for the group, and returns the reference to it.
func (g *Group) faultComponent(kind providers.Kind, status int) string {
	components := g.OpenAPI().Components
	if components.Responses == nil {
		components.Responses = make(map[string]*huma.Response)
	}
	name := g.options.Title + "Fault" + strconv.Itoa(status)
	if components.Responses[name] == nil {
		response := &huma.Response{
			Description: g.options.Words(kind), Content: map[string]*huma.MediaType{"application/json": {Schema: g.FaultSchema()}},
		}
		passes := kind == providers.Conflict && g.options.ConflictsPass
		if passes || kind == providers.RateLimited || kind == providers.Quota || kind == providers.Overloaded {
			response.Headers = map[string]*huma.Param{"Retry-After": {
				Description: "Seconds after which to try again", Schema: &huma.Schema{Type: huma.TypeInteger},
			}}
		}
		components.Responses[name] = response
	}
	return "#/components/responses/" + name
}

// DescribeFault describes a kind for the OpenAPI document.
func DescribeFault(kind providers.Kind) string {
	words := map[providers.Kind]string{
		providers.Invalid:          "Bad request parameters; the fault names the field",
		providers.Unauthenticated:  "Failed authentication",
		providers.Forbidden:        "The token may not do this",
		providers.NotFound:         "The task or the model does not exist, or the token may not see it",
		providers.ModelNotFound:    "The task or the model does not exist, or the token may not see it",
		providers.Conflict:         "The idempotency key belongs to a task that is being deleted; a moment later it makes a new one",
		providers.TooLarge:         "The request body is too large",
		providers.UnsupportedMedia: "The request body has a content encoding other than gzip and zstd",
		providers.Mismatch:         "The idempotency key was used for another request",
		providers.RateLimited:      "Rate limited, or out of quota",
		providers.Upstream:         "The upstream failed",
		providers.Overloaded:       "No channel is available now",
		providers.Timeout:          "The upstream did not answer in time",
	}
	return cmp.Or(words[kind], "The gateway failed")
}
