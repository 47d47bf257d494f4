package providers_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"modelrelay/providers"
)

// TestSecretHidesFromEveryVerb: a verb that does not fit a string prints the value behind String's back.
func TestSecretHidesFromEveryVerb(t *testing.T) {
	t.Parallel()
	const text = "sk-upstream-1"
	secret := providers.Secret(text)
	hexed := fmt.Sprintf("%x", text)
	for verb := 'A'; verb <= 'z'; verb++ {
		// fmt looks at p and w before any method; the compiler's vet refuses them for a string.
		if verb > 'Z' && verb < 'a' || verb == 'p' || verb == 'w' {
			continue
		}
		for _, flags := range []string{"", "+", "#", "020"} {
			format := "%" + flags + string(verb)
			for _, shown := range []any{secret, &secret, []providers.Secret{secret}, map[string]providers.Secret{"k": secret}, struct{ Key providers.Secret }{secret}} {
				if got := fmt.Sprintf(format, shown); strings.Contains(got, text) || strings.Contains(strings.ToLower(got), hexed) {
					t.Errorf("%s of %T shows %s", format, shown, got)
				}
			}
		}
	}
	if got, err := secret.MarshalText(); err != nil || string(got) != "***" {
		t.Errorf("got text %q, %v", got, err)
	}
	if got := errors.Join(fmt.Errorf("refused %w with %s", errors.New("x"), secret)).Error(); got != "refused x with ***" {
		t.Errorf("got %q", got)
	}
	if got := fmt.Sprint(providers.Secret("")); got != "***" {
		t.Errorf("got %q: an empty secret looks like any other", got)
	}
}

// TestSecretHidesFromEveryEncoder: alone, behind a pointer and within other values.
func TestSecretHidesFromEveryEncoder(t *testing.T) {
	t.Parallel()
	const text = "sk-upstream-1"
	secret := providers.Secret(text)
	type document struct {
		Key     providers.Secret   `json:"key" xml:"key" yaml:"key"`
		Pointer *providers.Secret  `json:"pointer" xml:"pointer" yaml:"pointer"`
		List    []providers.Secret `json:"list" xml:"list" yaml:"list"`
	}
	shown := document{Key: secret, Pointer: &secret, List: []providers.Secret{secret}}
	log := func(handler func(io.Writer, *slog.HandlerOptions) slog.Handler) func(any) ([]byte, error) {
		return func(v any) ([]byte, error) {
			var out bytes.Buffer
			slog.New(handler(&out, nil)).Info("x", "secret", secret, "document", v, slog.Group("group", "key", &secret))
			return out.Bytes(), nil
		}
	}
	for name, encode := range map[string]func(any) ([]byte, error){
		"json": json.Marshal, "xml": xml.Marshal, "yaml": yaml.Marshal,
		"slog json": log(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) }),
		"slog text": log(func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) }),
	} {
		if got, err := encode(shown); err != nil || strings.Contains(string(got), text) || !strings.Contains(string(got), "***") {
			t.Errorf("%s shows %s, %v", name, got, err)
		}
	}
}

// TestFingerprint: it is the same everywhere and always, because tickets in histories remember it.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	// The first twelve hexadecimal digits of the SHA-256 of "abc", as FIPS 180-2 lists it.
	if got := providers.Secret("abc").Fingerprint(); got != "ba7816bf8f01" {
		t.Errorf("got %q", got)
	}
}
