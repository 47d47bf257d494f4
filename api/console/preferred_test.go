package console

import "testing"

// TestPreferredModel: a form preselects a model that an available channel serves, if there is one.
func TestPreferredModel(t *testing.T) {
	t.Parallel()
	down, fine, usual := tryModel{ID: "a", Down: true}, tryModel{ID: "b"}, tryModel{ID: usualChat}
	for _, test := range []struct {
		models []tryModel
		want   string
	}{
		{nil, ""},
		{[]tryModel{down}, "a"},
		{[]tryModel{down, fine}, "b"},
		{[]tryModel{fine, down}, "b"},
		{[]tryModel{down, usual}, usualChat},
	} {
		if got := preferred(test.models, "chat"); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.models, got, test.want)
		}
	}
}
