package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// TokenKeeper makes and changes tokens, as tokens.Store does.
type TokenKeeper interface {
	Page(ctx context.Context, q tokens.PageQuery) (tokens.Page, error)
	Count(ctx context.Context) (int64, error)
	Find(ctx context.Context, idOrName string) (tokens.Token, error)
	Create(ctx context.Context, token tokens.Token) (tokens.Token, string, error)
	Update(ctx context.Context, idOrName string, change func(*tokens.Token) error) (tokens.Token, error)
	Revoke(ctx context.Context, idOrName string) error
	Rotate(ctx context.Context, idOrName string) (tokens.Token, string, error)
	RotateWebhookSecret(ctx context.Context, idOrName string, overlap time.Duration) (tokens.Token, secret.Text, error)
}

// Paths of the tokens.
const (
	tokensPath = Root + "/tokens"
	tokenPath  = tokensPath + "/{token}"
)

// defaultGroup is that of a token that names none.
const defaultGroup = "default"

// TokenName is the path of one token. It is exported as TokenChange is.
type TokenName struct {
	Token string `path:"token" doc:"Id or name"`
}

// tokenNames finds the tokens that operators name.
type tokenNames struct{ keeper TokenKeeper }

// id is the stable id of a token by id or name. One that is not known may have been: it stays as it is.
func (n tokenNames) id(ctx context.Context, idOrName string) (string, error) {
	if idOrName == "" {
		return "", nil
	}
	if err := plainFilters("token", idOrName); err != nil {
		return "", err
	}
	token, err := n.keeper.Find(ctx, idOrName)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return idOrName, nil
	case err != nil:
		return "", storeFault("token", idOrName, err)
	}
	return token.ID, nil
}

type adminSecretRotation struct {
	TokenName

	Body *struct {
		Overlap *int     `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"How long the secret before goes on signing beside the new one; a day where it is absent"`
		_       struct{} `json:"-" additionalProperties:"false"`
	}
}

// TokenOptions are what the operations on tokens work with.
type TokenOptions struct {
	// Keeper has the client tokens.
	Keeper TokenKeeper
	// Check returns a token that is made (was is nil), or changed from what it was, as it is stored, or a *providers.Fault that
	// names the field that is wrong.
	Check func(was *tokens.Token, token tokens.Token) (tokens.Token, error)
	// Groups are all groups by their names.
	Groups func() map[string]Group
}

// tokenOperations are those on tokens. money tells what each has spent.
type tokenOperations struct {
	TokenOptions

	money Settler
}

// answer renders a token, or what went wrong with the one that was named.
func (o *tokenOperations) answer(ctx context.Context, name string, token tokens.Token, err error) (adminToken, error) {
	x := edge.Of(ctx)
	x.Act.Subject = name
	if err != nil {
		return adminToken{}, storeFault("token", name, err)
	}
	x.Act.Subject = token.ID
	one := []adminToken{o.Groups()[token.Group].shown(token, time.Now())}
	_ = o.complete(ctx, one) // what was asked for is done, and they are not the answer's point
	return one[0], nil
}

