package upstream_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestCheckModels: what answers at the address, and how, decides; in words for an operator that do not have the key.
func TestCheckModels(t *testing.T) {
	t.Parallel()
	const key = "sk-the-canary-of-checks"
	answer := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/alias") {
				_, _ = w.Write([]byte(`{"id":"dated"}`))
				return
			}
			if strings.HasSuffix(r.URL.Path, "/none") {
				status = http.StatusNotFound
			}
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const list = `{"data":[{"id":"dated"}]}`
	for _, tc := range []struct {
		name    string
		handler http.HandlerFunc
		tls     bool
		want    string // "" for good
		code    string
		lacks   string
	}{
		{"a list", answer(200, "application/json", list), false, "", "", "none"},
		{"a list of the Gemini API", answer(200, "application/json", `{"models":[{"name":"models/dated"}]}`), false, "", "", "none"},
		{"a page", answer(200, "text/html", "<html>"), false, "the address is wrong", "trial.odd", ""},
		{"JSON of somebody else", answer(200, "application/json", `{"hello":"world"}`), false, "the address is wrong", "trial.odd", ""},
		{"no such page", answer(404, "text/html", "<html>"), false, "the address is wrong", "trial.odd", ""},
		{"a refused key", answer(401, "application/json", `{"error":{"message":"Bad key `+key+`"}}`), false, "the key is refused (status 401: Bad key ***)", "trial.key_refused", ""},
		{"no right", answer(403, "application/json", `{"error":{"message":"Not you"}}`), false, "the key may not do this (status 403: Not you)", "trial.key_forbidden", ""},
		{"no money", answer(402, "application/json", `{}`), false, "out of money", "trial.key_exhausted", ""},
		{"too often", answer(429, "application/json", `{}`), false, "limited for the moment", "trial.key_busy", ""},
		{"broken", answer(500, "application/json", `{}`), false, "status 500", "", ""},
		{"an unknown authority", answer(200, "application/json", list), true, "TLS: ", "trial.authority", ""},
		{"no TLS", answer(200, "application/json", list), false, "meant to begin with http://?", "trial.plain", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			start := httptest.NewServer
			if tc.tls {
				start = httptest.NewTLSServer
			}
			server := start(tc.handler)
			t.Cleanup(server.Close)
			server.Config.ErrorLog = nil
			jobs := upstream.NewJobs(&http.Client{Transport: new(http.Transport)}, upstream.JobVendor{Name: "some"})
			to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: key}
			if tc.code == "trial.plain" {
				to.Channel.BaseURL = strings.Replace(server.URL, "http:", "https:", 1)
			}
			checked, err := jobs.CheckModels(t.Context(), to, "/models?limit=1", []string{"dated", "alias", "none"})
			if tc.want == "" {
				if err != nil || strings.Join(checked.Lacks, " ") != tc.lacks {
					t.Errorf("got %+v, %v", checked, err)
				}
				return
			}
			if err == nil {
				t.Fatalf("got %+v", checked)
			}
			if got := upstream.TroubleOf(err, key); got.Code != "" && got.Words != strings.ReplaceAll(upstream.TroubleSentences()[got.Code], "{detail}", got.Detail) {
				t.Errorf("%q is not the sentence of %s with %q", got.Words, got.Code, got.Detail)
			} else if !strings.Contains(got.Words, tc.want) || strings.Contains(got.Words+got.Detail, key) || got.Code != tc.code {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestLookedUp: a job that nobody has made is unknown in the vendor's own words; a web server's 404 is no such word.
func TestLookedUp(t *testing.T) {
	t.Parallel()
	refused := func(status int, body string) error {
		fault := upstream.Refusal(status, http.Header{})
		fault.Upstream = &providers.Reply{Status: status, Body: []byte(body)}
		return fault
	}
	for _, tc := range []struct {
		err  error
		good bool
	}{
		{nil, true},
		{refused(404, `{"error":"no such job"}`), true},
		{refused(400, `{"error":"no such job"}`), true},
		{refused(404, "404 page not found"), false},
		{refused(401, `{"error":"who are you?"}`), false},
		{refused(500, `{}`), false},
	} {
		if _, err := upstream.LookedUp(tc.err, nil); (err == nil) != tc.good {
			t.Errorf("%v: got %v, want good %t", tc.err, err, tc.good)
		}
	}
}
