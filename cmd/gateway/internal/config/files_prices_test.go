package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
)

// TestSecretFiles: a key may be in a file, whose path begins at the configuration's folder; one that cannot be read is a
// problem that does not tell what another holds.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key", "sk-from-a-file\r\n")
	write("account.json", "{\"client_email\": \"a@b\",\n \"private_key\": \"x\"}\n")
	write("large", strings.Repeat("x", 65<<10))
	parse := func(text string) (config.Config, error) {
		return config.Parse(filepath.Join(folder, "gateway.yaml"), []byte(text), testEnv, testVendors())
	}
	cfg, err := parse("admin_key: \"${file:key}\"\ntokens:\n  - {name: a, key: \"${file:" + folder + "/key}-2\"}\nchannels:\n" +
		"  - {name: c, vendor: openai, base_url: \"http://u\", keys: [\"${file:account.json}\"], models: {m: }}\n")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.AdminKey.Reveal() != "sk-from-a-file" || cfg.Seeds()[0].Key != "sk-from-a-file-2" ||
		!strings.Contains(cfg.Routes()[0].Keys[0].Reveal(), "\n") {
		t.Errorf("got %q, %+v", cfg.AdminKey.Reveal(), cfg.Routes()[0].Keys)
	}
	if got, want := cfg.SecretFiles(), []string{filepath.Join(folder, "key"), filepath.Join(folder, "account.json")}; !slices.Equal(got,
		want) {
		t.Errorf("files: got %v, want %v", got, want)
	}
	for text, want := range map[string]string{
		"admin_key: \"${file:none}\"\n":   "1:12: admin_key: the file cannot be read: open " + filepath.Join(folder, "none"),
		"admin_key: \"${file:}\"\n":       "or of a file, as in ${file:PATH}",
		"admin_key: \"${file:large}\"\n":  "is larger than 64 KiB",
		"log: {level: \"${file:key}\"}\n": "log.level:",
		"admin_key: \"${no file}\"\n":     "${ begins the name",
	} {
		_, err := parse(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestUnpricedModels: where some models have prices, those that have none are named once.
func TestUnpricedModels(t *testing.T) {
	t.Parallel()
	channel := "  - {name: NAME, vendor: openai, base_url: \"http://u\", keys: [k], models: {a: , b: , \"c-*\": }}\n"
	channels := "channels:\n" + strings.Replace(channel, "NAME", "one", 1) + strings.Replace(channel, "NAME", "two", 1)
	for prices, want := range map[string]string{
		"":                          "",
		"prices: {a: {input: 1}}\n": `prices: has no price for "b": their calls cost nothing`,
		"prices: {x: {input: 1}}\n": `prices: has no price for "a", "b": their calls cost nothing`,
		"prices: {a: {input: 1}, b: {input: 1}}\n": "",
	} {
		cfg, err := config.Parse("gateway.yaml", []byte(prices+channels), testEnv, testVendors())
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, warning := range cfg.Warnings(testVendors()) {
			got += warning.Key + ": " + warning.Message
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", prices, got, want)
		}
	}
}

// TestTiersThatNeverFit are named, and so is a price by which a video reserves nothing.
func TestTiersThatNeverFit(t *testing.T) {
	t.Parallel()
	vendors := testVendors()
	vendors["films"] = providers.Vendor{Name: "films", Video: noVideos{}, VideoModels: func(model string) (providers.VideoModel, bool) {
		return map[string]providers.VideoModel{
			"up":   {Resolutions: []string{"720p", "1080p"}, Audio: providers.AudioNever},
			"size": {Sizes: []string{"1280x720", "2160x3840"}, Audio: providers.AudioAlways},
			"any":  providers.AnyVideoModel(),
		}[model], model != "new"
	}}
	const channel = "channels: [{name: c, vendor: films, base_url: \"http://u\", keys: [k], models: {m: up, s: size, n: new, chat: any}}]\n"
	for prices, want := range map[string]string{
		"m: {tiers: [{resolution: 720p, second: 1}, {video: 1}, {resolution: 1080p, video: 1}]}":                      `prices.m.tiers[2]: never applies: tiers[1] comes first`,
		"m: {tiers: [{resolution: 720P, second: 1}, {resolution: 720p, audio: false, second: 1}]}":                    `prices.m.tiers[1]: never applies: tiers[0] comes first`,
		"m: {tiers: [{resolution: 4k, second: 1}]}":                                                                   `prices.m.tiers[0]: never applies: no channel of the model makes such a video`,
		"m: {tiers: [{audio: true, second: 1}]}":                                                                      `prices.m.tiers[0]: never applies: no channel`,
		"s: {tiers: [{resolution: 720p, second: 1}, {resolution: 2160p, second: 1}, {resolution: 1080p, second: 1}]}": `prices.s.tiers[2]: never applies: no channel`,
		"s: {tiers: [{audio: false, second: 1}]}":                                                                     `prices.s.tiers[0]: never applies: no channel`,
		"n: {tiers: [{resolution: 4k, second: 1}]}":                                                                   "",
		"absent: {tiers: [{resolution: 4k, second: 1}]}":                                                              "",
		"m: {output: 1}":            "prices.m: has output, but neither second nor video",
		"m: {output: 1, second: 1}": "",
		"chat: {output: 1}":         "",
		"m: {tiers: [{audio: false, video: 0}, {audio: false, resolution: 720p, video: 1}]}": `prices.m.tiers[1]: never applies`,
	} {
		all := prices
		for _, model := range []string{"m", "s", "n", "chat"} {
			if !strings.HasPrefix(prices, model+":") {
				all += ", " + model + ": {second: 1}"
			}
		}
		cfg, err := config.Parse("gateway.yaml", []byte("prices: {"+all+"}\n"+channel), testEnv, vendors)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, warning := range cfg.Warnings(vendors) {
			got += warning.Key + ": " + warning.Message
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q", prices, got, want)
		}
	}
}

// noVideos replaces an adapter that is not called.
type noVideos struct{ providers.VideoAdapter }
