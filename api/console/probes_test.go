package console

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
	"modelrelay/storage/audit"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/tokens"
)

// probes returns texts that an attacker may enter to become markup of a page. The browser tests use the same file.
func probes(t *testing.T) (list []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/probes.json")
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil || len(list) < 60 {
		t.Fatalf("%d probes, %v", len(list), err)
	}
	return list
}

// attribute matches the value of an attribute: templates escape its quotes.
var attribute = regexp.MustCompile(`="[^"]*"`)

var tag = regexp.MustCompile(`<[a-zA-Z!?/]`)

// TestWhatOthersWroteIsText: a page shows foreign values as text. They add no element and no attribute to those of the templates.
func TestWhatOthersWroteIsText(t *testing.T) {
	t.Parallel()
	pagesWith := func(text string) map[string]string {
		h := newHouse(t, nil)
		channel := channelOf(text, "m")
		channel.Groups, channel.Models["m"] = []string{text}, text
		h.router.Load([]providers.Channel{channel}, map[string]string{text: "m"})
		h.router.Health.Pause(text, &health.Pause{Until: time.Now().Add(time.Hour), By: text, Reason: text})
		h.tested = channeltest.Result{Operation: text, Code: "test.key_refused", Values: map[string]string{"detail": text}, Reason: text}
		h.groups = map[string]operator.GroupRules{text: {Channels: []string{text}}}
		h.tokens = []tokens.Token{{
			ID: text, Name: text, Hint: text, Group: text, Models: []string{text}, Networks: []string{text}, Lane: text, WebhookURL: text, Budget: 2,
		}, {
			ID: "x", Name: text, Hint: text, Group: text, Models: []string{text}, Networks: []string{text}, Lane: text, WebhookURL: text,
			Budget: 2,
		}}
		h.spent, h.models = map[string]ledger.Balance{text: {Spent: 1}}, []router.Model{{ID: text}}
		h.refused = map[string]error{"x": &providers.Fault{Kind: providers.Invalid, Message: text, Param: text}}
		h.entries = []audit.Entry{{By: audit.Operator, Who: text, What: text, Subject: text, From: text, Outcome: audit.Refused, Reason: text}}
		h.nextEntry = text
		h.calls.Calls = []calllog.Call{{Record: calllog.Record{
			Names: calllog.Names{ID: text, Client: text, Trace: text, Task: text}, Caller: calllog.Caller{Token: text, TokenName: text, Agent: text},
			Requested: calllog.Requested{Model: text, Operation: text, Format: text},
			Outcome:   calllog.Outcome{Channel: text, Status: 500, Fault: text, Words: text, Code: text},
			Tries:     []calllog.Try{{Channel: text, Key: text, Fault: text, Vendor: text}},
		}}}
		b := h.as(t, "anna")
		agent := httptest.NewRequest(http.MethodPost, "http://localhost:8080/console/sign-in", strings.NewReader("key=anna"))
		agent.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		agent.Header.Set("Sec-Fetch-Site", "same-origin")
		agent.Header.Set("User-Agent", text)
		b.do(agent)
		q := url.QueryEscape(text)
		return map[string]string{
			"channels": b.get("/console/channels").Body.String(),
			"tested":   b.post("/console/channels/"+url.PathEscape(text), url.Values{"do": {"test"}}).Body.String(),
			"models":   b.get("/console/models").Body.String(),
			"audit":    b.get("/console/audit").Body.String(),
			"calls":    b.get("/console/calls").Body.String(),
			"call":     b.get("/console/calls/" + url.PathEscape(text)).Body.String(),
			"tokens":   b.get("/console/tokens?q=" + q + "&group=" + q + "&sort=" + q + "&done=" + q).Body.String(),
			"token":    b.get("/console/tokens/x").Body.String(),
			"like":     b.get("/console/tokens/new?like=" + q).Body.String(),
			"made":     b.post("/console/tokens/new", url.Values{"do": {"create"}, "name": {text}, "group": {text}}).Body.String(),
			"refused": b.post("/console/tokens/x", url.Values{
				"do": {"change"}, "models": {text}, "group": {text}, "webhook_url": {text},
				"lane": {text},
			}).Body.String(),
			"number":  b.post("/console/tokens/x", url.Values{"do": {"change"}, "max_tasks": {text}}).Body.String(),
			"try":     b.get("/console/try?model=" + q + "&prompt=" + q + "&as=" + q + "&kind=" + q).Body.String(),
			"you":     b.get("/console/you").Body.String(),
			"setup":   b.get("/console/setup").Body.String(),
			"nothing": b.get("/console/" + url.PathEscape(text)).Body.String(),
			"sign-in": (&browser{h: h}).get("/console/sign-in?next=" + q).Body.String(),
			"no link": (&browser{h: h}).get("/console/enter/" + url.PathEscape(text)).Body.String(),
		}
	}
	plain := pagesWith("harmless")
	for i, probe := range probes(t) {
		for name, body := range pagesWith(probe) {
			if got, want := len(tag.FindAllString(body, -1)), len(tag.FindAllString(plain[name], -1)); got != want {
				t.Errorf("probe %d %.40q: %s has %d tags, want %d", i, probe, name, got, want)
			}
			bare := attribute.ReplaceAllString(body, `=""`)
			if handler.MatchString(bare) || styled.MatchString(bare) || inlineScript.MatchString(bare) {
				t.Errorf("probe %d %.40q: %s has a script, style or handler", i, probe, name)
			}
			for _, found := range address.FindAllStringSubmatch(body, -1) {
				if to := found[1]; strings.HasPrefix(to, "/") || strings.Contains(to, "://") || strings.HasPrefix(strings.ToLower(to), "javascript:") {
					t.Errorf("probe %d %.40q: %s leads to %s", i, probe, name, to)
				}
			}
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for amount, want := range map[float64]string{
		0: "0.00", 0.4: "0.400", 0.0002: "0.000200", 1234567.5: "1,234,567.50", 12: "12.00",
		-1234: "-1,234.00",
	} {
		if got := money(amount); got != want {
			t.Errorf("%v: got %s, want %s", amount, got, want)
		}
	}
}
