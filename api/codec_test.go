package api_test

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/storage/storagetest"
)

// TestCodec: operators and viewers have payloads decrypted, from a command, and from the pages of the one Temporal UI that is named.
func TestCodec(t *testing.T) {
	t.Parallel()
	const ui = "https://ui.example.com"
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) {
		options.Codec = api.Codec{Origin: ui, Decode: func(body []byte) ([]byte, error) {
			if string(body) != `{"payloads":[]}` {
				return nil, errors.New("none")
			}
			return []byte("in the clear"), nil
		}}
	})
	basic := func(password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:"+password))
	}
	for name, test := range map[string]struct {
		method, key, origin, body string
		status                    int
		shared                    bool // with the page that asks
	}{
		"a command":              {"POST", "Bearer " + adminKey, "", `{"payloads":[]}`, 200, false},
		"a viewer":               {"POST", "Bearer " + viewerKey, "", `{"payloads":[]}`, 200, false},
		"the UI":                 {"POST", "Bearer " + adminKey, ui, `{"payloads":[]}`, 200, true},
		"a browser's sign-in":    {"POST", basic(adminKey), ui, `{"payloads":[]}`, 200, true},
		"no key":                 {"POST", "", ui, `{"payloads":[]}`, 401, true},
		"a wrong password":       {"POST", basic("wrong"), ui, `{"payloads":[]}`, 401, true},
		"a client's key":         {"POST", "Bearer sk-alice", "", `{"payloads":[]}`, 401, false},
		"another page":           {"POST", "Bearer " + adminKey, "https://evil.example.com", `{"payloads":[]}`, 403, false},
		"no page's origin":       {"POST", "Bearer " + adminKey, "null", `{"payloads":[]}`, 403, false},
		"no payloads":            {"POST", "Bearer " + adminKey, "", `[]`, 400, false},
		"too long":               {"POST", "Bearer " + adminKey, "", strings.Repeat(" ", 8<<20+1), 413, false},
		"preflight":              {"OPTIONS", "", ui, "", 204, true},
		"another page's":         {"OPTIONS", "", "https://evil.example.com", "", 403, false},
		"no page's":              {"OPTIONS", "", "", "", 403, false},
		"a person signs in":      {"GET", basic(adminKey), "", "", 200, false},
		"a person comes":         {"GET", "", "", "", 401, false},
		"another page's sign-in": {"GET", basic(adminKey), "https://evil.example.com", "", 403, false},
	} {
		r := request(test.method, "/codec/decode", test.body, "Authorization", test.key)
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		rec := o.do(t, r)
		header := rec.Header()
		shared := header.Get("Access-Control-Allow-Origin") == ui && header.Get("Access-Control-Allow-Credentials") == "true"
		if rec.Code != test.status || shared != test.shared || !shared && header.Get("Access-Control-Allow-Origin") != "" ||
			header.Get("Vary") == "" {
			t.Errorf("%s: %d %v %s", name, rec.Code, header, rec.Body)
		}
		if clear := rec.Body.String() == "in the clear"; clear != (test.status == 200 && test.method == "POST") {
			t.Errorf("%s: %s", name, rec.Body)
		}
		if challenge := header.Get("Www-Authenticate"); strings.HasPrefix(challenge, "Basic ") != (test.status == 401) {
			t.Errorf("%s: it asks for %q", name, challenge)
		}
		if allowed := header.Get("Access-Control-Allow-Headers"); strings.Contains(allowed, "X-Namespace") != (test.status == 204) {
			t.Errorf("%s: allowed %q", name, allowed)
		}
	}
	if strings.Contains(o.log.String(), adminKey) {
		t.Error("the log has the key")
	}
}

// TestCodecIsTheOperators: it is where the operator's operations are, and where they are not there is none.
func TestCodecIsTheOperators(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	with := func(change func(*api.Options)) *adminEnv {
		return newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(options *api.Options) {
			options.Codec.Decode = func(body []byte) ([]byte, error) { return body, nil }
			change(options)
		})
	}
	ask := func(o *adminEnv) int {
		return o.do(t, request(http.MethodPost, "/codec/decode", "{}", "Authorization", "Bearer "+adminKey)).Code
	}
	for name, test := range map[string]struct {
		change func(*api.Options)
		want   int
	}{
		"with clients":      {func(*api.Options) {}, 200},
		"apart from them":   {func(o *api.Options) { o.AdminApart = true }, 404},
		"without operators": {func(o *api.Options) { o.Admin.Operators = nil }, 404},
		"without a codec":   {func(o *api.Options) { o.Codec.Decode = nil }, 404},
	} {
		if got := ask(with(test.change)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
