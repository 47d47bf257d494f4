package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/api/admin"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// documented is an operation as the OpenAPI document describes it.
type documented struct {
	Permission string                `json:"x-permission"`
	Tags       []string              `json:"tags"`
	Security   []map[string][]string `json:"security"`
}

// operationsOf reads the document's operations by "METHOD /path".
func operationsOf(t *testing.T, g *gateway) map[string]documented {
	t.Helper()
	var document struct {
		Paths map[string]map[string]documented
	}
	decode(t, g.do(t, httptest.NewRequest(http.MethodGet, "/openapi.json", http.NoBody)).Body.Bytes(), &document)
	operations := make(map[string]documented)
	for path, methods := range document.Paths {
		for method, op := range methods {
			operations[strings.ToUpper(method)+" "+path] = op
		}
	}
	if len(operations) < 30 {
		t.Fatalf("the document has %d operations", len(operations))
	}
	return operations
}

// TestEveryOperationRequiresItsWord: a token without the word that the document names gets 403, one that has it does not;
// so does one that comes from elsewhere.
func TestEveryOperationRequiresItsWord(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, word := range tokens.Operations() {
		g.tokens["sk-"+word] = &tokens.Token{ID: word, Group: "default", Operations: []string{word}}
	}
	g.tokens["sk-here"] = &tokens.Token{ID: "here", Group: "default", Networks: []string{"198.51.100.0/24", "192.0.2.1/32"}}
	g.tokens["sk-there"] = &tokens.Token{ID: "there", Group: "default", Networks: []string{"10.0.0.0/8"}}
	seen := make(map[string]int)
	for name, op := range operationsOf(t, g) {
		if slices.Contains(op.Tags, admin.Tag) {
			continue
		}
		seen[op.Permission]++
		method, path, _ := strings.Cut(name, " ")
		path = strings.NewReplacer("{task_id}", "video_1", "{model}", "gpt-4o").Replace(path)
		ask := func(key string) int {
			return g.do(t, request(method, path, "", "Authorization", "Bearer "+key, "X-Forwarded-For", "10.1.1.1")).Code
		}
		for _, word := range tokens.Operations() {
			want := op.Permission != "" && op.Permission != word
			if got := ask("sk-"+word) == http.StatusForbidden; got != want {
				t.Errorf("%s with %s alone: refused %v, want %v", name, word, got, want)
			}
		}
		if ask("sk-there") != http.StatusForbidden || ask("sk-here") == http.StatusForbidden {
			t.Errorf("%s does not ask for the network", name)
		}
	}
	for _, word := range append(tokens.Operations(), "") {
		if seen[word] == 0 {
			t.Errorf("no operation belongs to %q: %v", word, seen)
		}
	}
}

// TestPermissionFaults: a refused client reads the refusal in its format, and the log names the token.
func TestPermissionFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tokens["sk-video"] = &tokens.Token{ID: "v", Name: "films", Group: "default", Operations: []string{"video"}}
	g.tokens["sk-off"].Networks = []string{"10.0.0.0/8"}
	rec := g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[]}`, "Authorization", "Bearer sk-video"))
	if code, _ := fault(t, rec); rec.Code != 403 || code != "permission_denied" || !strings.Contains(rec.Body.String(), "relay operations") {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	if !strings.Contains(g.log.String(), `"token":"films"`) || len(g.limits.costs) != 0 {
		t.Errorf("log %s, counted %v", g.log, g.limits.costs)
	}
	rec = g.do(t, request("POST", "/v1beta/models/gpt-4o:generateContent", `{}`, "Authorization", "Bearer sk-video"))
	if rec.Code != 403 || !strings.Contains(rec.Body.String(), `"status":"PERMISSION_DENIED"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	// A disabled token is no credential, wherever it comes from.
	if rec = g.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer sk-off")); rec.Code != 401 {
		t.Errorf("a disabled token from elsewhere: got %d", rec.Code)
	}
}

// TestModelListIsWhatACallWouldTake: for each token, the listed models are those of which some call of its is not refused.
func TestModelListIsWhatACallWouldTake(t *testing.T) {
	t.Parallel()
	catalog := providers.Catalog{
		"chats":  {Name: "chats", Relay: relayer(nil), Endpoints: []providers.Endpoint{chat}},
		"films":  {Name: "films", Video: struct{ providers.VideoAdapter }{}},
		"speaks": {Name: "speaks", Realtime: struct{ providers.Dialer }{}},
	}
	var channels []providers.Channel
	for vendor, models := range map[string]map[string]string{
		"chats": {"talker": "", "both": ""}, "films": {"camera": "", "both": ""}, "speaks": {"voice": ""},
	} {
		channels = append(channels, providers.Channel{
			Name: vendor, Vendor: vendor, Keys: []providers.Secret{"k"}, Models: models, Groups: []string{"default"},
		})
	}
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Router = router.New(catalog, channels, nil) })
	for _, test := range []struct {
		operations, models []string
		want               string
	}{
		{nil, nil, "both camera talker voice"},
		{[]string{"relay"}, nil, "both talker"},
		{[]string{"video"}, nil, "both camera"},
		{[]string{"realtime"}, nil, "voice"},
		{[]string{"realtime", "video"}, nil, "both camera voice"},
		{[]string{"video"}, []string{"t*"}, ""},
		{[]string{"video"}, []string{"b*", "v*"}, "both"},
	} {
		g.tokens["sk-one"] = &tokens.Token{ID: "one", Group: "default", Operations: test.operations, Models: test.models}
		var list struct{ Data []struct{ ID string } }
		decode(t, g.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer sk-one")).Body.Bytes(), &list)
		var got []string
		for _, model := range list.Data {
			got = append(got, model.ID)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%v, %v: got %v, want %s", test.operations, test.models, got, test.want)
		}
		for _, model := range []string{"both", "camera", "talker", "voice"} {
			rec := g.do(t, request("GET", "/v1/models/"+model, "", "Authorization", "Bearer sk-one"))
			if (rec.Code == 200) != slices.Contains(got, model) {
				t.Errorf("%v, %v: %s answers %d, the list is %v", test.operations, test.models, model, rec.Code, got)
			}
		}
	}
}
