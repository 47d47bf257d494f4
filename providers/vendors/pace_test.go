package vendors_test

import (
	"net/http"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/vendors"
)

// TestPace: no job is polled more often than its vendor permits, and a job whose results expire within minutes is polled in time.
func TestPace(t *testing.T) {
	t.Parallel()
	const s = time.Second
	want := map[string]providers.Pace{
		"ark": {Least: 10 * s}, "fal": {Least: 2 * s, Most: 240 * s}, "generic": {}, "hailuo": {Least: 10 * s}, "kling": {Least: 5 * s},
		"luma": {Least: 2 * s},
		"omni": {Least: 10 * s}, "openai": {}, "pixverse": {Least: 5 * s}, "replicate": {Most: 600 * s}, "runway": {Least: 5 * s}, "vendorc": {},
		"veo": {Least: 10 * s}, "vidu": {Least: 5 * s}, "wan": {Least: 15 * s}, "xai": {Least: 5 * s}, "zhipu": {Least: 5 * s},
		"ltx": {Least: 5 * s},
		"bfl": {Least: 2 * s, Most: 240 * s},
	}
	for name, vendor := range vendors.New(http.DefaultClient) {
		if vendor.Video == nil {
			continue
		}
		pace, known := want[name]
		if got := providers.PaceOf(vendor.Video); !known || got != pace {
			t.Errorf("%s: got %+v, want %+v", name, got, pace)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("no such vendors: %v", want)
	}
}
