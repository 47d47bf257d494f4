package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"modelrelay/cmd/gateway/internal/buildinfo"
)

// TestVersionCommand: the command prints the build as text and as JSON.
func TestVersionCommand(t *testing.T) {
	t.Parallel()
	want := buildinfo.Read()
	stdout, stderr, code := run(t, nil, "version")
	for _, part := range []string{want.Version, want.Commit, want.Date, runtime.Version()} {
		if code != 0 || !strings.Contains(stdout, part) {
			t.Errorf("code %d: %q is not in %s%s", code, part, stdout, stderr)
		}
	}
	stdout, stderr, code = run(t, nil, "version", "--json")
	if got := decode[buildinfo.Info](t, stdout); code != 0 || got != want || want.Version == "" {
		t.Errorf("code %d: got %+v, want %+v: %s", code, got, want, stderr)
	}
}

// TestLicensesCommand: the command lists what this binary contains, and knows the licence of every module that the program
// links. dev/licenses has the test of the licences themselves.
func TestLicensesCommand(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := run(t, nil, "version", "--licenses", "--json")
	if code != 0 {
		t.Fatalf("code %d: %s", code, stderr)
	}
	licenses := make(map[string]string)
	for _, part := range decode[[]buildinfo.Part](t, stdout) {
		licenses[part.Name] = part.License
	}
	for name, want := range map[string]string{
		"modelrelay": "Apache-2.0", "std": "BSD-3-Clause", "rapidoc": "BSD-3-Clause AND MIT", "github.com/hashicorp/golang-lru/v2": "MPL-2.0",
	} {
		if licenses[name] != want {
			t.Errorf("%s: got licence %q, want %q", name, licenses[name], want)
		}
	}
	linked, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(linked)) {
		if licenses[name] == "" || licenses[name] == "unknown" {
			t.Errorf("%s is linked and has the licence %q: go run -C dev ./licenses > cmd/gateway/internal/buildinfo/licenses.txt", name,
				licenses[name])
		}
	}
	stdout, _, _ = run(t, nil, "version", "--licenses")
	if !strings.Contains(stdout, "go.temporal.io/sdk") || !strings.Contains(stdout, "Apache-2.0") {
		t.Errorf("got %s", stdout)
	}
}

// TestVersionIsShown: everything that names the version names the program's own.
func TestVersionIsShown(t *testing.T) {
	t.Parallel()
	build := buildinfo.Read()
	var agent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
	}))
	t.Cleanup(server.Close)
	s := serve(t, withMetrics(configFor(redisAway, server.URL, "sk-demo", "")), "--worker=false")
	if _, _, err := s.chat(t.Context(), newClient(t), "sk-demo"); err != nil {
		t.Fatal(err)
	}
	if got, want := agent.Load(), "modelrelay/"+build.Version; got != want {
		t.Errorf("the upstream got the agent %v, want %s", got, want)
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if _, body := s.get(path); decode[struct{ Version string }](t, body).Version != build.Version {
			t.Errorf("%s: got %s, want version %s", path, body, build.Version)
		}
	}
	type document struct {
		Info struct {
			Version string
			Gateway string `json:"x-gateway-version"`
			License struct{ Identifier string }
		}
	}
	_, served := s.get("/openapi.json")
	printed, _, _ := run(t, nil, "openapi", "--format", "json")
	for name, text := range map[string]string{"served": served, "printed": printed} {
		if got := decode[document](t, text).Info; got.Gateway != build.Version || got.Version != "1.0.0" ||
			got.License.Identifier != "Apache-2.0" {
			t.Errorf("the %s document: got %+v", name, got)
		}
	}
	s.scrape().want(t, 1, "gateway_build_info", `version="`+build.Version+`"`, `commit="`+build.Commit+`"`,
		`go_version="`+runtime.Version()+`"`)
	_, _, _ = run(t, nil, "video", "get", "video_x", "--token", "t", "--url", server.URL)
	if got, want := agent.Load(), "modelrelay-cli/"+build.Version; got != want {
		t.Errorf("the command sent the agent %v, want %s", got, want)
	}
}
