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
		if got := providers.Words(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
