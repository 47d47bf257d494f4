package api_test

import (
	"strings"
	"testing"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers/health"
	"modelrelay/storage/audit"
	"modelrelay/storage/tokens"
)

// TestAdminChannelVerbs: a paused channel gets no call and shows the reason, until it is resumed. A channel test reports the
// upstream's answer. An unknown channel is 404, and a key that was entered is stored nowhere.
func TestAdminChannelVerbs(t *testing.T) {
	t.Parallel()
	o := newAdminEnv(t)
	_, key, err := o.store.Create(t.Context(), tokens.Token{Name: "app", Group: "default"})
	if err != nil {
		t.Fatal(err)
	}
	chat := func() (int, string) {
		rec := o.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`,
			"Authorization", "Bearer "+key))
		return rec.Code, rec.Body.String()
	}
	if code, body := chat(); code != 200 {
		t.Fatalf("before: %d %s", code, body)
	}
	var state health.ChannelState
	o.tell(t, 200, "POST", "/admin/channels/main/pause", `{"minutes":30,"reason":"billing"}`, &state)
	if left := time.Until(state.Pause.Until); state.State != "paused" || state.Pause.By != "admin" || state.Pause.Reason != "billing" ||
		left < 29*time.Minute || left > 30*time.Minute {
		t.Errorf("paused: %+v until %v", state, state.Pause)
	}
	if len(state.Served) != 4 {
		t.Errorf("its models %v", state.Served)
	}
	if code, body := chat(); code != 503 || !strings.Contains(body, `Every channel for the model \"gpt-4o\" is paused by an operator.`) {
		t.Errorf("while it is paused: %d %s", code, body)
	}
	o.tell(t, 200, "POST", "/admin/channels/main/resume", "", &state)
	if code, body := chat(); code != 200 || state.Pause != nil || state.State != "closed" {
		t.Errorf("resumed: %+v; %d %s", state, code, body)
	}
	o.tell(t, 200, "POST", "/admin/channels/main/wake", "", &state)
	const canary = "sk-canary-of-a-typed-key"
	var tested operator.ChannelTested
	if o.tell(t, 200, "POST", "/admin/channels/main/test", "", &tested); !tested.OK || tested.Verdict != "address and key are good" {
		t.Errorf("tested %+v", tested)
	}
	if o.tell(t, 200, "POST", "/admin/channels/main/test", `{"key":"`+canary+`"}`, &tested); tested.OK {
		t.Errorf("tested with a wrong key: %+v", tested)
	}
	for _, verb := range []string{"pause", "resume", "wake", "test"} {
		if rec := o.ask(t, "POST", "/admin/channels/none/"+verb, `{"minutes":1}`); rec.Code != 404 && rec.Code != 400 {
			t.Errorf("%s of no channel: %d %s", verb, rec.Code, rec.Body)
		}
	}
	for _, body := range []string{`{}`, `{"minutes":0}`, `{"minutes":43201}`, `{"minutes":1,"until":"x"}`} {
		if rec := o.ask(t, "POST", "/admin/channels/main/pause", body); rec.Code != 400 {
			t.Errorf("%s: %d %s", body, rec.Code, rec.Body)
		}
	}
	entries, _, err := o.audit.Page(t.Context(), audit.Filter{Subject: "main", Outcome: audit.Done}, "", 10)
	if err != nil || len(entries) != 5 || entries[0].What != "test_channel" || entries[4].What != "pause_channel" ||
		len(entries[4].Changes) != 2 {
		t.Errorf("audit %+v, %v", entries, err)
	}
	if all := o.ask(t, "GET", "/admin/audit", "").Body.String() + o.log.String(); strings.Contains(all, canary) {
		t.Error("an entered key is stored")
	}
}
