package upstream_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// clip begins as an MP4 file does.
const clip = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2 and so on"

// TestResultRedirects: a redirect is followed, but neither the key nor anything else of the header goes to another origin, and
// not back from there; nor does a redirect lead from https to http or to another scheme.
func TestResultRedirects(t *testing.T) {
	t.Parallel()
	seen := make(map[string]http.Header)
	note := func(name string, then http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			seen[name] = r.Header.Clone()
			then(w, r)
		}
	}
	to := func(address *string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, *address, http.StatusFound) }
	}
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, clip) }
	var stranger, back string
	own, other := http.NewServeMux(), http.NewServeMux()
	own.HandleFunc("/within", note("within", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/end", http.StatusFound) }))
	own.HandleFunc("/end", note("end", answer))
	own.HandleFunc("/away", to(&stranger))
	own.HandleFunc("/home", note("home", answer))
	own.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "file:///etc/hostname")
		w.WriteHeader(http.StatusFound)
	})
	other.HandleFunc("/there", note("there", answer))
	other.HandleFunc("/back", note("back", to(&back)))
	ours, theirs := httptest.NewServer(own), httptest.NewServer(other) // one host, two ports
	t.Cleanup(ours.Close)
	t.Cleanup(theirs.Close)
	secure := httptest.NewTLSServer(to(&back))
	t.Cleanup(secure.Close)
	back = ours.URL + "/home"
	trusting, ok := secure.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the test server's client has another transport")
	}
	client := upstream.NewClient(&upstream.ClientOptions{TLS: trusting.TLSClientConfig.Clone()})
	t.Cleanup(client.CloseIdleConnections)
	for _, tc := range []struct {
		name, address, stranger string
		// keyed and bare are the hops that see the key and those that see nothing of the header.
		keyed, bare []string
		refused     bool
	}{
		{name: "within", address: ours.URL + "/within", keyed: []string{"within", "end"}},
		{name: "to another port", address: ours.URL + "/away", stranger: theirs.URL + "/there", bare: []string{"there"}},
		{name: "there and back", address: ours.URL + "/away", stranger: theirs.URL + "/back", bare: []string{"back", "home"}},
		{name: "to no scheme of ours", address: ours.URL + "/file", refused: true},
		{name: "from https to http", address: secure.URL, refused: true},
	} {
		clear(seen)
		stranger = tc.stranger
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Authorization", "X-Goog-Api-Key", "Cookie", "Range"} {
			req.Header.Set(name, "hush")
		}
		req.Header.Set("User-Agent", "modelrelay/test")
		video, err := upstream.NewResults(client).Open(providers.Channel{BaseURL: ours.URL, AllowPrivateResults: true}, req)
		if tc.refused {
			var fault *providers.Fault
			if !errors.As(err, &fault) || fault.Kind != providers.Upstream || fault.Upstream == nil || fault.Upstream.Status != http.StatusFound ||
				len(seen) != 0 {
				t.Errorf("%s: got %v, seen %v", tc.name, err, seen)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tc.name, err)
		}
		_ = video.Body.Close()
		if len(seen) != len(tc.keyed)+len(tc.bare) {
			t.Errorf("%s: got hops %v", tc.name, seen)
		}
		for _, hop := range tc.keyed {
			if seen[hop].Get("Authorization") != "hush" || seen[hop].Get("X-Goog-Api-Key") != "hush" {
				t.Errorf("%s: %s lacks the key", tc.name, hop)
			}
		}
		for hop, header := range seen {
			if got := header.Get("User-Agent"); got != "modelrelay/test" {
				t.Errorf("%s: %s got the agent %q", tc.name, hop, got)
			}
		}
		for _, hop := range tc.bare {
			for name, values := range seen[hop] {
				if strings.Contains(strings.Join(values, ""), "hush") || name == "Referer" {
					t.Errorf("%s: %s got %s", tc.name, hop, name)
				}
			}
		}
	}
}

