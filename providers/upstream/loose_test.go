package upstream_test

import (
	"slices"
	"testing"
	"time"

	"modelrelay/providers/upstream"
)

func TestTook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, until upstream.Loose
		want        time.Duration
	}{
		{"1758941485", "1758941665", 3 * time.Minute},
		{"1758941485.5", "1758941486", 500 * time.Millisecond},
		{"1758941485", "1758941485", 0},
		{"1758941665", "1758941485", 0},
		{"2025-09-27T02:51:25Z", "2025-09-27T02:54:25.5Z", 3*time.Minute + 500*time.Millisecond},
		{"", "1758941485", 0},
		{"1758941485", "", 0},
		{"0", "1758941485", 0},
		{"yesterday", "today", 0},
		{"1", "1e300", 0},
		{"NaN", "Inf", 0},
	} {
		if got := upstream.Took(tc.from, tc.until); got != tc.want {
			t.Errorf("%q to %q: got %s, want %s", tc.from, tc.until, got, tc.want)
		}
	}
}

func TestLoose(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		raw, text, number string
		percent, pixels   int
	}{
		{raw: `"a"`, text: "a", percent: -1},
		{raw: `7`, text: "7", number: "7", percent: 7, pixels: 7},
		{raw: `"5.50"`, text: "5.50", number: "5.50", percent: 6},
		{raw: `"45%"`, text: "45%", percent: 45},
		{raw: `-3`, text: "-3"},
		{raw: `1e9`, text: "1e9", percent: 100},
		{raw: `"NaN"`, text: "NaN", percent: -1},
		{raw: `12345678901234567890`, text: "12345678901234567890", percent: 100},
		{raw: `null`, percent: -1},
		{raw: `{"a":1}`, percent: -1},
		{raw: `true`, percent: -1},
	} {
		got := upstream.DocOf([]byte(tc.raw)).Get("")
		if string(got) != tc.text || got.Number() != tc.number || got.Percent() != tc.percent || got.Pixels() != tc.pixels {
			t.Errorf("%s: got %q, number %q, percent %d, pixels %d", tc.raw, got, got.Number(), got.Percent(), got.Pixels())
		}
	}
	for text, want := range map[upstream.Loose][2]int{"1280x720": {1280, 720}, "1280x": {}, "x": {}, "1280": {}, "-1x5": {}, "large": {}} {
		if w, h := text.Dimensions(); w != want[0] || h != want[1] {
			t.Errorf("%q: got %dx%d", text, w, h)
		}
	}
}

// TestDoc: a part of a document is found by its path, through arrays, whatever else the document has.
func TestDoc(t *testing.T) {
	t.Parallel()
	doc := upstream.DocOf([]byte(` {"a":{"b":"x"},"list":[null,{"url":""},{"url":"u1"},[{"url":"hidden"}],{"url":2}],"no":null,"yes":true,"bad":"` + "\xff" + `"} `))
	for path, want := range map[string]string{
		"a.b": "x", "list.url": "u1", "a": "", "no": "", "yes": "", "list": "", "a.b.c": "", "missing.url": "", "bad": "\uFFFD",
	} {
		if got := doc.Get(path); string(got) != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
	if got := doc.Get("missing", "a.b"); got != "x" {
		t.Errorf("got %q of two paths", got)
	}
	if got := doc.Texts("list.url", "a.b"); !slices.Equal(got, []string{"u1", "2", "x"}) {
		t.Errorf("got %q", got)
	}
	if !doc.At("yes").True() || doc.At("no") != nil || !doc.Has("list") || doc.Has("no") || doc.Has("yes") {
		t.Error("got other values than the document has")
	}
	if got := upstream.DocOf([]byte(`{"a":["b"`)).Get("a", "b"); got != "b" {
		t.Errorf("got %q of a cut document", got)
	}
}
