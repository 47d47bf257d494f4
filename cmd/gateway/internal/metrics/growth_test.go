package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/api/edge"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

const modelsOfChannel = 20

// grown returns the answer to a scrape of a process with so many channels, each of models of its own, that relayed a call and a failed
// call to every model.
func grown(t *testing.T, channels, models int) string {
	t.Helper()
	m, err := metrics.New(metrics.Options{Log: slog.New(slog.DiscardHandler), Models: models})
	if err != nil {
		t.Fatal(err)
	}
	catalog := vendors.New(upstream.NewClient(nil))
	list := make([]providers.Channel, channels)
	for i := range list {
		list[i] = providers.Channel{
			Name: fmt.Sprintf("channel-%05d", i), Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{},
		}
		for j := range modelsOfChannel {
			list[i].Models[fmt.Sprintf("model-%05d", i*modelsOfChannel+j)] = ""
		}
	}
	m.Learn(list, maps.Keys(map[string]bool{}), catalog)
	if err := m.WatchChannels(router.New(catalog, list, nil).Health, nil); err != nil {
		t.Fatal(err)
	}
	seen, tried := m.Seen, m.Tried
	for i := range list {
		for model := range list[i].Models {
			call := edge.Seen{
				Method: http.MethodPost, Route: "/v1/chat/completions", Status: http.StatusOK,
				Times: edge.Times{Took: time.Second, Sent: time.Millisecond, First: 100 * time.Millisecond},
				Counted: edge.Counted{
					Operation: providers.Chat, Model: model, Channel: list[i].Name, Stream: true,
					Bill: edge.Bill{Usage: providers.Usage{Input: 1000, Cached: 500, Output: 100}, Cost: 1000},
				},
			}
			tried(1, providers.Try{Channel: list[i].Name})
			seen(call)
			call.Fault, call.Status = providers.Upstream, http.StatusBadGateway
			tried(1, providers.Try{Channel: list[i].Name, Fault: call.Fault})
			seen(call)
		}
	}
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// TestScrapeGrowsWithChannelsAlone: a scrape at 2,000 channels of 20 models each is at most 5 MB, and the limit of models bounds the
// series of models and pairs.
func TestScrapeGrowsWithChannelsAlone(t *testing.T) {
	t.Parallel()
	text := grown(t, 2000, 200)
	t.Logf("%d bytes", len(text))
	if len(text) > 5_000_000 {
		t.Errorf("a scrape has %d bytes, want at most 5,000,000", len(text))
	}
	for _, name := range []string{
		"gen_ai_client_operation_duration_seconds_count", "gateway_spent_total", "gateway_model_channels", "gateway_tokens_cached_total",
	} {
		count := 0
		for line := range strings.Lines(text) {
			if series, labels, _ := strings.Cut(line, "{"); series == name {
				count++
				if strings.HasPrefix(name, "gen_ai") && strings.Contains(labels, "channel=") {
					t.Errorf("a histogram has a channel: %s", line)
				}
			}
		}
		if most := 2*200 + 2; count == 0 || count > most {
			t.Errorf("%s has %d series, want 1 to %d", name, count, most)
		}
	}
	few := grown(t, 20, 3)
	if !strings.Contains(few, `gateway_model_channels_available{model="other"} 1`) || strings.Count(few, "\ngateway_spent_total{") != 4 {
		t.Error("of 400 models, 3 have labels of their own: want the fewest channels of the others, and the sum of their cost")
	}
	if all := grown(t, 10, 200); strings.Contains(all, `"other"`) {
		t.Error("200 models and pairs have room for labels of their own")
	}
}

// TestOneScrapeAtATime: a second scrape begins after the first, and ends without an answer where its client leaves before.
func TestOneScrapeAtATime(t *testing.T) {
	t.Parallel()
	began, end := make(chan int), make(chan bool)
	calls := 0 // the limit guards it
	handler := metrics.OneAtATime(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		calls++
		began <- calls
		<-end
	}))
	scrape := func(r *http.Request) <-chan bool {
		ended := make(chan bool)
		go func() {
			defer close(ended)
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}()
		return ended
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody)
	first := scrape(request)
	<-began
	gone, leave := context.WithCancel(t.Context())
	leave()
	<-scrape(request.WithContext(gone))
	second := scrape(request)
	select {
	case <-began:
		t.Error("the second scrape began before the first one ended")
	default:
	}
	end <- true
	<-first
	if got := <-began; got != 2 {
		t.Errorf("%d scrapes began, want 2", got)
	}
	end <- true
	<-second
}
