package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
)

// tested is what the answers of a channel's test must have.
type tested struct {
	Channel string   `json:"channel"`
	OK      bool     `json:"ok"`
	Verdict string   `json:"verdict"`
	Lacks   []string `json:"lacks"`
}

// TestChannelsTest asks every vendor something free, with its key, with a wrong one, where nothing listens, where another server
// does, and about a model that the key may not use.
func TestChannelsTest(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t, "--video-min", "100ms", "--video-max", "100ms")
	good := strings.Split(strings.TrimSuffix(s.VideoChannels(), "\n"), "\n")
	for _, chat := range []string{"openai /openai/v1 gpt-4o", "anthropic /anthropic claude-opus-4-6", "gemini /gemini gemini-2.5-flash"} {
		var vendor, path, model string
		if _, err := fmt.Sscan(chat, &vendor, &path, &model); err != nil {
			t.Fatal(err)
		}
		good = append(good, fmt.Sprintf("  - {name: chat-%s, vendor: %s, base_url: 'http://%s%s', keys: ['sk-upstream-chat'], groups: [default], models: {chat-%s: %s}}",
			vendor, vendor, s.UpstreamAt, path, vendor, model))
	}
	var names, channels []string
	// like is a channel with another name, and something else that differs.
	like := func(channel, name, suffix string, replaced ...string) {
		replaced = append(replaced, "{name: "+name+",", "{name: "+name+suffix+",", "models: {"+name+":", "models: {"+name+suffix+":")
		channels = append(channels, strings.NewReplacer(replaced...).Replace(channel))
	}
	for _, channel := range good {
		name, _, _ := strings.Cut(strings.TrimPrefix(channel, "  - {name: "), ",")
		names = append(names, name)
		channels = append(channels, channel)
		like(channel, name, "-lost", "base_url: 'http://"+s.UpstreamAt, "base_url: 'http://127.0.0.1:1")
		if name == "luma" {
			like(channel, name, "-nameless", "base_url: 'http://"+s.UpstreamAt, "base_url: 'http://nobody.invalid")
		}
		like(channel, name, "-astray", "base_url: 'http://"+s.UpstreamAt, "base_url: 'http://"+s.UpstreamAt+"/nowhere")
		like(channel, name, "-encrypted", "base_url: 'http://", "base_url: 'https://")
	}
	// Those that tell of models.
	told := []string{"chat-openai", "chat-anthropic", "chat-gemini", "generic", "replicate", "omni", "xai", "veo-key"}
	for _, name := range told {
		channel := good[slices.Index(names, name)]
		model := "unknown-model"
		if name == "replicate" {
			model = "unknown/model"
		}
		before, _, _ := strings.Cut(channel, "models: {")
		like(before+"models: {"+name+": "+model+"}}", name, "-unknown")
	}
	g := s.StartGateway(stack.GatewayOptions{Channels: strings.Join(channels, "\n") + "\n", AdminKey: stack.AdminKey})

	out, _, err := g.Command(t.Context(), "channels", "test", "--json")
	if err == nil {
		t.Error("the command is content with channels that are not good")
	}
	var all []tested
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	verdicts := make(map[string]tested)
	for _, one := range all {
		verdicts[one.Channel] = one
	}
	if len(verdicts) != len(channels) {
		t.Errorf("%d of %d channels were tested", len(verdicts), len(channels))
	}
	for suffix, words := range map[string]string{
		"": "address and key are good", "-lost": "no program listens at the address", "-nameless": "the host nobody.invalid",
		"-astray": "the address is wrong", "-encrypted": "TLS",
	} {
		for _, name := range names {
			if suffix == "-nameless" && name != "luma" {
				continue
			}
			if got := verdicts[name+suffix]; got.OK != (suffix == "") || !strings.Contains(got.Verdict, words) {
				t.Errorf("%s%s: %t %q, want %q", name, suffix, got.OK, got.Verdict, words)
			}
		}
	}
	for _, name := range told {
		if got := verdicts[name+"-unknown"]; got.OK || len(got.Lacks) != 1 || !strings.Contains(got.Verdict, "has no model unknown") {
			t.Errorf("%s of a model that the key may not use: %+v", name, got)
		}
	}

	test := func(name, body string) (answer tested, raw string) {
		resp := g.Call(t, stack.Request{Method: http.MethodPost, Path: "/admin/channels/" + name + "/test", Body: body, Token: stack.AdminKey})
		if err := json.Unmarshal(resp.Body, &answer); err != nil || resp.Status != http.StatusOK {
			t.Errorf("%s: %d %s", name, resp.Status, resp.Body)
		}
		return answer, string(resp.Body)
	}
	wrong := map[string]string{
		"vendorc": "ak-nobody:not-the-secret",
		"veo":     strings.Replace(s.ServiceAccount(), `"private_key_id":"`, `"private_key_id":"nobodys-`, 1),
	}
	for _, name := range names {
		key := wrong[name]
		if key == "" {
			key = "nobodys-key-of-tests"
		}
		body, err := json.Marshal(map[string]string{"key": key})
		if err != nil {
			t.Fatal(err)
		}
		if got, raw := test(name, string(body)); got.OK || !strings.Contains(got.Verdict, "the key is refused") || strings.Contains(raw, key) {
			t.Errorf("%s with a wrong key: %s", name, raw)
		}
	}
	if n := len(s.Control.Jobs()); n > 0 {
		t.Errorf("tests that cost nothing made %d videos", n)
	}
}
