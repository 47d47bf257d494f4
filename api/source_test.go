package api_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestSourceBehindProxies: the address that networks are compared with is that of the client of the outermost trusted proxy.
func TestSourceBehindProxies(t *testing.T) {
	t.Parallel()
	const proxy, client, stranger = "10.0.0.1:1", "203.0.113.7", "198.51.100.9:1"
	for _, test := range []struct {
		name, peer          string
		forwardedFor, named []string // lines of X-Forwarded-For and of Forwarded
		want                string   // "": none is known
	}{
		{"no header", proxy, nil, nil, "10.0.0.1"},
		{"a stranger's word", stranger, []string{client}, []string{"for=" + client}, "198.51.100.9"},
		{"one proxy", proxy, []string{client}, nil, client},
		{"a claim to the left", proxy, []string{"192.0.2.1, " + client}, nil, client},
		{"a claim in a line of its own", proxy, []string{"192.0.2.1", client}, nil, client},
		{"a chain of proxies", proxy, []string{"192.0.2.1, " + client + ",10.9.9.9 , 10.0.0.2"}, nil, client},
		{"proxies alone", proxy, []string{"10.0.0.3, 10.0.0.2"}, nil, "10.0.0.3"},
		{"with a port", proxy, []string{client + ":4711"}, nil, client},
		{"IPv6", proxy, []string{"2001:db8::1"}, nil, "2001:db8::1"},
		{"IPv6 with a port", proxy, []string{"[2001:db8::1]:80"}, nil, "2001:db8::1"},
		{"IPv6 in brackets", proxy, []string{"[2001:db8::1]"}, nil, "2001:db8::1"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1", []string{"::ffff:" + client}, nil, client},
		{"an IPv6 proxy", "[fd00::1]:1", []string{client}, nil, client},
		{"no address", proxy, []string{client + ", unknown"}, nil, "10.0.0.1"},
		{"no address behind a proxy", proxy, []string{client + ", nonsense, 10.0.0.2"}, nil, "10.0.0.2"},
		{"an empty name", proxy, []string{client + ","}, nil, "10.0.0.1"},

		{"Forwarded", proxy, nil, []string{"for=" + client}, client},
		{"Forwarded with more", proxy, nil, []string{`For="` + client + `:80";proto=https;by=10.0.0.1`}, client},
		{"Forwarded, IPv6", proxy, nil, []string{`proto=https; for="[2001:db8::1]:4711"`}, "2001:db8::1"},
		{"Forwarded, a chain", proxy, nil, []string{"for=192.0.2.1, for=" + client + ", for=10.0.0.2;by=10.0.0.1"}, client},
		{"Forwarded, an open quote to the left", proxy, nil, []string{`for="192.0.2.1, for=` + client}, client},
		{"Forwarded, a quoted comma", proxy, nil, []string{`for=192.0.2.1, for=` + client + `;host="a,b"`}, client},
		{"Forwarded, hidden", proxy, nil, []string{"for=" + client + ", for=_hidden"}, "10.0.0.1"},
		{"Forwarded, no client at the end", proxy, nil, []string{"for=" + client + ", proto=https"}, "10.0.0.1"},
		{"Forwarded, an open quote", proxy, nil, []string{"for=" + client + `, for="192.0.2.1`}, "10.0.0.1"},

		{"both agree", proxy, []string{client}, []string{"for=" + client}, client},
		{"both disagree", proxy, []string{client}, []string{"for=10.1.2.3"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ask := func(network string) int {
				g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Proxies = proxiesOf("10.0.0.0/8", "fd00::/8") })
				g.tokens["sk-held"] = &tokens.Token{ID: "held", Group: "default", Networks: []string{network}}
				req := request("GET", "/v1/models", "", "Authorization", "Bearer sk-held")
				req.RemoteAddr = test.peer
				for _, line := range test.forwardedFor {
					req.Header.Add("X-Forwarded-For", line)
				}
				for _, line := range test.named {
					req.Header.Add("Forwarded", line)
				}
				return g.do(t, req).Code
			}
			if test.want == "" {
				if four, six := ask("0.0.0.0/0"), ask("::/0"); four != http.StatusForbidden || six != http.StatusForbidden {
					t.Errorf("got %d and %d for any network, want 403: no address is known", four, six)
				}
				return
			}
			want := netip.MustParseAddr(test.want)
			if got := ask(netip.PrefixFrom(want, want.BitLen()).String()); got != http.StatusOK {
				t.Errorf("got %d for the network of %s, want 200", got, want)
			}
		})
	}
}

// TestSchemeBehindProxies: the links of answers begin as a trusted proxy reports that its client began; no other header counts.
func TestSchemeBehindProxies(t *testing.T) {
	t.Parallel()
	const proxy, stranger = "10.0.0.1:1", "198.51.100.9:1"
	for _, test := range []struct {
		name, peer string
		header     [2]string
		secured    bool
		want       string
	}{
		{"nothing", proxy, [2]string{}, false, "http"},
		{"TLS", stranger, [2]string{}, true, "https"},
		{"a stranger's word", stranger, [2]string{"X-Forwarded-Proto", "https"}, false, "http"},
		{"a stranger's Forwarded", stranger, [2]string{"Forwarded", "proto=https"}, false, "http"},
		{"a proxy", proxy, [2]string{"X-Forwarded-Proto", "https"}, false, "https"},
		{"a proxy of http", proxy, [2]string{"X-Forwarded-Proto", "http"}, false, "http"},
		{"a claim to the left", proxy, [2]string{"X-Forwarded-Proto", "https, http"}, false, "http"},
		{"Forwarded", proxy, [2]string{"Forwarded", `for=203.0.113.7;proto=http, for="10.0.0.2";Proto="https"`}, false, "https"},
		{"Forwarded without", proxy, [2]string{"Forwarded", "proto=https, for=10.0.0.2"}, false, "http"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, func(g *gateway, o *api.Options) {
				anyVideoModel(g, o)
				o.Proxies = proxiesOf("10.0.0.0/8")
			})
			g.tasks.put(tasks.Task{
				ID: "video_1", Token: "good", State: workflows.Completed, CreatedAt: day, Progress: 100,
				Ending: workflows.Ending{ExpiresAt: time.Now().Add(time.Hour), Outputs: []activities.Output{{Object: "a"}}},
			})
			req := request("POST", resultPath, `{"req_key":"jimeng_t2v","task_id":"video_1","req_json":"{\"return_url\":true}"}`, test.header[0],
				test.header[1])
			req.Host, req.RemoteAddr = "videos.example.com", test.peer
			if test.secured {
				req.TLS = new(tls.ConnectionState)
			}
			if rec, want := g.do(t, req), `"video_url":"`+test.want+`://videos.example.com/`; !strings.Contains(rec.Body.String(), want) {
				t.Errorf("got %s, want %s", rec.Body, want)
			}
		})
	}
}

