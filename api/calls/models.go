package calls

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// ModelShape is how a format shows models.
type ModelShape struct {
	List                  func(models []router.Model) any
	One                   func(model router.Model) any
	ListSchema, OneSchema func(huma.Registry) *huma.Schema
}

// ModelCreated is the "created" of every model: the gateway knows no better date, and a constant one keeps lists equal
// over restarts and processes. It is 2023-03-01, 00:00 UTC.
const ModelCreated = 1677628800

// maxModelName bounds in bytes what may be in logs and messages as a model's name, and in Temporal's search attributes.
const maxModelName = 255

// CheckModel reports whether a name can be that of a model at all.
func CheckModel(name string) error {
	switch {
	case name == "":
		return providers.InvalidField("model", "Invalid request: 'model' must not be empty.")
	case len(name) > maxModelName:
		return providers.InvalidField("model", "Invalid request: 'model' is too long.")
	}
	return nil
}

// ModelNotFound is the fault of a model that the caller may not use, or that no client has.
func ModelNotFound(model string) *providers.Fault {
	fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", model)
	fault.Param, fault.Accepted = "model", providers.NotAccepted
	return fault
}

// Models lists what a call of the caller would be taken for: what its group can call and its token may see and use.
func (c *Calls) Models(caller *tokens.Token) []router.Model {
	all := c.options.Router.Models(caller.Group)
	seen := make([]router.Model, 0, len(all))
	for _, model := range all {
		if model, ok := visible(caller, model); ok {
			seen = append(seen, model)
		}
	}
	return seen
}

// Model is what a call of the caller would be taken for under the name, listed or not.
func (c *Calls) Model(caller *tokens.Token, name string) (router.Model, error) {
	if err := CheckModel(name); err != nil {
		return router.Model{}, err
	}
	if model, known := c.options.Router.Model(caller.Group, name); known {
		if model, ok := visible(caller, model); ok {
			return model, nil
		}
	}
	return router.Model{}, ModelNotFound(name)
}

// visible is the model as the caller sees it: with the endpoints that it may call. Without any there is no such model.
func visible(caller *tokens.Token, model router.Model) (router.Model, bool) {
	if !caller.Allows(model.Public) {
		return model, false
	}
	if len(caller.Operations) > 0 {
		model.Endpoints = slices.DeleteFunc(slices.Clone(model.Endpoints), func(endpoint providers.Endpoint) bool {
			return !caller.Permits(permissionFor(endpoint))
		})
	}
	return model, len(model.Endpoints) > 0
}

// permissionFor is the word that a model's endpoint belongs to.
func permissionFor(endpoint providers.Endpoint) string {
	switch endpoint.Operation {
	case providers.VideoTask:
		return tokens.OperationVideo
	case providers.Realtime:
		return tokens.OperationRealtime
	default:
		return tokens.OperationRelay
	}
}
