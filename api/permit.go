package api

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage"
)

// permissionKey is where the OpenAPI document says of an operation which word of a token's operations it belongs to.
const permissionKey = "x-permission"

// permissionOf is the word of a token's operations that an operation belongs to, by its category in the contract; "" for
// the model lists, which every token may read.
func permissionOf(op *huma.Operation) string {
	switch {
	case slices.Contains(op.Tags, modelsTag):
		return ""
	case slices.Contains(op.Tags, videoTag):
		return storage.OperationVideo
	case slices.Contains(op.Tags, realtimeTag):
		return storage.OperationRealtime
	default:
		return storage.OperationRelay
	}
}

// permissionFor is the word that a model's endpoint belongs to.
func permissionFor(endpoint providers.Endpoint) string {
	switch endpoint.Operation {
	case providers.VideoTask:
		return storage.OperationVideo
	case providers.Realtime:
		return storage.OperationRealtime
	default:
		return storage.OperationRelay
	}
}

// permit tells whether the caller may do this from where it is.
func permit(caller *storage.Token, r *http.Request, permission string) error {
	switch {
	case !caller.Admits(sourceOf(r)):
		return providers.Faultf(providers.Forbidden, "The API key may not be used from this network.")
	case permission != "" && !caller.Permits(permission):
		return providers.Faultf(providers.Forbidden, "The API key may not be used for %s operations.", permission)
	}
	return nil
}

// visible is the model as the caller sees it: with the endpoints that it may call. Without any there is no such model.
func visible(caller *storage.Token, model providers.Model) (providers.Model, bool) {
	if !caller.Allows(model.ID) {
		return model, false
	}
	if len(caller.Operations) > 0 {
		model.Endpoints = slices.DeleteFunc(slices.Clone(model.Endpoints), func(endpoint providers.Endpoint) bool {
			return !caller.Permits(permissionFor(endpoint))
		})
	}
	return model, len(model.Endpoints) > 0
}
