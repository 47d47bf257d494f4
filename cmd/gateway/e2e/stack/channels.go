package stack

import (
	"fmt"
)

// Channel is one channel of the fake OpenAI upstream, as a YAML list item.
func (s *Stack) Channel(name, key, more string) string {
	return fmt.Sprintf(`  - name: %s
    vendor: openai
    base_url: http://%s/openai/v1
    keys: [%s]
    models: {gpt-4o: , sora-2: , sora-2-pro: , sora-2-manual: , sora-2-fast: , sora-2-long: , sora-2-fast-fail: }
    groups: [default]
%s`, name, s.UpstreamAt, key, more)
}

// EveryVendor is one channel of each fake upstream that makes videos, as YAML list items.
func (s *Stack) EveryVendor() string {
	return s.Channel("main", "sk-upstream-main", "") + fmt.Sprintf(`  - name: visual
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
`, s.UpstreamAt)
}

// AnyModel is a channel of the fake OpenAI upstream that takes every model, as a YAML list item.
func (s *Stack) AnyModel() string {
	return fmt.Sprintf("  - {name: main, vendor: openai, base_url: http://%s/openai/v1, keys: [sk-upstream-main], models: {\"*\": }}\n", s.UpstreamAt)
}
