package buildinfo_test

import (
	"encoding/json"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"modelrelay/cmd/gateway/internal/buildinfo"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := buildinfo.Read()
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(got.Version) || got.Go != runtime.Version() {
		t.Errorf("got %+v", got)
	}
	if want := "modelrelay/" + got.Version; got.Agent() != want {
		t.Errorf("got agent %s, want %s", got.Agent(), want)
	}
}

func TestReadFromCheckout(t *testing.T) {
	t.Parallel()
	const revision, date = "0123456789abcdef0123456789abcdef01234567", "2026-11-26T01:02:03Z"
	version := buildinfo.Read().Version
	for name, tc := range map[string]struct {
		recorded *debug.BuildInfo
		want     buildinfo.Info
	}{
		"nothing recorded": {nil, buildinfo.Info{Version: version}},
		"no checkout":      {&debug.BuildInfo{GoVersion: "go1.26.8"}, buildinfo.Info{Version: version, Go: "go1.26.8"}},
		"clean checkout": {
			&debug.BuildInfo{Settings: settings("vcs.revision", revision, "vcs.time", date, "vcs.modified", "false")},
			buildinfo.Info{Version: version, Commit: revision, Date: date},
		},
		"changed checkout": {
			&debug.BuildInfo{Settings: settings("vcs.modified", "true", "vcs.time", date, "vcs.revision", revision)},
			buildinfo.Info{Version: version, Commit: revision + "-dirty", Date: date},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := buildinfo.ReadFrom(tc.recorded); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// settings makes build settings of keys and values.
func settings(pairs ...string) (list []debug.BuildSetting) {
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, debug.BuildSetting{Key: pair[0], Value: pair[1]})
	}
	return list
}

// TestLinker: the linker sets version and commit by these names. It ignores names that it does not find.
func TestLinker(t *testing.T) {
	t.Parallel()
	const variables = "-X modelrelay/cmd/gateway/internal/buildinfo."
	out, err := exec.CommandContext(t.Context(), "go", "run", "-ldflags", variables+"version=9.8.7 "+variables+"commit=abc123",
		"./testdata/print").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got buildinfo.Info
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "9.8.7" || got.Commit != "abc123" {
		t.Errorf("got %+v", got)
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	got := buildinfo.PartsOf(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "modelrelay"}, Deps: []*debug.Module{
		{Path: "github.com/go-chi/chi/v5", Version: "v5.5.0"},
		{Path: "example.com/other", Version: "v1.0.0"},
		{Path: "example.com/replaced", Version: "v1.0.0", Replace: &debug.Module{Path: "golang.org/x/net", Version: "v0.60.0"}},
	}})
	want := []buildinfo.Part{
		{"modelrelay", buildinfo.Read().Version, "Apache-2.0"},
		{"std", "1.26.8", "BSD-3-Clause"},
		{"rapidoc", "9.3.8", "BSD-3-Clause AND MIT"},
		{"github.com/go-chi/chi/v5", "v5.5.0", "MIT"},
		{"example.com/other", "v1.0.0", "unknown"},
		{"golang.org/x/net", "v0.60.0", "BSD-3-Clause"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := buildinfo.PartsOf(nil); len(got) != 3 {
		t.Errorf("without recorded modules: got %+v", got)
	}
}
