package console

import (
	"testing"

	"modelrelay/api/operator"
	"modelrelay/providers/health"
)

// TestPreferredModel: a form preselects a model that an available channel serves, if there is one.
func TestPreferredModel(t *testing.T) {
	t.Parallel()
	up := []operator.ModelChannel{{State: health.StateClosed}}
	down, fine, usual := operator.Model{ID: "a"}, operator.Model{ID: "b", Channels: up}, operator.Model{ID: usualChat}
	for _, test := range []struct {
		models []operator.Model
		want   string
	}{
		{nil, ""},
		{[]operator.Model{down}, "a"},
		{[]operator.Model{down, fine}, "b"},
		{[]operator.Model{fine, down}, "b"},
		{[]operator.Model{down, usual}, usualChat},
	} {
		if got := preferred(test.models, "chat"); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.models, got, test.want)
		}
	}
}
