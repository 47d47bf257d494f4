package config

import (
	"reflect"
	"strings"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// The limits of the token store. They are repeated here so that a problem has a line and a column.
const (
	maxTokenName   = 128
	maxTokenKey    = 512
	randomIDPrefix = "tok_"
)

// Token is a client credential that is stored in Redis at the start.
type Token struct {
	Key providers.Secret `yaml:"key" doc:"key that the client sends"`
	tokens.Token
}

// setDefaults sets the defaults of absent keys of an entry.
func (t *Token) setDefaults() {
	t.Group, t.Models, t.Weight, t.Lane = DefaultGroup, []string{providers.AnyModel}, 1, slots.LaneNormal
}

func storedNetworks(networks []string) []string {
	stored := make([]string, 0, len(networks))
	for _, network := range networks {
		if prefix, err := parseNetwork(network); err == nil { // Validate and CheckToken refused invalid networks
			stored = append(stored, prefix.String())
		}
	}
	return stored
}

// CheckToken checks a token that is created, or changed from was, at run time against the rules of the file. It returns the token for the
// store. was is nil for a new token. The problem's key is the field of the token.
func (c Config) CheckToken(was *tokens.Token, t tokens.Token) (tokens.Token, *Problem) {
	v := &validator{}
	v.section("", reflect.ValueOf(t))
	if t.Name != t.ID || !strings.HasPrefix(t.ID, randomIDPrefix) { // otherwise it was created without a name, which does not change
		checkTokenName(v, ".name", t.Name)
	}
	checkToken(v, "", t, c.Webhooks)
	if was != nil && was.Group != t.Group {
		was = nil
	}
	c.Groups[t.Group].checkCeilings(v, "", t.Limits, t.Budget, was)
	if len(v.problems) > 0 {
		problem := v.problems[0]
		problem.Key = strings.TrimPrefix(problem.Key, ".")
		return t, &problem
	}
	t.Networks = storedNetworks(t.Networks)
	return t, nil
}

// checkToken checks what operators set in a token, in the file and at run time.
func checkToken(v *validator, at string, t tokens.Token, webhooks Webhooks) {
	if !providers.Plain(t.Group) {
		v.add(at+".group", "contains a control character")
	}
	checkLimits(v, at, t.Limits)
	v.amount(at+".budget", t.Budget)
	v.allFilled(at+".models", t.Models)
	for i, operation := range t.Operations {
		v.oneOf(key(at+".operations", i), operation, tokens.Operations()...)
	}
	for i, network := range t.Networks {
		if _, err := parseNetwork(network); err != nil {
			v.add(key(at+".networks", i), "%q is neither an address nor a CIDR range such as 10.0.0.0/8", network)
		}
	}
	if t.WebhookURL != "" {
		if err := activities.CheckReceiver(t.WebhookURL, webhooks.AllowPrivateNetworks); err != nil {
			v.add(at+".webhook_url", "%v", err)
		}
		if t.WebhookSecret == "" {
			v.add(at+".webhook_secret", "is required with webhook_url")
		}
	}
	if t.WebhookSecret != "" {
		if _, err := tokens.WebhookKey(t.WebhookSecret); err != nil {
			v.add(at+".webhook_secret", "%v", err)
		}
	}
}

func checkTokenKey(v *validator, at, credential string) {
	switch {
	case credential == "":
		v.add(at, "is missing")
	case len(credential) > maxTokenKey:
		v.add(at, "is longer than %d characters", maxTokenKey)
	case strings.ContainsFunc(credential, func(r rune) bool { return r <= ' ' || r > '~' }):
		v.add(at, "must be visible ASCII characters without spaces, as in a header")
	}
}

func checkTokenName(v *validator, at, name string) {
	switch {
	case strings.TrimSpace(name) == "":
		v.add(at, "is missing")
	case len(name) > maxTokenName:
		v.add(at, "is longer than %d bytes", maxTokenName)
	case strings.HasPrefix(name, randomIDPrefix):
		v.add(at, "begins with %q like the ids of tokens made at run time", randomIDPrefix)
	case !providers.Plain(name):
		v.add(at, "contains a control character")
	}
}

// checkLimits checks the limits of a token or of a group.
func checkLimits(v *validator, at string, limits tokens.Limits) {
	for _, limit := range tokens.ListLimits(limits) {
		switch {
		case limit.Default == 0:
			if limit.Value < 0 {
				v.add(at+"."+limit.Key, "is negative; 0 means no limit")
			}
		case limit.Value < tokens.Unlimited:
			v.add(at+"."+limit.Key, "is negative; 0 means %d, %d no limit", limit.Default, tokens.Unlimited)
		}
	}
}
