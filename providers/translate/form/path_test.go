package form_test

import (
	"testing"

	"modelrelay/providers/translate/form"
)

func TestPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path         form.Path
		text, nameOf string
	}{
		{form.Path{}, "", ""},
		{form.In("messages", 2), "messages[2]", "messages[]"},
		{form.In("messages", 2).Item("content", 1).Field("image_url"), "messages[2].content[1].image_url", "messages[].content[].image_url"},
		{form.Path{}.Field("a").Field("b").Field("c").Field("d").Field("e"), "a.b.c.d", "a.b.c.d"},
	} {
		if got := test.path.String(); got != test.text {
			t.Errorf("got %s, want %s", got, test.text)
		}
		if got := test.path.Name(); got != test.nameOf {
			t.Errorf("without indices: got %s, want %s", got, test.nameOf)
		}
	}
}

func TestPathsAreValues(t *testing.T) {
	t.Parallel()
	turn := form.In("messages", 0)
	first, second := turn.Item("content", 0), turn.Item("content", 1)
	if first.String() != "messages[0].content[0]" || second.String() != "messages[0].content[1]" || turn.String() != "messages[0]" {
		t.Errorf("got %s, %s, %s", turn, first, second)
	}
}
