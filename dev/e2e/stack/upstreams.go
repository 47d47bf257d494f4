package stack

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Upstreams are the fake vendors of a stack, all in one process, and the channels that lead to them.
type Upstreams struct {
	UpstreamAt string // their address
	Upstream   *Process
	Control    *Control
	t          *testing.T
}

// newUpstreams are those of an address, which are not started yet.
func newUpstreams(t *testing.T, addr string) Upstreams {
	t.Helper()
	return Upstreams{UpstreamAt: addr, Control: &Control{t: t, Base: "http://" + addr + "/_control"}, t: t}
}

// Channel is one channel of the fake OpenAI upstream, as a YAML list item.
func (u *Upstreams) Channel(name, key, more string) string {
	return fmt.Sprintf(`  - name: %s
    vendor: openai
    base_url: http://%s/openai/v1
    keys: [%s]
    models: {gpt-4o: , sora-2: , sora-2-pro: , sora-2-manual: , sora-2-fast: , sora-2-long: , sora-2-fast-fail: }
    groups: [default]
%s`, name, u.UpstreamAt, key, more)
}

// EveryVendor is one channel of each fake upstream that makes videos, as YAML list items.
func (u *Upstreams) EveryVendor() string {
	return u.Channel("main", "sk-upstream-main", "") + fmt.Sprintf(`  - name: visual
    vendor: vendorc
    base_url: http://%[1]s/vendorc
    keys: ["ak-upstream-visual:sk-upstream-visual"]
    models: {jimeng-fast: jimeng_t2v_v30_fast, jimeng-manual: jimeng_t2v_v30_manual, jimeng-fast-fail: jimeng_t2v_v30_fast_fail}
    groups: [default]
  - name: chained
    vendor: generic
    base_url: http://%[1]s/generic/v1
    keys: [sk-upstream-chained]
    models: {generic-video-fast: , generic-video-manual: , generic-video-fast-fail: }
    groups: [default]
`, u.UpstreamAt)
}

// Pairs is a channel for each kind of chat upstream, as YAML list items. That of OpenAI's Responses alone and Anthropic's have, as
// YAML map members, the models responses and anthropic with their own.
func (u *Upstreams) Pairs(responses, anthropic string) string {
	var channels strings.Builder
	for _, c := range []struct{ name, vendor, path, dialect, models string }{
		{"openai", "openai", "/openai/v1", "both", "gpt-5.2: , text-embedding-3-small: "},
		{"responses", "openai", "/openai/v1", "responses", responses},
		{"imitator", "openai", "/openai/v1", "chat", "glm-5: "},
		{"anthropic", "anthropic", "/anthropic", "", "claude-sonnet-4-5: , claude-opus-4-8: , " + anthropic},
		{"gemini", "gemini", "/gemini", "", "gemini-2.5-flash: , gemini-3-pro: , gemini-embedding-001: "},
	} {
		fmt.Fprintf(&channels, "  - {name: %s, vendor: %s, base_url: \"http://%s%s\", keys: [sk-upstream-%s], groups: [default], models: {%s}, ",
			c.name, c.vendor, u.UpstreamAt, c.path, c.name, c.models)
		if c.dialect != "" {
			fmt.Fprintf(&channels, "dialect: %s", c.dialect)
		}
		channels.WriteString("}\n")
	}
	return channels.String()
}

// AnyModel is a channel of the fake OpenAI upstream that takes every model, as a YAML list item.
func (u *Upstreams) AnyModel() string {
	return fmt.Sprintf("  - {name: main, vendor: openai, base_url: http://%s/openai/v1, keys: [sk-upstream-main], models: {\"*\": }}\n",
		u.UpstreamAt)
}

// VideoChannels is a channel of each vendor that makes videos, as YAML list items.
func (u *Upstreams) VideoChannels() string {
	u.t.Helper()
	var channels strings.Builder
	for _, v := range u.VideoVendors() {
		fmt.Fprintf(&channels, "  - {name: %s, vendor: %s, base_url: 'http://%s%s', keys: ['%s'], groups: [default], models: {%s: %s}}\n",
			v.Name, v.Vendor, u.UpstreamAt, v.Path, v.Key, v.Name, v.Model)
	}
	return channels.String()
}

// ServiceAccount is a key of a service account, in JSON, for whose tokens the fake of Veo is asked.
func (u *Upstreams) ServiceAccount() string {
	u.t.Helper()
	resp, err := http.Get("http://" + u.UpstreamAt + "/veo/service_account.json")
	if err != nil {
		u.t.Fatal(err)
	}
	defer resp.Body.Close()
	key, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		u.t.Fatalf("a service account's key: %d %s, %v", resp.StatusCode, key, err)
	}
	return strings.TrimSpace(string(key))
}
