package api_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/api"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
)

// pricedEnv is an admin environment where gpt-4o and sora-2 have prices.
func pricedEnv(t *testing.T) (*adminEnv, *taskindex.Durations) {
	t.Helper()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	amount := func(text string, per int64) *pricing.Rate {
		rate, err := pricing.ParseRate(text, per)
		if err != nil {
			t.Fatal(err)
		}
		return rate
	}
	prices := pricing.NewList(map[string]pricing.Price{
		"gpt-4o": {Input: amount("2.5", 1_000_000), Output: amount("8", 1_000_000)},
		"sora-2": {VideoSecond: amount("0.1", 1), Tiers: []pricing.Tier{{Resolution: "1080p", Sound: pricing.SoundOn, Second: amount("0.5", 1)}}},
	})
	return newAdminEnvOn(t, client, func(o *api.Options) { o.Prices, o.Admin.Service.Prices = prices, prices }), taskindex.NewDurations(client)
}

// TestAdminModels: a model with its groups, channels, price, duration and use.
func TestAdminModels(t *testing.T) {
	t.Parallel()
	o, durations := pricedEnv(t)
	for range 3 {
		if err := durations.Observe(t.Context(), "main", "sora-2", 90*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	o.usage.Record(ledger.Entry{Token: "a", Model: "gpt-4o", Channel: "main", Requests: 3, Cost: 1_500_000_000})
	o.usage.Record(ledger.Entry{Token: "b", Model: "gpt-4o", Channel: "main", Requests: 1, Failed: true})
	o.usage.Record(ledger.Entry{Token: "b", Model: "fast", Channel: "main", Requests: 2})
	o.usage.Record(ledger.Entry{Token: "b", Model: "made-up", Channel: "main", Requests: 5})
	if err := o.usage.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	type use struct {
		Model                   string
		Requests, Tasks, Failed int64
		Cost                    float64
	}
	var list struct {
		Data []struct {
			ID       string
			Formats  []string
			Groups   []string
			Channels []struct {
				Name, Vendor, Upstream, State string
				UsualSeconds                  *float64 `json:"usual_seconds"`
			}
			Price *struct {
				Input, Output, Second *float64
				Tiers                 []struct {
					Resolution, Audio string
					Second            float64
				}
			}
			LastMonth *use `json:"last_30_days"`
		}
		Open     []string
		Unpriced []use
		UsedAt   *time.Time `json:"used_at"`
	}
	o.tell(t, 200, "GET", "/admin/models", "", &list)
	at := make(map[string]int)
	for i, model := range list.Data {
		at[model.ID] = i
	}
	gpt, sora, fast := list.Data[at["gpt-4o"]], list.Data[at["sora-2"]], list.Data[at["fast"]]
	if len(list.Data) != 5 || !slices.Contains(gpt.Formats, "openai.chat") || !slices.Equal(gpt.Groups, []string{"default"}) ||
		len(gpt.Channels) != 1 ||
		gpt.Channels[0].Name != "main" || gpt.Channels[0].State != "closed" || fast.Channels[0].Upstream != "gpt-4o-mini" {
		t.Errorf("got %+v", list.Data)
	}
	if gpt.Price == nil || *gpt.Price.Input != 2.5 || *gpt.Price.Output != 8 || gpt.Price.Second != nil || fast.Price != nil {
		t.Errorf("prices: %+v, %+v", gpt.Price, fast.Price)
	}
	if p := sora.Price; p == nil || *p.Second != 0.1 || len(p.Tiers) != 1 || p.Tiers[0].Second != 0.5 || p.Tiers[0].Audio != "true" {
		t.Errorf("price of videos: %+v", sora.Price)
	}
	if usual := sora.Channels[0].UsualSeconds; !slices.Contains(sora.Formats, "video") || usual == nil || *usual != 90 ||
		gpt.Channels[0].UsualSeconds != nil {
		t.Errorf("videos: %+v", sora)
	}
	if gpt.LastMonth == nil || gpt.LastMonth.Requests != 4 || gpt.LastMonth.Failed != 1 || gpt.LastMonth.Cost != 1.5 || sora.LastMonth != nil {
		t.Errorf("used: %+v, %+v", gpt.LastMonth, sora.LastMonth)
	}
	if len(list.Unpriced) != 2 || list.Unpriced[0].Model != "made-up" || list.Unpriced[0].Requests != 5 || list.Unpriced[1].Model != "fast" ||
		list.UsedAt == nil {
		t.Errorf("used without a price: %+v at %v", list.Unpriced, list.UsedAt)
	}
}

// TestAdminPagesByName: the lists of channels and of models have pages, filters by name and exact names, and each entry can be read alone.
func TestAdminPagesByName(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	type list struct {
		Data []struct {
			ID, Name string
		}
		HasMore bool `json:"has_more"`
		After   *string
	}
	names := func(path string) (names []string, next *string) {
		t.Helper()
		var page list
		o.tell(t, 200, "GET", path, "", &page)
		for _, one := range page.Data {
			names = append(names, one.ID+one.Name)
		}
		if page.HasMore != (page.After != nil) {
			t.Errorf("%s: has_more is %v with %v", path, page.HasMore, page.After)
		}
		return names, page.After
	}
	var walked []string
	for path, pages := "/admin/models?limit=2", 1; ; pages++ {
		page, next := names(path)
		if walked = append(walked, page...); next == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		path = "/admin/models?limit=2&after=" + *next
	}
	if all, _ := names("/admin/models"); !slices.Equal(all, walked) || len(all) != 5 {
		t.Errorf("walked %v, all %v", walked, all)
	}
	for path, want := range map[string]string{
		"/admin/models?q=GPT":                                "gpt-4o",
		"/admin/models?q=no":                                 "",
		"/admin/models?name=sora-2&name=none&name=gpt-4o":    "gpt-4o sora-2",
		"/admin/models?name=none&q=gpt":                      "",
		"/admin/channels":                                    "main open",
		"/admin/channels?name=main":                          "main",
		"/admin/channels?q=x":                                "",
		"/admin/models?q=o&limit=500&name=org%2Fllama%3A70b": "org/llama:70b",
	} {
		if got, _ := names(path); strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %q", path, got, want)
		}
	}
	for _, path := range []string{
		"/admin/models?limit=501", "/admin/models?limit=0", "/admin/channels?after=x", "/admin/channels?q=%00",
		"/admin/models?q=" + strings.Repeat("x", 129),
	} {
		if rec := o.ask(t, "GET", path, ""); rec.Code != 400 {
			t.Errorf("%s: got %d %s, want 400", path, rec.Code, rec.Body)
		}
	}
	var one struct {
		ID, Name string
		Channels []struct{ Name string }
		Served   []string
	}
	if o.tell(t, 200, "GET", "/admin/models/org%2Fllama:70b", "", &one); one.ID != "org/llama:70b" || len(one.Channels) != 1 {
		t.Errorf("a model: %+v", one)
	}
	if o.tell(t, 200, "GET", "/admin/channels/main", "", &one); one.Name != "main" || len(one.Served) != 4 {
		t.Errorf("a channel: %+v", one)
	}
	for _, path := range []string{"/admin/models/none", "/admin/channels/none"} {
		if rec := o.ask(t, "GET", path, ""); rec.Code != 404 || !strings.Contains(rec.Body.String(), `\"none\"`) {
			t.Errorf("%s: got %d %s, want 404", path, rec.Code, rec.Body)
		}
	}
}

// TestAdminPriceDraft: a public list becomes YAML for the file and what it differs in; nothing is changed.
func TestAdminPriceDraft(t *testing.T) {
	t.Parallel()
	o, _ := pricedEnv(t)
	const list = `{"openai": {"models": {
		"gpt-4o": {"cost": {"input": 2.5, "cache_read": 1.25, "output": 10}},
		"gpt-4o-mini": {"cost": {"input": 0.15, "output": 0.6}},
		"org/llama:70b": {"cost": {}}
	}}}`
	var draft struct {
		YAML string
		Data []struct {
			Model, Found, Change string
			Before, After        *struct{ Input, Output, Second *float64 }
		}
		Missing []string
	}
	o.tell(t, 200, "POST", "/admin/prices/draft", list, &draft)
	const want = `prices:
  "fast": {input: 0.15, output: 0.6}
  "gpt-4o": {input: 2.5, cached_input: 1.25, output: 10}
`
	if draft.YAML != want || !slices.Equal(draft.Missing, []string{"open", "org/llama:70b", "sora-2"}) {
		t.Errorf("drafted:\n%swithout %v", draft.YAML, draft.Missing)
	}
	changes := make(map[string]string)
	for _, row := range draft.Data {
		changes[row.Model] = row.Change
	}
	if len(changes) != 2 || changes["fast"] != "new" || changes["gpt-4o"] != "changed" {
		t.Errorf("changes: %v", changes)
	}
	if gpt := draft.Data[1]; *gpt.Before.Output != 8 || *gpt.After.Output != 10 || gpt.Found != "openai/gpt-4o" {
		t.Errorf("gpt-4o: %+v", gpt)
	}
	for _, body := range []string{"", "[]", "{}", `{"gpt-4o":1}`, "prices"} {
		if rec := o.ask(t, "POST", "/admin/prices/draft", body); rec.Code != 400 {
			t.Errorf("%q: got %d %s, want 400", body, rec.Code, rec.Body)
		}
	}
	large, err := json.Marshal(map[string]string{"a": strings.Repeat("x", 9<<20)})
	if err != nil {
		t.Fatal(err)
	}
	if rec := o.ask(t, "POST", "/admin/prices/draft", string(large)); rec.Code != 413 {
		t.Errorf("a list of 9 MiB: got %d %.200s, want 413", rec.Code, rec.Body)
	}
}
