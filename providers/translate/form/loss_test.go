package form_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

func TestLoss(t *testing.T) {
	t.Parallel()
	var loss form.Loss
	for _, field := range []string{"seed", "messages[].name", "seed", ""} {
		loss.Drop(field)
		loss.Change(field)
	}
	want := []string{"seed", "messages[].name"}
	if !slices.Equal(loss.Dropped, want) || !slices.Equal(loss.Changed, want) {
		t.Errorf("got %v, %v", loss.Dropped, loss.Changed)
	}
}

func TestLossBoundsNames(t *testing.T) {
	t.Parallel()
	var loss form.Loss
	loss.Drop(strings.Repeat("x", 1<<20))
	if n := len(loss.Dropped[0]); n != 100 {
		t.Errorf("a name has %d bytes", n)
	}
}

func TestDropMark(t *testing.T) {
	t.Parallel()
	p := new(form.Prompt)
	p.Fields[form.FieldCache] = "cache_control"
	var loss form.Loss
	p.DropMark(form.NoMark, form.In("tools", 0), &loss)
	p.DropMark(form.MarkHour, form.In("messages", 3).Item("content", 1), &loss)
	if !slices.Equal(loss.Dropped, []string{"messages[].content[].cache_control"}) {
		t.Errorf("got %v", loss.Dropped)
	}
}

func TestListed(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 23 {
		names = append(names, fmt.Sprintf("f%d", i))
	}
	for _, test := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"seed", "messages[].name"}, "seed, messages[].name"},
		{[]string{"a\r\nb: é"}, "a??b: ?"},
		{names[:20], strings.Join(names[:20], ", ")},
		{names, strings.Join(names[:20], ", ") + ", +3"},
	} {
		if got := form.Listed(test.names); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

func TestDropOwn(t *testing.T) {
	t.Parallel()
	p := &form.Prompt{Own: []form.Member{{Name: "store"}, {Name: "metadata"}}}
	var loss form.Loss
	if fault := p.DropOwn(form.Messages, &loss); fault != nil || !slices.Equal(loss.Dropped, []string{"store", "metadata"}) {
		t.Errorf("got %v, %v", fault, loss.Dropped)
	}
	p.Own = append(p.Own, form.Member{Name: "conversation", Must: true})
	fault := p.DropOwn(form.Messages, &loss)
	if fault == nil || fault.Kind != providers.Invalid || fault.Param != "conversation" ||
		!strings.Contains(fault.Message, "Anthropic Messages") {
		t.Errorf("got %v", fault)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	fault := form.Refusedf("stop", form.Responses, "which takes no %s.", "stop texts")
	want := "The model's upstream uses the OpenAI Responses API, which takes no stop texts."
	if fault.Message != want || fault.Param != "stop" || fault.Kind != providers.Invalid {
		t.Errorf("got %+v", fault)
	}
}

func TestSameVendor(t *testing.T) {
	t.Parallel()
	dialects := []form.Dialect{form.Chat, form.Responses, form.Messages, form.Gemini}
	for i, a := range dialects {
		for j, b := range dialects {
			if got := a.SameVendor(b); got != (i == j || i < 2 && j < 2) {
				t.Errorf("%s and %s: %t", a, b, got)
			}
		}
	}
}
