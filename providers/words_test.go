package providers_test

import (
	"testing"

	"modelrelay/providers"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "",
		"why? because":                     "why? because",
		"see https://docs.example/errors.": "see https://docs.example/errors.",
		"cannot fetch https://h/a.png?X-Sig=hush&b=1 (403)": "cannot fetch https://h/a.png?… (403)",
		`"s3://b/k?t=hush", 'HTTP://h?u=hush'`:              `"s3://b/k?…", 'HTTP://h?…'`,
	} {
		if got := providers.WithoutQueries(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPlainAndShown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Zürich 東京 👍": "Zürich 東京 👍", "\uFFFD": "\uFFFD",
		"a\x1b[31mb": `a\u001b[31mb`, "a\nb\tc\r": `a\u000ab\u0009c\u000d`, "a\u009bb": `a\u009bb`,
		"a\u202eb": `a\u202eb`, "\u2066x\u200f": `\u2066x\u200f`, "a\u200bb\ufeff": `a\u200bb\ufeff`, "a\U000e0041": `a\U000e0041`,
		"a\xffb\x9b": `a\xffb\x9b`, "\u2028": `\u2028`,
	} {
		if got := providers.Shown(text); got != want || providers.Plain(text) != (text == want) || !providers.Plain(got) {
			t.Errorf("%q: shown as %q, want %q; plain: %v", text, got, want, providers.Plain(text))
		}
	}
}
