package api_test

import (
	"testing"

	"modelrelay/api/operator"
	"modelrelay/storage/tokens"
)

// tokenGroups are the groups of an adminEnv.
func tokenGroups() map[string]operator.GroupRules {
	return map[string]operator.GroupRules{"default": {}, "small": {
		GroupLimits: tokens.GroupLimits{
			Defaults: tokens.Defaults{Limits: tokens.Limits{RequestsPerMinute: 7}, Budget: 3},
			Ceilings: tokens.Ceilings{Limits: tokens.Limits{Concurrency: 2}, Budget: 9},
		},
		Forbid: []string{"background"}, Channels: []string{"up"},
	}}
}

// limitsOfToken are limits as the operations on tokens and groups show them.
type limitsOfToken struct {
	Requests    int     `json:"requests_per_minute"`
	Concurrency int     `json:"concurrency"`
	Budget      float64 `json:"budget"`
}

// TestAdminGroups: groups are listed with their limits, and a token shows its own limits apart from those that hold for it.
func TestAdminGroups(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	var list struct {
		Data []struct {
			Name, Object       string
			Channels, Forbid   []string
			Defaults, Ceilings limitsOfToken
		}
	}
	o.tell(t, 200, "GET", "/admin/groups", "", &list)
	if len(list.Data) != 2 || list.Data[0].Name != "default" || list.Data[0].Channels == nil || list.Data[0].Forbid == nil ||
		list.Data[0].Defaults != (limitsOfToken{}) {
		t.Fatalf("got %+v", list)
	}
	if small := list.Data[1]; small.Name != "small" || small.Object != "group" || small.Defaults != (limitsOfToken{Requests: 7, Budget: 3}) ||
		small.Ceilings != (limitsOfToken{Concurrency: 2, Budget: 9}) || len(small.Forbid) != 1 || len(small.Channels) != 1 {
		t.Errorf("got %+v", small)
	}
	var made struct {
		limitsOfToken
		InForce limitsOfToken `json:"in_force"`
		Spent   *float64
	}
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"a","group":"small","concurrency":1}`, &made)
	if made.limitsOfToken != (limitsOfToken{Concurrency: 1}) || made.InForce != (limitsOfToken{Requests: 7, Concurrency: 1, Budget: 3}) ||
		made.Spent == nil {
		t.Errorf("a token of the group: got %+v", made)
	}
	o.tell(t, 201, "POST", "/admin/tokens", `{"name":"b","requests_per_minute":5}`, &made)
	if made.InForce != (limitsOfToken{Requests: 5}) || made.Spent != nil {
		t.Errorf("a token of a group without limits: got %+v", made)
	}
}