// TestResultBorder: only public addresses are dialled beyond the channel's own origin, however a result leads there.
func TestResultBorder(t *testing.T) {
	t.Parallel()
	var there string
	asked := make(map[string]int)
	serve := func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		if r.URL.Path == "/away" {
			http.Redirect(w, r, there, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, clip)
	}
	ours, inside := httptest.NewServer(http.HandlerFunc(serve)), httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(ours.Close)
	t.Cleanup(inside.Close)
	at, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	results := upstream.NewResults(client(t, nil))
	for name, tc := range map[string]struct {
		link, then string
		read       bool
	}{
		"own":                     {link: ours.URL + "/own", read: true},
		"own path":                {link: "/own", read: true},
		"another port":            {link: inside.URL + "/inside"},
		"a name":                  {link: "http://localhost:" + at.Port() + "/inside"},
		"IPv6":                    {link: "http://[::1]:" + at.Port() + "/inside"},
		"IPv4 in IPv6":            {link: "http://[::ffff:127.0.0.1]:" + at.Port() + "/inside"},
		"any":                     {link: "http://0.0.0.0:" + at.Port() + "/inside"},
		"the metadata of a cloud": {link: "http://169.254.169.254/inside"},
		"a private network":       {link: "http://10.0.0.1/inside"},
		"a redirect":              {link: "/away", then: inside.URL + "/inside"},
		"a redirect to a name":    {link: "/away", then: "http://localhost:" + at.Port() + "/inside"},
		"a redirect within":       {link: "/away", then: ours.URL + "/own", read: true},
	} {
		there = tc.then
		clear(asked)
		channel := providers.Channel{BaseURL: ours.URL}
		get, _, err := results.Link(t.Context(), channel, tc.link)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		video, err := results.Open(channel, get)
		if err == nil {
			_ = video.Body.Close()
		}
		fault, refused := errors.AsType[*providers.Fault](err)
		if tc.read != (err == nil) || refused && (fault.Blame != providers.BlameNone || !strings.Contains(fault.Message, "private")) ||
			asked["/inside"] > 0 {
			t.Errorf("%s: got %v, asked for %v", name, err, asked)
		}
		if channel.AllowPrivateResults = true; strings.Contains(tc.link+tc.then, "127.0.0.1:"+at.Port()+"/inside") {
			if video, err = results.Open(channel, get); err != nil || asked["/inside"] != 1 {
				t.Errorf("%s, allowed: %v", name, err)
				continue
			}
			_ = video.Body.Close()
		}
	}
}

// TestResultTypes: a result is what its first bytes say.
func TestResultTypes(t *testing.T) {
	t.Parallel()
	const said = "video/mp4; charset=hush"
	for name, tc := range map[string]struct{ head, want string }{
		"MP4":       {clip, "video/mp4"},
		"QuickTime": {"\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00", "video/quicktime"},
		"old":       {"\x00\x00\x10\x00moov\x00\x00\x00\x6cmvhd", "video/quicktime"},
		"WebM":      {"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\x82\x84webm", "video/webm"},
		"Matroska": {
			"\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x88matroska",
			"video/x-matroska",
		},
		"AVI":        {"RIFF\x00\x00\x10\x00AVI LIST", "video/x-msvideo"},
		"PNG":        {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "image/png"},
		"JPEG":       {"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"},
		"WebP":       {"RIFF\x24\x00\x00\x00WEBPVP8 ", "image/webp"},
		"GIF":        {"GIF89a\x01\x00\x01\x00", "image/gif"},
		"AVIF":       {"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00", "image/avif"},
		"HEIC":       {"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", ""},
		"sound":      {"\x00\x00\x00\x18ftypM4A \x00\x00\x00\x00", ""},
		"a page":     {"<!DOCTYPE html><html><script>alert(1)</script>", ""},
		"JSON":       {`{"error":{"message":"expired"}}`, ""},
		"SVG":        {`<svg xmlns="http://www.w3.org/2000/svg">`, ""},
		"nothing":    {"", ""},
		"one letter": {"G", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", said)
				_, _ = io.WriteString(w, tc.head)
			}))
			t.Cleanup(server.Close)
			results, channel := upstream.NewResults(client(t, nil)), providers.Channel{BaseURL: server.URL}
			get, own, err := results.Link(t.Context(), channel, "/1")
			if err != nil || !own {
				t.Fatal(own, err)
			}
			video, err := results.Open(channel, get)
			if tc.want == "" {
				if fault, ok := errors.AsType[*providers.Fault](err); !ok || fault.Kind != providers.Upstream {
					t.Errorf("got %+v, %v", video, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer video.Body.Close()
			if got, err := io.ReadAll(video.Body); err != nil || string(got) != tc.head || video.ContentType != tc.want ||
				video.Length != int64(len(tc.head)) {
				t.Errorf("got %q of type %q, length %d, %v, want %q", got, video.ContentType, video.Length, err, tc.want)
			}
		})
	}
}
