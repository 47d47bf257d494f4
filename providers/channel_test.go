package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"modelrelay/providers"
)

func TestSecretHides(t *testing.T) {
	t.Parallel()
	const text = "sk-upstream-1"
	channel := providers.Channel{Name: "a", Keys: []providers.Secret{text}}
	target := providers.Target{Channel: channel, Key: text}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", providers.Secret(text), "target", target)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", providers.Secret(text), "target", target)
	document, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q", target, target, target, target.Key, target.Key) + log.String() + string(document)
	if strings.Contains(shown, text) {
		t.Errorf("the secret shows in %s", shown)
	}
	if target.Key.Reveal() != text {
		t.Errorf("got %q revealed", target.Key.Reveal())
	}
	if print := target.Key.Fingerprint(); len(print) != 12 || strings.Contains(text, print) ||
		print == providers.Secret("other").Fingerprint() {
		t.Errorf("got fingerprint %q", print)
	}
	if key, ok := channel.KeyByFingerprint(target.Key.Fingerprint()); !ok || key != text {
		t.Error("the key is not found by its fingerprint")
	}
	if _, ok := channel.KeyByFingerprint("x"); ok {
		t.Error("a key is found by nonsense")
	}
}

func TestUpstreamModel(t *testing.T) {
	t.Parallel()
	closed := providers.Channel{Models: map[string]string{"same": "", "fast": "big-mini"}}
	open := providers.Channel{Models: map[string]string{providers.AnyModel: "ignored", "fast": "big-mini"}}
	for _, tc := range []struct {
		channel      providers.Channel
		public, want string
		carried      bool
	}{
		{closed, "same", "same", true},
		{closed, "fast", "big-mini", true},
		{closed, "other", "other", false},
		{closed, providers.AnyModel, providers.AnyModel, false},
		{open, "fast", "big-mini", true},
		{open, "other", "other", true},
	} {
		if got, ok := tc.channel.UpstreamModel(tc.public); ok != tc.carried || ok && got != tc.want {
			t.Errorf("%q: got %q, %v, want %q, %v", tc.public, got, ok, tc.want, tc.carried)
		}
	}
}
