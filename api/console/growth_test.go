package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// TestManyChannels: with 2,000 channels of 20 models each, whether they share their names or have names of their own, every page answers
// with less than 2 MB, reads the states of the channels that it shows, and finds what has the name that is searched for.
func TestManyChannels(t *testing.T) {
	t.Parallel()
	const channels, models, mostBytes = 2000, 20, 2 << 20
	for _, own := range []bool{false, true} {
		h := newHouse(t, nil)
		all := make([]providers.Channel, channels)
		for i := range all {
			names := make([]string, models)
			for m := range names {
				names[m] = fmt.Sprintf("model-%d", m)
				if own {
					names[m] += fmt.Sprintf("-%d", i)
				}
			}
			all[i] = channelOf(fmt.Sprintf("channel-%d", i), names...)
		}
		h.router.Load(all, nil)
		h.models = h.router.Models("default")
		last := "model-19"
		if own {
			last += "-1999"
		}
		find := []string{`channels/channel-1">channel-1</a>`, `channels?q=channel-1"`}
		for _, test := range []struct {
			user, path string
			states     int // at most so many are read at once
			want       []string
		}{
			{"anna", "", 20, []string{"All channels answer."}},
			{"anna", "/channels", 100, []string{"channel-0", "after="}},
			{"anna", "/channels?q=channel-1", 100, []string{`channels/channel-1"`, "after="}},
			{"anna", "/channels/channel-1999", 1, []string{"channel-1999", "model-"}},
			{"anna", "/models", 100, []string{"model-0", "default"}},
			{"anna", "/models?q=" + last, 20, []string{last}},
			{"anna", "/setup", 500, []string{"2000"}},
			{"anna", "/try", 500, []string{"model-0"}},
			{"anna", "/find?q=channel-1", 0, find},
			{"anna", "/find?q=" + last, 0, []string{">" + last + "</a>"}},
			{"vera", "/channels?format=csv", 100, []string{"channel-0"}},
			{"app", "", 0, []string{"model-0"}},
			{"app", "/models", 0, []string{"model-0"}},
			{"app", "/models?q=" + last, 0, []string{last}},
			{"app", "/try", 0, []string{"model-0"}},
			{"app", "/find?q=" + last, 0, []string{">" + last + "</a>"}},
		} {
			b := h.as(t, test.user)
			h.looked = nil
			rec := b.get(Root + test.path)
			what := fmt.Sprintf("own %v, %s %s", own, test.user, test.path)
			if n := rec.Body.Len(); rec.Code != http.StatusOK || n > mostBytes {
				t.Errorf("%s: got %d with %d bytes", what, rec.Code, n)
			}
			for _, n := range h.looked {
				if n > test.states {
					t.Errorf("%s: read %d states, want %d at most", what, n, test.states)
				}
			}
			for _, want := range test.want {
				if !strings.Contains(rec.Body.String(), want) {
					t.Errorf("%s: has no %q", what, want)
				}
			}
		}
	}
}

// TestManyTokens: where there are too many tokens to sort them, no head of a column leads to a refusal, and the overview lacks nothing.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.tokens = []tokens.Token{{ID: "tok_1", Name: "app"}}
	anna := h.as(t, "anna")
	for _, count := range []int64{10_000, 10_001} {
		h.manyTokens = count
		body := anna.get(Root + "/tokens").Body.String()
		if sorts := strings.Contains(body, "sort=spent"); sorts != (count == 10_000) || !strings.Contains(body, "app") {
			t.Errorf("%d tokens: heads that sort %v", count, sorts)
		}
		if strings.Contains(anna.get(Root).Body.String(), "Does not answer") {
			t.Errorf("%d tokens: the overview lacks something", count)
		}
	}
}
