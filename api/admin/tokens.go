package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
)

const (
	tokensPath = Root + "/tokens"
	tokenPath  = tokensPath + "/{token}"
)

func addTokens(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListTokens", Method: http.MethodGet, Path: tokensPath, Summary: "List the tokens",
		Description: "Sorted by name unless the query has another order; includes revoked tokens. A page reads at most 5,000 tokens, so it may be shorter than its limit. `after` is null on the last page.",
	}, s.ListTokens)
	register(g, huma.Operation{
		OperationID: "adminCreateToken", Method: http.MethodPost, Path: tokensPath, Summary: "Make a token",
		Description: "The answer has the key of the token. No other answer has it.", DefaultStatus: http.StatusCreated,
	}, s.CreateToken)
	register(g, huma.Operation{
		OperationID: "adminGetToken", Method: http.MethodGet, Path: tokenPath, Summary: "Get a token",
		Description: "The token by its id or name, with the limits in force and what it has spent.",
	}, s.Token)
	register(g, huma.Operation{
		OperationID: "adminUpdateToken", Method: http.MethodPatch, Path: tokenPath, Summary: "Change a token",
		Description: "Absent fields do not change. The change applies in every process within a second. " +
			"The answer is 409 for a token of the configuration file, and for a `version` that is not the token's current one.",
	}, s.UpdateToken)
	register(g, huma.Operation{
		OperationID: "adminRevokeToken", Method: http.MethodDelete, Path: tokenPath, Summary: "Revoke a token",
		Description: "Revokes the token permanently, in every process within a second. Its tasks continue, and its name is free again.",
	}, s.RevokeToken)
	register(g, huma.Operation{
		OperationID: "adminRotateToken", Method: http.MethodPost, Path: tokenPath + "/rotate", Summary: "Give a token a new key",
		Description: "The answer has the new key. The previous key is refused within a second.",
	}, s.RotateToken)
	register(g, huma.Operation{
		OperationID: "adminRotateWebhookSecret", Method: http.MethodPost, Path: tokenPath + "/rotate-webhook-secret",
		Summary: "Give a token a new webhook secret", Description: "The answer has the new secret. A token without a secret gets its first one.",
	}, s.RotateWebhookSecret)
	register(g, huma.Operation{
		OperationID: "adminListGroups", Method: http.MethodGet, Path: Root + "/groups", Summary: "List the groups of tokens",
		Description: "Sorted by name: groups of the configuration file, groups that channels name, and default. Their limits apply to every token of the group, new or old.",
	}, s.ListGroups)
}
