package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"modelrelay/api/admin"
	"modelrelay/api/console/words"
	"modelrelay/providers/trial"
	"modelrelay/storage/storagetest"
)

// requestIDs are those of refusals, which differ.
var requestIDs = regexp.MustCompile(`req_[0-9a-z]+`)

// TestChannelDraft: a draft is what the file's own parser takes, so that a gateway loads the file with it; a key is tried where the
// file's channels lead already, and nowhere else; nothing of the environment gets into an answer, and no key anywhere.
func TestChannelDraft(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	const canary = "sk-typed-by-hand"
	asked := 0
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") == "Bearer "+canary {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+canary+`."}}`)
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m2","object":"model"}]}`)
	}))
	t.Cleanup(upstream.Close)
	strangers := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a draft asks an address that nobody configured") }))
	t.Cleanup(strangers.Close)
	text := "admin_key: some-admin-key\nprices: {m: {input: 1}}\n" + configFor("redis://"+server.Addr(), upstream.URL, "sk-demo", "")
	s := serveWith(t, writeFile(t, "gateway.yaml", text), func(p *program) { p.env = map[string]string{"SECOND_API_KEY": "sk-upstream-hidden-too"} }, "--worker=false")
	draft := func(body string) (int, string, admin.ChannelDrafted) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/admin/channels/draft", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer some-admin-key")
		req.Header.Set("Content-Type", "application/json")
		resp, err := newClient(t).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, _ := io.ReadAll(resp.Body)
		if strings.Contains(string(answer), canary) || strings.Contains(string(answer), "hidden") {
			t.Errorf("%s: a secret in %s", body, answer)
		}
		if resp.StatusCode != http.StatusOK {
			return resp.StatusCode, string(answer), admin.ChannelDrafted{}
		}
		return resp.StatusCode, string(answer), decode[admin.ChannelDrafted](t, string(answer))
	}

	_, body, made := draft(`{"name":"second","vendor":"openai","base_url":"` + upstream.URL + `","models":{"m2":""}}`)
	if !strings.HasPrefix(made.YAML, "channels:\n  - name: second\n") || made.Variable != "SECOND_API_KEY" || made.Tested != nil || len(made.Warnings) != 1 || !strings.Contains(made.Warnings[0].Message, `prices: has none for "m2"`) {
		t.Errorf("drafted %s", body)
	}
	s.rewrite(strings.Split(text, "channels:")[0] + made.YAML)
	texts := words.Load()
	translated := func(warnings []admin.SetupFinding, codes ...string) {
		t.Helper()
		for i, warning := range warnings {
			var pairs []any
			for name, value := range warning.Values {
				pairs = append(pairs, name, value)
			}
			english, chinese := texts.Say("en", "finding."+warning.Code, pairs...), texts.Say("zh", "finding."+warning.Code, pairs...)
			if i >= len(codes) || warning.Code != codes[i] || english != warning.Message || chinese == english || strings.ContainsAny(chinese, "{}") {
				t.Errorf("%+v is %q and %q", warning, english, chinese)
			}
		}
		if len(warnings) != len(codes) {
			t.Errorf("%d warnings, want %v", len(warnings), codes)
		}
	}
	translated(made.Warnings, "config.unpriced")
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	if _, listed := s.admin("some-admin-key", http.MethodGet, "/admin/channels"); !strings.Contains(listed, `"name":"second"`) || strings.Contains(listed, `"name":"main"`) {
		t.Errorf("the file with the draft: %s", listed)
	}
	if code, body, _ := draft(`{"name":"second","vendor":"openai","base_url":"` + upstream.URL + `","models":{"m2":""}}`); code != 400 || !strings.Contains(body, `"param":"name"`) {
		t.Errorf("a name that the file has by now: %d %s", code, body)
	}

	_, body, made = draft(`{"name":"third","vendor":"openai","base_url":"` + upstream.URL + `/","models":{"m2":""},"key":"sk-good"}`)
	if made.Tested == nil || !made.Tested.OK || asked == 0 || made.Variable != "THIRD_API_KEY" {
		t.Errorf("a good key: %s", body)
	}
	if _, body, made = draft(`{"name":"third","vendor":"openai","base_url":"` + upstream.URL + `","models":{"m2":""},"key":"` + canary + `"}`); made.Tested == nil || made.Tested.OK || !strings.Contains(made.Tested.Verdict, "the key is refused") {
		t.Errorf("a refused key: %s", body)
	}
	if _, body, made = draft(`{"name":"third","vendor":"openai","base_url":"` + strangers.URL + `","models":{"m2":""},"key":"` + canary + `"}`); made.Tested != nil || !strings.Contains(body, "was not tried") {
		t.Errorf("an address that nobody configured: %s", body)
	}
	translated(made.Warnings, "draft.address")
	_, _, made = draft(`{"name":"third","vendor":"openai","base_url":"` + upstream.URL + `","models":{"m":""},"groups":["new"]}`)
	translated(made.Warnings, "draft.group")
	// What names addresses of its own, or is the machine's account, is not tried because somebody typed it.
	if _, body, made = draft(`{"name":"third","vendor":"veo","models":{"veo-3.1-generate-001":""},"key":"application-default"}`); made.YAML == "" || made.Tested != nil || !strings.Contains(body, "was not tried") {
		t.Errorf("the machine's account: %s", body)
	}
	translated(made.Warnings, "config.unpriced", "draft.account")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/admin/channels/second/test", strings.NewReader(`{"key":"{\"type\":\"service_account\",\"token_uri\":\"`+strangers.URL+`\"}"}`))
	req.Header.Set("Authorization", "Bearer some-admin-key")
	if resp, err := newClient(t).Do(req); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a test with an account's key: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	for param, wrong := range map[string]string{
		"base_url": `"name":"x","vendor":"openai","base_url":"${SECOND_API_KEY}","models":{"m":""}`,
		"vendor":   `"name":"x","vendor":"nobody","models":{"m":""}`,
		"key":      `"name":"x","vendor":"vendorc","base_url":"https://c.example","models":{"m":""},"key":"` + canary + `"`,
		"variable": `"name":"x","vendor":"openai","base_url":"https://a.example","models":{"m":""},"variable":"a}b"`,
		"models.m": `"name":"x","vendor":"openai","base_url":"https://a.example","models":{"m":"","n":"","m":"other"}`,
		"name":     `"name":"x","vendor":"openai","base_url":"https://a.example","models":{"m":""},"name":"y"`,
	} {
		if code, body, _ := draft("{" + wrong + "}"); code != 400 || !strings.Contains(body, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", wrong, code, body)
		}
	}
	// Nobody learns which variables are set, whatever field names one.
	for _, field := range []string{
		`"name":"y","variable":"NAME"`, `"name":"${NAME}"`, `"name":"y","groups":["${NAME}"]`, `"name":"y","base_url":"https://a.example/${NAME}"`,
	} {
		answers := make(map[string]string)
		for _, name := range []string{"SECOND_API_KEY", "OTHERS_API_KEY"} {
			fields := strings.ReplaceAll(field, "NAME", name)
			code, body, _ := draft(`{"vendor":"openai","models":{"m2":"${` + name + `}"},` + fields + `}`)
			answers[name] = strings.ReplaceAll(fmt.Sprint(code, " ", requestIDs.ReplaceAllString(body, "")), name, "NAME")
		}
		if answers["SECOND_API_KEY"] != answers["OTHERS_API_KEY"] {
			t.Errorf("%s: a set variable is told by %s\nanother by %s", field, answers["SECOND_API_KEY"], answers["OTHERS_API_KEY"])
		}
	}
	if _, log := s.admin("some-admin-key", http.MethodGet, "/admin/audit?what=draft_channel"); !strings.Contains(log, `"subject":"second"`) || strings.Contains(log, canary) {
		t.Errorf("audit: %s", log)
	}

	path := writeFile(t, "gateway.yaml", text)
	stdout, stderr, code := run(t, nil, "channels", "draft", "fourth", "--vendor", "openai", "--base-url", upstream.URL, "--models", "m, fast=m2", "--priority", "2", "--config", path)
	if code != 0 || !strings.Contains(stdout, `models: {"fast": "m2", "m": }`) || !strings.Contains(stdout, "priority: 2") || !strings.Contains(stderr, "FOURTH_API_KEY") {
		t.Errorf("the command: %d %s%s", code, stdout, stderr)
	}
	if stdout, _, code = run(t, nil, "channels", "draft", "fourth", "--vendor", "openai", "--base-url", upstream.URL, "--models", "m", "--json", "--config", path); code != 0 || decode[admin.ChannelDrafted](t, stdout).Variable != "FOURTH_API_KEY" {
		t.Errorf("as JSON: %d %s", code, stdout)
	}
	if _, stderr, code = run(t, nil, "channels", "draft", "main", "--vendor", "openai", "--base-url", upstream.URL, "--models", "m", "--config", path); code != 1 || !strings.Contains(stderr, "that the file has") {
		t.Errorf("a name that is there: %d %s", code, stderr)
	}
	if _, stderr, code = run(t, nil, "channels", "draft", "x", "--vendor", "openai", "--models", "m,m", "--config", path); code != 2 || !strings.Contains(stderr, "there twice") {
		t.Errorf("a model twice: %d %s", code, stderr)
	}
	if stdout, _, code = run(t, nil, "channels", "vendors", "--config", path); code != 0 || !strings.Contains(stdout, "anthropic") || !strings.Contains(stdout, "https://") {
		t.Errorf("the vendors: %d %s", code, stdout)
	}
}

// TestVerdictsAreTexts: the console has every sentence of a channel's test, word for word.
func TestVerdictsAreTexts(t *testing.T) {
	t.Parallel()
	texts := words.Load()
	for code, sentence := range trial.Sentences() {
		if got := texts["en"]["finding."+code]; got != sentence {
			t.Errorf("%s: the texts have %q, the test says %q", code, got, sentence)
		}
	}
}
