package main

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/storage"
)

// laterKey stands in for the key of a token that is yet to be made, which the rules of the file ask for.
const laterKey = "sk-later"

// entryOf is the token as the file would hold it.
func entryOf(t storage.Token) Token {
	return Token{
		Name: t.Name, Key: laterKey, Group: t.Group, Models: t.Models, TokenLimits: t.TokenLimits,
		Budget: t.Budget, Weight: t.Weight, Lane: t.Lane, Expires: t.Expires, Networks: t.Networks, Operations: t.Operations,
		WebhookURL: t.WebhookURL, WebhookSecret: providers.Secret(t.WebhookSecret.Reveal()), Disabled: t.Disabled,
	}
}

// checkToken holds a token that is made or changed while the gateway runs to the rules of the file, and returns it as it
// is stored. The problem's key is the token's own field.
func checkToken(t storage.Token, webhooks Webhooks) (storage.Token, *Problem) {
	j := &judge{}
	entry := entryOf(t)
	if strings.HasPrefix(t.ID, randomIDPrefix) && t.Name == t.ID {
		entry.Name = laterKey // it was made without a name, and no name is given to it now
	}
	j.token("", entry, webhooks)
	if len(j.problems) > 0 {
		problem := j.problems[0]
		problem.Key = strings.TrimPrefix(problem.Key, ".")
		return t, &problem
	}
	stored := entry.stored()
	t.Networks = stored.Networks
	return t, nil
}
