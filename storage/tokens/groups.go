package tokens

import (
	"reflect"
	"sync/atomic"
)

// GroupLimits are the default limits of a group's tokens, and their upper bounds. 0: none.
type GroupLimits struct {
	Defaults Defaults `yaml:"defaults"`
	Ceilings Ceilings `yaml:"ceilings"` // not Unlimited
}

// Defaults are the limits of tokens without their own.
type Defaults struct {
	Limits
	Budget float64 `yaml:"budget" doc:"budget of a token without its own budget"`
}

// Ceilings are the highest limits that a token may have.
type Ceilings struct {
	Limits
	Budget float64 `yaml:"budget" doc:"maximum budget of a token; also the budget of a token without one, if defaults has none. 0: no limit"`
}

// InForce returns the token with its effective limits: each is its own or else the group's default, and at most the group's ceiling.
func (g GroupLimits) InForce(t Token) Token {
	limits := reflect.ValueOf(&t.Limits).Elem()
	defaults, ceilings := reflect.ValueOf(g.Defaults.Limits), reflect.ValueOf(g.Ceilings.Limits)
	for field, most := range ceilings.Fields() {
		limit := limits.FieldByIndex(field.Index)
		if limit.Int() == 0 {
			limit.Set(defaults.FieldByIndex(field.Index))
		}
		if over := limit.Int() <= 0 || limit.Int() > most.Int(); most.Int() > 0 && over {
			limit.Set(most)
		}
	}
	if t.Budget <= 0 {
		t.Budget = g.Defaults.Budget
	}
	if over := t.Budget <= 0 || t.Budget > g.Ceilings.Budget; g.Ceilings.Budget > 0 && over {
		t.Budget = g.Ceilings.Budget
	}
	return t
}

// groups are the latest limits of groups, by name.
type groups = map[string]GroupLimits

// held is a token in memory with a cache of its effective limits. Its tokens are not modified.
type held struct {
	own       *Token
	effective atomic.Pointer[limited]
}

// limited is a token with its effective limits under the groups by.
type limited struct {
	by    *groups
	token *Token
}

func hold(token *Token) *held { return &held{own: token} }

// inForce returns the token with its effective limits. It computes them once for the same groups.
func (h *held) inForce(by *groups) *Token {
	if cached := h.effective.Load(); cached != nil && cached.by == by {
		return cached.token
	}
	token := h.own
	if group, is := (*by)[token.Group]; is {
		token = new(group.InForce(*token))
	}
	h.effective.Store(&limited{by, token})
	return token
}

// SetGroups sets the limits of groups, by name. They apply from the next authentication. Redis, Find and Page have a token's own limits.
func (t *Store) SetGroups(limits map[string]GroupLimits) { t.groups.Store(&limits) }
