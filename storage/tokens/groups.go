package tokens

import (
	"reflect"
	"sync/atomic"
)

// GroupLimits are what the tokens of a group have where they have no limits of their own, and the most that they have.
type GroupLimits struct {
	Defaults, Ceilings Limits // 0: none; ceilings are not Unlimited
	// DefaultBudget and CeilingBudget are those of money, in units of the currency; 0: none.
	DefaultBudget, CeilingBudget float64
}

// InForce is the token with the limits that hold for it: its own, where it has none the group's default, else the group's
// ceiling, and nothing above the ceiling.
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

// groups are the limits of groups by their names, as they were set last.
type groups = map[string]GroupLimits

// held is a token in memory. Neither it nor what it becomes changes.
type held struct {
	own *Token
	as  atomic.Pointer[limited]
}

// limited is a token under limits of groups.
type limited struct {
	by    *groups
	token *Token
}

func hold(token *Token) *held { return &held{own: token} }

// inForce is the token with the limits that hold for it. It is made once for all who ask while the groups are the same.
func (h *held) inForce(by *groups) *Token {
	if as := h.as.Load(); as != nil && as.by == by {
		return as.token
	}
	token := h.own
	if group, is := (*by)[token.Group]; is {
		token = new(group.InForce(*token))
	}
	h.as.Store(&limited{by, token})
	return token
}

// SetGroups sets the limits of groups, by their names: from now on they hold for every token that is authenticated here,
// whenever it was made. What Redis keeps of tokens, and what Find, List and Page return, are a token's own limits.
func (t *Store) SetGroups(limits map[string]GroupLimits) { t.groups.Store(&limits) }
