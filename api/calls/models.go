package calls

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// ModelShape renders models in a format.
type ModelShape struct {
	List                  func(models []router.Model) any
	One                   func(model router.Model) any
	ListSchema, OneSchema func(huma.Registry) *huma.Schema
}

// NewModelShape returns the shape of a format from its entry of a model and its list of entries.
func NewModelShape[One, List any](one func(router.Model) One, list func([]One) List) ModelShape {
	return ModelShape{
		ListSchema: body.SchemaOf[List], OneSchema: body.SchemaOf[One],
		List: func(models []router.Model) any {
			entries := make([]One, len(models))
			for i, model := range models {
				entries[i] = one(model)
			}
			return list(entries)
		},
		One: func(model router.Model) any { return one(model) },
	}
}

// ModelCreated is the member "created" of every model: 2023-03-01, 00:00 UTC. The gateway does not know the true date, and with a constant
// one the lists of all processes are equal.
const ModelCreated = 1677628800

// maxModelName bounds the name of a model in logs, messages and Temporal's search attributes, in bytes.
const maxModelName = 255

// CheckModel returns a fault for a name that no model can have.
func CheckModel(name string) error {
	switch {
	case name == "":
		return providers.InvalidField("model", "Invalid request: 'model' must not be empty.")
	case len(name) > maxModelName:
		return providers.InvalidField("model", "Invalid request: 'model' is too long.")
	}
	return nil
}

// ModelNotFound returns the fault of a model that does not exist, or that the caller may not use.
func ModelNotFound(model string) *providers.Fault {
	fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", model)
	fault.Param, fault.Accepted = "model", providers.NotAccepted
	return fault
}

// Models lists the models that the caller may call, with the endpoints that it may use.
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

// Model returns the model of a name that the caller may call, also one that Models does not list.
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

// visible returns the model with the endpoints that the caller may call. It reports false if there are none.
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
