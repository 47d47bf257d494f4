package operator

import (
	"context"
	"maps"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/storage/tokens"
)

// GroupRules are the rules for the tokens of a group.
type GroupRules struct {
	tokens.GroupLimits

	Forbid   []string // what its tokens may not request
	Channels []string // the channels for its tokens, by name
}

// Limits are all limits of a token, or of a group.
type Limits struct {
	tokens.LimitChange         // all are present
	Budget             float64 `json:"budget" doc:"Money that the token may spend in total, in the currency of prices; 0: no limit"`
}

// TransformSchema declares that all limits are present; in a change they are optional.
func (Limits) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return withLimits(s) }

// withLimits requires all limits of a token in a schema.
func withLimits(s *huma.Schema) *huma.Schema {
	for _, limit := range tokens.ListLimits(tokens.Limits{}) {
		s.Required = append(s.Required, limit.Key)
	}
	return s
}

// Group is a group of tokens.
type Group struct {
	Object   string   `json:"object" enum:"group"`
	Name     string   `json:"name"`
	Channels []string `json:"channels" nullable:"false" doc:"Names of the channels that its tokens may use"`
	Defaults Limits   `json:"defaults" doc:"Limits of tokens without their own limits; 0: none"`
	Ceilings Limits   `json:"ceilings" doc:"Maximum limits of its tokens; 0: no maximum"`
	Forbid   []string `json:"forbid" nullable:"false" doc:"What its tokens may not request: background, service_tier, hosted_tools, inference_geo, cached_content, long_cache, long_context, other_models"`
}

// GroupList is all groups.
type GroupList struct {
	Object string  `json:"object" enum:"list"`
	Data   []Group `json:"data" nullable:"false"`
}

// ListGroups returns the groups of the configuration file, the groups that channels name, and default, by name.
func (s *Service) ListGroups(_ context.Context, by Actor, _ *struct{}) (GroupList, error) {
	if err := reads(by, nil); err != nil {
		return GroupList{}, err
	}
	groups := s.Groups()
	list := GroupList{Object: "list", Data: []Group{}}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group := groups[name]
		list.Data = append(list.Data, Group{
			Object: "group", Name: name, Channels: orNone(group.Channels), Forbid: orNone(group.Forbid),
			Defaults: Limits{tokens.AllLimits(group.Defaults.Limits), group.Defaults.Budget},
			Ceilings: Limits{tokens.AllLimits(group.Ceilings.Limits), group.Ceilings.Budget},
		})
	}
	return list, nil
}
