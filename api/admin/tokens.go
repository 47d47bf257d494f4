package admin

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/api/operator"
)

// Paths of the tokens.
const (
	tokensPath = Root + "/tokens"
	tokenPath  = tokensPath + "/{token}"
)

// addTokens adds the operations on tokens and their groups.
func addTokens(g *edge.Group, s *operator.Service) {
	register(g, huma.Operation{
		OperationID: "adminListTokens", Method: http.MethodGet, Path: tokensPath, Summary: "List the tokens",
		Description: "By name unless another order is asked for; revoked ones too. A page looks at 5,000 tokens at most: one that is shorter than its limit goes on behind after.",
	}, s.ListTokens)
	register(g, huma.Operation{
		OperationID: "adminCreateToken", Method: http.MethodPost, Path: tokensPath, Summary: "Make a token",
		Description: "The answer holds its key, which is shown nowhere else.", DefaultStatus: http.StatusCreated,
	}, s.CreateToken)
	register(g, huma.Operation{OperationID: "adminGetToken", Method: http.MethodGet, Path: tokenPath, Summary: "Get a token"}, s.Token)
	register(g, huma.Operation{
		OperationID: "adminUpdateToken", Method: http.MethodPatch, Path: tokenPath, Summary: "Change a token",
		Description: "What is absent stays. The change holds in every process within a second. A token of the configuration file " +
			"changes there: 409, as where its version is another than the change's.",
	}, s.UpdateToken)
	register(g, huma.Operation{
		OperationID: "adminRevokeToken", Method: http.MethodDelete, Path: tokenPath, Summary: "Revoke a token",
		Description: "For good, in every process within a second. Its tasks go on, its name is free again.",
	}, s.RevokeToken)
	register(g, huma.Operation{
		OperationID: "adminRotateToken", Method: http.MethodPost, Path: tokenPath + "/rotate", Summary: "Give a token a new key",
		Description: "The answer holds the new key; the one before is unknown within a second.",
	}, s.RotateToken)
	register(g, huma.Operation{
		OperationID: "adminRotateWebhookSecret", Method: http.MethodPost, Path: tokenPath + "/rotate-webhook-secret",
		Summary: "Give a token a new webhook secret", Description: "The answer holds it; a token without one gets its first.",
	}, s.RotateWebhookSecret)
	register(g, huma.Operation{
		OperationID: "adminListGroups", Method: http.MethodGet, Path: Root + "/groups", Summary: "List the groups of tokens",
		Description: "By name: those that the configuration file describes, those that channels name, and default. Their limits hold for every token, whenever it was made.",
	}, s.ListGroups)
}
