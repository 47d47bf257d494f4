package tasks_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestCreateJudgesTheWebhook: a create may name an address that a delivery could reach, where the token can sign.
func TestCreateJudgesTheWebhook(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url            string
		signs, private bool
		want           string // of the fault
	}{
		"good":                     {url: "https://client.example/hook", signs: true},
		"no secret":                {url: "https://client.example/hook", want: "webhook secret"},
		"another scheme":           {url: "ftp://client.example/", signs: true, want: "must be http://host or https://host"},
		"a credential":             {url: "https://u:hush@client.example/", signs: true, want: "must not contain a user"},
		"too long":                 {url: "https://client.example/" + strings.Repeat("x", 2048), signs: true, want: "longer than 2048"},
		"loopback":                 {url: "http://127.0.0.1/", signs: true, want: "private, loopback"},
		"loopback that is allowed": {url: "http://127.0.0.1/", signs: true, private: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, s := &fakeEngine{}, &fakeArchive{docs: make(map[string][]byte)}
			opts := options(s, storagetest.Redis(t))
			opts.PrivateWebhooks = test.private
			service := tasks.NewClient(e, opts)
			in := create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat", WebhookURL: test.url})
			in.TokenSigns = test.signs
			_, err := service.Create(t.Context(), in)
			if test.want == "" {
				var start workflows.Input
				if err != nil || json.Unmarshal(e.input, &start) != nil || !start.Notify || start.Request.WebhookURL != test.url {
					t.Errorf("got %v, started with %s", err, e.input)
				}
				return
			}
			var fault *providers.Fault
			if !errors.As(err, &fault) || fault.Kind != providers.Invalid || fault.Param != "webhook_url" ||
				!strings.Contains(fault.Message, test.want) || strings.Contains(fault.Message, "hush") || e.input != nil {
				t.Errorf("got %v, want %q on webhook_url and no task", err, test.want)
			}
		})
	}
}