func proxiesOf(networks ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, network := range networks {
		list = append(list, netip.MustParsePrefix(network))
	}
	return list
}

// TestWrongOperatorsKeysBehindAProxy: guesses that come through a trusted proxy are those of the address that it names: neither the
// proxy nor other clients of that proxy get 429, and the log names the guesser.
func TestWrongOperatorsKeysBehindAProxy(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	o := newAdminEnvOn(t, storagetest.Client(t, "redis://"+server.Addr()), func(o *api.Options) { o.Proxies = proxiesOf("10.0.0.0/8") })
	for _, name := range []string{"X-Forwarded-For", "Forwarded"} {
		from := func(source, key string) int {
			if name == "Forwarded" {
				source = "for=" + source
			}
			req := request("GET", "/admin/tokens", "", "Authorization", "Bearer "+key, name, source)
			req.RemoteAddr = "10.0.0.1:1"
			return o.do(t, req).Code
		}
		guesser, neighbour := "203.0.113.7", "203.0.113.8"
		if name == "Forwarded" {
			guesser, neighbour = "203.0.113.9", "203.0.113.10"
		}
		for range 10 {
			from(guesser, "guess")
		}
		if got := from(guesser, "guess"); got != http.StatusTooManyRequests {
			t.Errorf("%s: after ten guesses: %d", name, got)
		}
		if got := from(neighbour, "guess"); got != http.StatusUnauthorized {
			t.Errorf("%s: another behind the proxy: %d", name, got)
		}
		if got := from(guesser, adminKey); got != http.StatusOK {
			t.Errorf("%s: the right key: %d", name, got)
		}
		if log := o.log.String(); !strings.Contains(log, `"source":"`+guesser+`"`) || strings.Contains(log, `"source":"10.0.0.1"`) {
			t.Errorf("%s: the log is %s", name, log)
		}
	}
}

// TestWrongClientKeys: a network that sends wrong keys gets 429 in the format's words, each IPv6 subscriber for
// itself; a right key always passes, and so do the networks of others. The log names the address and no key.
func TestWrongClientKeys(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Proxies = proxiesOf("10.0.0.0/8") })
	from := func(source, path, key string) *httptest.ResponseRecorder {
		req := request("GET", path, "", "Authorization", "Bearer "+key, "X-Forwarded-For", source)
		req.RemoteAddr = "10.0.0.1:1"
		return g.do(t, req)
	}
	last := 0
	for i := range 61 {
		last = from("203.0.113.7", "/v1/videos/x", fmt.Sprint("sk-guess-", i)).Code
		if i < 60 && last != 401 {
			t.Fatalf("guess %d: got %d, want 401", i, last)
		}
	}
	rec := from("203.0.113.7", "/v1/videos/x", "sk-guess")
	if code, _ := fault(t, rec); last != 429 || rec.Code != 429 || code != "rate_limit_exceeded" || rec.Header().Get("Retry-After") == "" {
		t.Errorf("after 60 guesses: got %d and %d %s, want 429", last, rec.Code, rec.Body)
	}
	if rec := from("203.0.113.7", "/v1beta/models", "sk-guess"); rec.Code != 429 ||
		!strings.Contains(rec.Body.String(), "RESOURCE_EXHAUSTED") {
		t.Errorf("in format B: got %d %s", rec.Code, rec.Body)
	}
	for name, rec := range map[string]*httptest.ResponseRecorder{
		"the right key": from("203.0.113.7", "/v1/models", goodKey), "a neighbour": from("203.0.113.8", "/v1/models", goodKey),
	} {
		if rec.Code != 200 {
			t.Errorf("%s: got %d, want 200", name, rec.Code)
		}
	}
	for name, want := range map[string]int{"sk-off": 401, "": 401, "sk-away": 503} { // known, none, and not to be determined
		if rec := from("203.0.113.7", "/v1/videos/x", name); rec.Code != want {
			t.Errorf("key %q: got %d, want %d", name, rec.Code, want)
		}
	}
	for i := range 60 {
		from(fmt.Sprintf("2001:db8::%x", i+1), "/v1/videos/x", "sk-guess")
	}
	if same, other := from("2001:db8::ffff", "/v1/videos/x", "sk-guess").Code,
		from("2001:db8:0:1::1", "/v1/videos/x", "sk-guess").Code; same != 429 || other != 401 {
		t.Errorf("the same /64: got %d, want 429; another: got %d, want 401", same, other)
	}
	if log := g.log.String(); strings.Contains(log, "sk-guess") || !strings.Contains(log, `"source":"203.0.113.7"`) {
		t.Errorf("the log is %s", log)
	}
}
