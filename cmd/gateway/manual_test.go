package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelrelay/cmd/gateway/internal/buildinfo"
)

// TestDirectDependencies compares the page of the manual with the direct requirements of go.mod.
func TestDirectDependencies(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join(repository, "go.mod")).Output()
	if err != nil {
		t.Fatal(err)
	}
	var module struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, required := range module.Require {
		if !required.Indirect {
			want = append(want, required.Path)
		}
	}
	page, err := os.ReadFile(filepath.Join("docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| \\S.* \\|$").FindAllStringSubmatch(string(page), -1) {
		got = append(got, row[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/dependencies.md has %d modules, go.mod requires %d directly:\n%s\n\n%s", len(got), len(want), strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestChanges: the newest entry of the changes is that of this version.
func TestChanges(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("docs", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(string(text))
	if want := buildinfo.Read().Version; m == nil || m[1] != want {
		t.Errorf("got entry %v, want %s", m, want)
	}
}
