package tokens

import (
	"reflect"
	"sync/atomic"
)

// GroupLimits are the default limits of a group's tokens, and their upper bounds.
type GroupLimits struct {
	Defaults, Ceilings Limits // 0: none; ceilings are not Unlimited
	// DefaultBudget and CeilingBudget are in units of the currency; 0: none.
	DefaultBudget, CeilingBudget float64
}

// InForce returns the token with its effective limits: each is its own or else the group's default, and at most the group's ceiling.
func (g GroupLimits) InForce(t Token) Token {
	limits := reflect.ValueOf(&t.Limits).Elem()
	defaults, ceilings := reflect.ValueOf(g.Defaults), reflect.ValueOf(g.Ceilings)
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
		t.Budget = g.DefaultBudget
	}
	if over := t.Budget <= 0 || t.Budget > g.CeilingBudget; g.CeilingBudget > 0 && over {
		t.Budget = g.CeilingBudget
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