// add adds the operations on tokens.
func (o *tokenOperations) add(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListTokens", Method: http.MethodGet, Path: tokensPath, Summary: "List the tokens",
		Description: "By name unless another order is asked for; revoked ones too. A page looks at 5,000 tokens at most: one that is shorter than its limit goes on behind after.",
	}, o.list)
	edge.Register(g, huma.Operation{
		OperationID: "adminCreateToken", Method: http.MethodPost, Path: tokensPath, Summary: "Make a token",
		Description: "The answer holds its key, which is shown nowhere else.", DefaultStatus: http.StatusCreated,
	}, o.create)
	edge.Register(g, huma.Operation{
		OperationID: "adminGetToken", Method: http.MethodGet, Path: tokenPath, Summary: "Get a token",
	}, func(ctx context.Context, in *TokenName) (adminToken, error) {
		token, err := o.Keeper.Find(ctx, in.Token)
		return o.answer(ctx, in.Token, token, err)
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminUpdateToken", Method: http.MethodPatch, Path: tokenPath, Summary: "Change a token",
		Description: "What is absent stays. The change holds in every process within a second. A token of the configuration file " +
			"changes there: 409, as where its version is another than the change's.",
	}, o.update)
	edge.Register(g, huma.Operation{
		OperationID: "adminRevokeToken", Method: http.MethodDelete, Path: tokenPath, Summary: "Revoke a token",
		Description: "For good, in every process within a second. Its tasks go on, its name is free again.",
	}, func(ctx context.Context, in *TokenName) (adminToken, error) {
		token, err := o.Keeper.Find(ctx, in.Token)
		if err == nil {
			err = o.Keeper.Revoke(ctx, token.ID)
			before := token
			token.Disabled, token.Revoked = true, true
			edge.Of(ctx).Act.Changes = TokenChanges(before, token)
		}
		return o.answer(ctx, in.Token, token, err)
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminRotateToken", Method: http.MethodPost, Path: tokenPath + "/rotate", Summary: "Give a token a new key",
		Description: "The answer holds the new key; the one before is unknown within a second.",
	}, func(ctx context.Context, in *TokenName) (adminToken, error) {
		token, key, err := o.Keeper.Rotate(ctx, in.Token)
		edge.Of(ctx).Act.Changes = []audit.Change{audit.Set("hint", token.Hint)}
		answer, err := o.answer(ctx, in.Token, token, err)
		answer.Key = key
		return answer, err
	})
	edge.Register(g, huma.Operation{
		OperationID: "adminRotateWebhookSecret", Method: http.MethodPost, Path: tokenPath + "/rotate-webhook-secret",
		Summary: "Give a token a new webhook secret", Description: "The answer holds it; a token without one gets its first.",
	}, func(ctx context.Context, in *adminSecretRotation) (adminToken, error) {
		overlap := tokens.SecretOverlap
		if in.Body != nil && in.Body.Overlap != nil {
			overlap = time.Duration(*in.Body.Overlap) * time.Second
		}
		token, secret, err := o.Keeper.RotateWebhookSecret(ctx, in.Token, overlap)
		answer, err := o.answer(ctx, in.Token, token, err)
		answer.WebhookSecret = secret.Reveal()
		return answer, err
	})
}

func (o *tokenOperations) create(ctx context.Context, in *struct{ Body adminTokenCreate }) (adminToken, error) {
	secret := in.Body.secret()
	token := tokens.Token{Name: in.Body.Name, Group: defaultGroup, Weight: 1, Lane: slots.LaneNormal}
	plain := token
	err := in.Body.apply(&token, secret)
	if err == nil {
		token, err = o.Check(nil, token)
	}
	var key string
	if err == nil {
		token, key, err = o.Keeper.Create(ctx, token)
		edge.Of(ctx).Act.Changes = TokenChanges(plain, token)
	}
	answer, err := o.answer(ctx, in.Body.Name, token, err)
	answer.Key, answer.WebhookSecret = key, secret
	return answer, err
}

func (o *tokenOperations) update(ctx context.Context, in *struct {
	TokenName

	Body adminTokenUpdate
},
) (adminToken, error) {
	secret := in.Body.secret()
	var before tokens.Token
	token, err := o.Keeper.Update(ctx, in.Token, func(token *tokens.Token) error {
		before = *token
		err := in.Body.made(*token)
		if err == nil {
			err = in.Body.apply(token, secret)
		}
		if err == nil {
			*token, err = o.Check(&before, *token)
		}
		return err
	})
	edge.Of(ctx).Act.Changes = TokenChanges(before, token)
	answer, err := o.answer(ctx, in.Token, token, err)
	answer.WebhookSecret = secret
	return answer, err
}
