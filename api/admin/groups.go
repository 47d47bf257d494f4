package admin

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/storage/tokens"
)

// Group is what the tokens of a group have in common.
type Group struct {
	tokens.GroupLimits

	Forbid   []string // what its tokens may not ask for
	Channels []string // that they may use, by name
}

// adminLimits are all limits of a token, or of a group.
type adminLimits struct {
	tokens.LimitChange         // all are there
	Budget             float64 `json:"budget" doc:"Money, in the unit of prices; 0: no limit"`
}

// TransformSchema tells that all limits are there, which in a change none need be.
func (adminLimits) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Required = append(s.Required, limitKeys()...)
	return s
}

// limitKeys are the limits of a token as documents name them.
func limitKeys() []string {
	var keys []string
	for _, limit := range tokens.ListLimits(tokens.Limits{}) {
		keys = append(keys, limit.Key)
	}
	return keys
}

type adminGroup struct {
	Object   string      `json:"object" enum:"group"`
	Name     string      `json:"name"`
	Channels []string    `json:"channels" nullable:"false" doc:"Those that its tokens may use, by name"`
	Defaults adminLimits `json:"defaults" doc:"Limits of tokens that have none of their own; 0: none"`
	Ceilings adminLimits `json:"ceilings" doc:"Highest limits that hold for its tokens; 0: any"`
	Forbid   []string    `json:"forbid" nullable:"false" doc:"What its tokens may not ask for: background, service_tier, hosted_tools, inference_geo, cached_content, long_cache, long_context, other_models"`
}

type adminGroupList struct {
	Object string       `json:"object" enum:"list"`
	Data   []adminGroup `json:"data" nullable:"false"`
}

// addGroups adds the list of groups.
func (o *tokenOperations) addGroups(g *edge.Group) {
	edge.Register(g, huma.Operation{
		OperationID: "adminListGroups", Method: http.MethodGet, Path: Root + "/groups", Summary: "List the groups of tokens",
		Description: "By name: those that the configuration file describes, those that channels name, and default. Their limits hold for every token, whenever it was made.",
	}, func(context.Context, *struct{}) (adminGroupList, error) {
		groups := o.Groups()
		list := adminGroupList{Object: "list", Data: []adminGroup{}}
		for _, name := range slices.Sorted(maps.Keys(groups)) {
			group := groups[name]
			list.Data = append(list.Data, adminGroup{
				Object: "group", Name: name, Channels: orNone(group.Channels), Forbid: orNone(group.Forbid),
				Defaults: adminLimits{tokens.AllLimits(group.Defaults), group.DefaultBudget},
				Ceilings: adminLimits{tokens.AllLimits(group.Ceilings), group.CeilingBudget},
			})
		}
		return list, nil
	})
}
