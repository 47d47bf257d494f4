package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// fakeChannel is a channel to one of the fake upstreams.
type fakeChannel struct {
	name, vendor string
	path         string // of the address
	keys, models string // in YAML, without brackets; no keys: sk-upstream-one
	more         string // further members, in YAML
}

// fakeChannels are one for each vendor that has a fake, with the models that people know. account is the file of the service account
// that the fake of Google Cloud hands out.
func fakeChannels(account string) []fakeChannel {
	return []fakeChannel{
		{"openai", "openai", "/openai/v1", "sk-upstream-one, sk-upstream-two", "gpt-4o: , gpt-4o-mini: , sora-2: , sora-2-pro: , text-embedding-3-small: , whisper-1: , tts-1: , gpt-image-1: , omni-moderation-latest: , gpt-realtime: ", ""},
		{"anthropic", "anthropic", "/anthropic", "", "claude-sonnet-4-5: ", ""},
		{"gemini", "gemini", "/gemini", "", "gemini-2.5-flash: ", ""},
		{"visual", "vendorc", "/vendorc", `"ak-upstream-one:sk-upstream-one"`, "jimeng_t2v_v30: , jimeng_i2v_first_v30: , jimeng_ti2v_v30_pro: ", ""},
		{"chained", "generic", "/generic/v1", "", "generic-video: ", ""},
		{"ark", "ark", "/ark/api/v3", "", "doubao-seedance-2-0-260128: , doubao-seedance-2-5-260628: ", ""},
		{"kling", "kling", "/kling", "", "kling-3.0: , kling-3.0-omni: ", ""},
		{"ltx", "ltx", "/ltx", "", "ltx-2-5-fast: , ltx-2-5-pro: ", ""},
		{"luma", "luma", "/luma/v1", "", "ray-3.2: ", ""},
		{"omni", "omni", "/omni/v1beta", "", "gemini-omni-1.2-flash: ", ""},
		{"runway", "runway", "/runway", "", "gen4.5: , gen4_turbo: ", ""},
		{"veo", "veo", "/veo/v1/projects/fake-project/locations/us-central1", fmt.Sprintf("%q", "${file:"+account+"}"), "veo-3.1-generate-001: , veo-3.1-fast-generate-001: ", ""},
		{"hailuo", "hailuo", "/hailuo", "", "MiniMax-H3: , MiniMax-Hailuo-02: ", ""},
		{"wan", "wan", "/wan/api/v1", "", "wan3.0-video: , wan2.7-t2v: , wan2.7-i2v: ", ""},
		{"vidu", "vidu", "/vidu", "", "viduq3-turbo: ", ""},
		{"pixverse", "pixverse", "/pixverse", "", "pixverse-v6: v6", ""},
		{"zhipu", "zhipu", "/zhipu", "", "cogvideox-3: ", ""},
		{
			"fal", "fal", "/fal", "", "veo-3.1-fal: fal-ai/veo3.1, mover: some-one/mover",
			"fields: {some-one/mover: {image: start_image_url, last_image: end_image_url, seconds: {name: duration, as: text}}}",
		},
		{"replicate", "replicate", "/replicate/v1", "", "veo-3.1-replicate: google/veo-3.1", ""},
		{"xai", "xai", "/xai/v1", "", "grok-imagine-video: , grok-imagine-video-1.5: ", ""},
	}
}

// channelText is the section of the channels to the fakes at an address.
func channelText(upstream, account string) string {
	var text strings.Builder
	for _, c := range fakeChannels(account) {
		if c.keys == "" {
			c.keys = "sk-upstream-one"
		}
		fmt.Fprintf(&text, "  - name: %s\n    vendor: %s\n    base_url: http://%s%s\n    keys: [%s]\n    models: {%s}\n    groups: [default]\n",
			c.name, c.vendor, upstream, c.path, c.keys, c.models)
		if c.more != "" {
			fmt.Fprintf(&text, "    %s\n", c.more)
		}
	}
	return text.String()
}

// accountTimeout bounds the making of a service account's key, which takes a busy machine seconds.
const accountTimeout = 30 * time.Second

// accountFile is where the service account for the fake of Google Cloud is kept.
func (s *stack) accountFile() string { return filepath.Join(s.data, "google-account.json") }

// keepAccount asks the fake of Google Cloud for a service account, unless there is one of an earlier run that asks for tokens at the
// same address.
func (s *stack) keepAccount(ctx context.Context, upstream string) error {
	kept, err := os.ReadFile(s.accountFile())
	if err == nil && strings.Contains(string(kept), "http://"+upstream+"/") {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the service account: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+upstream+"/veo/service_account.json", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: accountTimeout}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for a service account: %w", err)
	}
	defer resp.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return fmt.Errorf("ask for a service account: %w", err)
	}
	return os.WriteFile(s.accountFile(), text, 0o600)
}
