package channeltest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/api/console/words"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// TestVerdicts: what answers at the address, and how, decides; in words for an operator that do not have the key.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	texts := words.Load()
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
		want    string
		code    string
		lacks   string
	}{
		{"a list", answer(200, "application/json", list), false, "the key has no model none", "test.lacks", "none"},
		{
			"a list of the Gemini API", answer(200, "application/json", `{"models":[{"name":"models/dated"}]}`), false, "the key has no model none",
			"test.lacks", "none",
		},
		{"a page", answer(200, "text/html", "<html>"), false, "the address is wrong", "test.odd", ""},
		{"JSON of another service", answer(200, "application/json", `{"hello":"world"}`), false, "the address is wrong", "test.odd", ""},
		{"no such page", answer(404, "text/html", "<html>"), false, "the address is wrong", "test.odd", ""},
		{
			"a refused key", answer(401, "application/json", `{"error":{"message":"Bad key `+key+`"}}`), false,
			"the key is refused (status 401: Bad key ***)", "test.key_refused", "",
		},
		{
			"no right", answer(403, "application/json", `{"error":{"message":"Not you"}}`), false, "the key may not do this (status 403: Not you)",
			"test.key_forbidden", "",
		},
		{"no money", answer(402, "application/json", `{}`), false, "out of money", "test.key_exhausted", ""},
		{"too often", answer(429, "application/json", `{}`), false, "limited for the moment", "test.key_busy", ""},
		{"broken", answer(500, "application/json", `{}`), false, "status 500", "test.other", ""},
		{"an unknown authority", answer(200, "application/json", list), true, "TLS: ", "test.authority", ""},
		{"no TLS", answer(200, "application/json", list), false, "meant to begin with http://?", "test.plain", ""},
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
			channel := providers.Channel{
				Name: "main", Vendor: "some", BaseURL: server.URL, Keys: []providers.Secret{key},
				Models: map[string]string{"dated": "", "alias": "", "none": ""},
			}
			if tc.code == "test.plain" {
				channel.BaseURL = strings.Replace(server.URL, "http:", "https:", 1)
			}
			tester := channeltest.Tester{
				Channel: func(string) (providers.Channel, bool) { return channel, true },
				Vendors: providers.Catalog{"some": {Name: "some", Relay: lister{jobs: jobs}}},
			}
			got, err := tester.Test(t.Context(), "main", "")
			verdict := texts.Finding("en", got.Code, got.Values)
			if err != nil || got.OK || got.Code != tc.code || !strings.Contains(verdict, tc.want) || strings.Join(got.Lacks, " ") != tc.lacks {
				t.Errorf("got %+v, %q, %v", got, verdict, err)
			}
			if chinese := texts.Finding("zh", got.Code, got.Values); tc.code != "test.other" && chinese == verdict ||
				strings.ContainsAny(chinese+verdict, "{}") {
				t.Errorf("%s is %q and %q", got.Code, verdict, chinese)
			}
			if strings.Contains(fmt.Sprintf("%+v", got), key) {
				t.Errorf("the key is in %+v", got)
			}
		})
	}
}

// lister lists models as most vendors do.
type lister struct {
	providers.Relayer

	jobs *upstream.Jobs
}

func (l lister) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return l.jobs.CheckModels(ctx, to, "/models?limit=1", models)
}

// TestTypedKey: what a vendor stores of a typed key is not with what it stores of the channel's own, and an account that names an
// address of its own is refused.
func TestTypedKey(t *testing.T) {
	t.Parallel()
	all := vendors.New(http.DefaultClient)
	tester := channeltest.Tester{Vendors: all, Channel: func(name string) (providers.Channel, bool) {
		return providers.Channel{Name: name, Vendor: "veo", BaseURL: "http://127.0.0.1:1", Keys: []providers.Secret{"own"}}, name == "main"
	}}
	for key, want := range map[providers.Secret]string{"typed": "", "application-default": "key"} {
		_, err := tester.Test(t.Context(), "main", key)
		if fault := providers.AsFault(err); (fault == nil) != (want == "") || fault != nil && fault.Param != want {
			t.Errorf("key %q: %v", key.Reveal(), err)
		}
	}
	if _, err := tester.Test(t.Context(), "none", ""); providers.AsFault(err) == nil || providers.AsFault(err).Kind != providers.NotFound {
		t.Errorf("no channel: %v", err)
	}
}
