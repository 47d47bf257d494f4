package main_test

import (
	"strings"
	"testing"

	"modelrelay/api/console/words"
	"modelrelay/storage/storagetest"
)

// TestSetup: each service that the gateway needs is checked separately. A failed or doubtful check has the command that fixes it, and no
// secret.
func TestSetup(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	text := "admin_key: some-admin-key\n" + configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", "")
	s := serve(t, text, "--worker=false")
	type setup struct {
		Status string
		Data   []struct {
			Name, Status string
			Findings     []struct {
				Status, Message, Code, Fix string
				Values                     map[string]string
			}
		}
	}
	code, body := s.admin("some-admin-key", "GET", "/admin/setup")
	if code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if strings.Contains(body, "some-admin-key") || strings.Contains(body, `"sk-demo"`) {
		t.Errorf("a secret stands in %s", body)
	}
	found, texts := map[string]string{}, words.Load()
	for _, part := range decode[setup](t, body).Data {
		found[part.Name] = part.Status
		for _, finding := range part.Findings {
			if finding.Message == "" || finding.Status != "ok" && finding.Status != "unknown" && finding.Fix == "" {
				t.Errorf("%s: %+v says not what to do", part.Name, finding)
			}
			if part.Name == "store" && finding.Values["reason"] != "refused" {
				t.Errorf("%+v does not say that nothing listens", finding)
			}
			english, chinese := texts.Finding("en", finding.Code, finding.Values), texts.Finding("zh", finding.Code, finding.Values)
			if english != finding.Message || chinese == english || strings.ContainsAny(english+chinese, "{}") {
				t.Errorf("%s: %+v is %q and %q", part.Name, finding, english, chinese)
			}
		}
	}
	for name, want := range map[string]string{
		"redis": "ok", "temporal": "failed", "store": "failed", "clocks": "ok",
		"configuration": "warning", "versions": "ok",
	} {
		if found[name] != want {
			t.Errorf("%s is %q, want %q in %s", name, found[name], want, body)
		}
	}
}
