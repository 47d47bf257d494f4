package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// Categories of the contract that say more than what the document's readers see.
const (
	modelsTag   = "Model list"
	videoTag    = "Video" // all that is a task
	realtimeTag = "Realtime"
)

// declareFaults adds to an operation the answers to what can go wrong with it, each a component that the operations of a
// group share: of the kinds that its own making gives rise to. What no kind foresees is "default".
func (g *group) declareFaults(op *huma.Operation, body *huma.Schema) {
	kinds := faultKinds(op)
	if g.faults != "" {
		kinds = adminFaultKinds(op)
	}
	for _, kind := range kinds {
		for _, status := range g.statuses(kind) {
			code := strconv.Itoa(status)
			if op.Responses[code] == nil {
				op.Responses[code] = &huma.Response{Ref: g.faultComponent(kind, status, body)}
			}
		}
	}
	op.Responses["default"] = &huma.Response{
		Description: "Any other fault, in the format's own shape",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: body}},
	}
}

// faultKinds are the kinds of faults an operation may answer with.
func faultKinds(op *huma.Operation) []providers.Kind {
	kinds := []providers.Kind{
		providers.Unauthenticated, providers.Forbidden, providers.RateLimited, providers.Internal, providers.Overloaded,
	}
	task := slices.Contains(op.Tags, videoTag)
	reads := func(in string) bool {
		return slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == in })
	}
	if op.RequestBody != nil || reads("query") {
		kinds = append(kinds, providers.Invalid)
	}
	if strings.Contains(op.Path, "{") {
		kinds = append(kinds, providers.NotFound)
		if !task {
			kinds = append(kinds, providers.Invalid) // a model's name may be too long to be one
		}
	}
	if op.RequestBody != nil {
		kinds = append(kinds, providers.TooLarge)
	}
	switch metered := op.RequestBody != nil || len(op.Middlewares) > 0; {
	case task && op.RequestBody == nil: // it reads
		kinds = append(kinds, providers.RateLimited)
	case metered && task:
		kinds = append(kinds, providers.ModelNotFound, providers.RateLimited, providers.Conflict, providers.Mismatch)
	case metered:
		kinds = append(kinds, providers.ModelNotFound, providers.RateLimited, providers.Upstream, providers.Timeout)
	}
	return kinds
}

// statuses are those of a kind in the group's format, or in those its requests may choose.
func (g *group) statuses(kind providers.Kind) []int {
	status := classOf(kind).status
	switch {
	case kind != providers.Overloaded:
	case g.format == providers.Anthropic:
		return []int{statusOverloadedA}
	case g.format == "":
		return []int{status, statusOverloadedA}
	}
	return []int{status}
}

// faultComponent declares a fault's answer for the group once, and returns the reference to it.
func (g *group) faultComponent(kind providers.Kind, status int, body *huma.Schema) string {
	components := g.OpenAPI().Components
	if components.Responses == nil {
		components.Responses = make(map[string]*huma.Response)
	}
	prefix, words := g.faults, adminFaultWords
	if prefix == "" {
		words = faultWords
		prefix = map[providers.Format]string{
			providers.OpenAI: "OpenAI", providers.Anthropic: "Anthropic", providers.Gemini: "Gemini", providers.VendorC: "VendorC",
		}[g.format]
	}
	name := prefix + "Fault" + strconv.Itoa(status)
	if components.Responses[name] == nil {
		response := &huma.Response{
			Description: words(kind), Content: map[string]*huma.MediaType{"application/json": {Schema: body}},
		}
		// Of operators' conflicts none passes by itself.
		passes := status == http.StatusConflict && g.faults == ""
		if passes || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == statusOverloadedA {
			response.Headers = map[string]*huma.Param{"Retry-After": {
				Description: "Seconds after which to try again", Schema: &huma.Schema{Type: huma.TypeInteger},
			}}
		}
		components.Responses[name] = response
	}
	return "#/components/responses/" + name
}

// faultWords say what a kind means to whoever reads the document.
func faultWords(kind providers.Kind) string {
	switch kind {
	case providers.Invalid:
		return "Bad request parameters; the fault names the field"
	case providers.Unauthenticated:
		return "Failed authentication"
	case providers.Forbidden:
		return "The token may not do this"
	case providers.NotFound, providers.ModelNotFound:
		return "The task or the model does not exist, or the token may not see it"
	case providers.Conflict:
		return "The idempotency key belongs to a task that is being deleted; a moment later it makes a new one"
	case providers.TooLarge:
		return "The request body is too large"
	case providers.Mismatch:
		return "The idempotency key was used for another request"
	case providers.RateLimited:
		return "Rate limited, or out of quota"
	case providers.Upstream:
		return "The upstream failed"
	case providers.Overloaded:
		return "No channel is available now"
	case providers.Timeout:
		return "The upstream did not answer in time"
	default:
		return "The gateway failed"
	}
}

// adminFaultKinds are the kinds of faults an operator's operation may answer with.
func adminFaultKinds(op *huma.Operation) []providers.Kind {
	kinds := []providers.Kind{
		providers.Unauthenticated, providers.NotFound, providers.RateLimited, providers.Internal, providers.Overloaded,
	}
	if op.RequestBody != nil {
		kinds = append(kinds, providers.TooLarge)
	}
	if op.RequestBody != nil || len(op.Parameters) > 0 {
		kinds = append(kinds, providers.Invalid)
	}
	if op.Method != http.MethodGet {
		kinds = append(kinds, providers.Conflict)
	}
	return kinds
}

// adminFaultWords are faultWords for operators.
func adminFaultWords(kind providers.Kind) string {
	switch kind {
	case providers.Unauthenticated:
		return "The admin key is missing or wrong"
	case providers.NotFound:
		return "There is no such token or task, or the deployment has no admin key"
	case providers.RateLimited:
		return "Too many wrong admin keys from this network"
	case providers.Conflict:
		return "The state of the token or task does not allow this"
	case providers.Overloaded:
		return "Redis or Temporal does not answer"
	default:
		return faultWords(kind)
	}
}
