package tokens_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/tokens"
)

func TestUsable(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct {
		token tokens.Token
		want  error
	}{
		{tokens.Token{}, nil},
		{tokens.Token{Disabled: true}, tokens.ErrDisabled},
		{tokens.Token{Revoked: true}, tokens.ErrDisabled},
		{tokens.Token{Expires: now.Add(time.Second)}, nil},
		{tokens.Token{Expires: now}, tokens.ErrExpired},
	} {
		if got := test.token.Usable(now); !errors.Is(got, test.want) {
			t.Errorf("%+v: got %v, want %v", test.token, got, test.want)
		}
	}
}

func TestTokenState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, test := range []struct {
		token tokens.Token
		want  string
	}{
		{tokens.Token{}, "active"},
		{tokens.Token{Disabled: true}, "disabled"},
		{tokens.Token{Expires: now}, "expired"},
		{tokens.Token{Disabled: true, Expires: now}, "disabled"},
		{tokens.Token{Disabled: true, Revoked: true, Expires: now}, "revoked"},
	} {
		if got := test.token.State(now); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.token, got, test.want)
		}
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		patterns string
		model    string
		want     bool
	}{
		{"", "gpt-4o", true},
		{"*", "any/thing", true},
		{"gpt-4o", "gpt-4o", true},
		{"gpt-4o", "gpt-4o-mini", false},
		{"gpt-*", "gpt-4o", true},
		{"gpt-*", "gpt-", true},
		{"gpt-*", "agpt-4o", false},
		{"*/llama-*b", "meta/llama-3/70b", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a,b*", "bc", true},
		{"a,b*", "c", false},
		{"*a*a*a*a*a*a*a*b", strings.Repeat("a", 5000), false},
	} {
		var token tokens.Token
		if test.patterns != "" {
			token.Models = strings.Split(test.patterns, ",")
		}
		if got := token.Allows(test.model); got != test.want {
			t.Errorf("%q allows %.20q: got %v", test.patterns, test.model, got)
		}
	}
}
