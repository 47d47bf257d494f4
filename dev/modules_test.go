package main_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSharedModules compares the versions of the modules that several go.mod files of the repository require. A module that is
// required in two versions is compiled twice.
func TestSharedModules(t *testing.T) {
	t.Parallel()
	requiredBy := map[string]map[string][]string{} // module, version, go.mod files
	for _, file := range moduleFiles(t) {
		out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file).Output()
		if err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		var module struct {
			Require []struct{ Path, Version string }
		}
		if err := json.Unmarshal(out, &module); err != nil {
			t.Fatalf("read %s: %v", file, err)
		}
		for _, r := range module.Require {
			if requiredBy[r.Path] == nil {
				requiredBy[r.Path] = map[string][]string{}
			}
			requiredBy[r.Path][r.Version] = append(requiredBy[r.Path][r.Version], file)
		}
	}
	shared := 0
	for _, path := range slices.Sorted(maps.Keys(requiredBy)) {
		versions := requiredBy[path]
		if len(versions) > 1 {
			t.Errorf("%s: got versions %v, want one", path, versions)
		}
		for _, files := range versions {
			if len(files) > 1 {
				shared++
			}
		}
	}
	if shared == 0 {
		t.Error("got no module that two go.mod files require, want some")
	}
}

// moduleFiles are the go.mod files of the repository.
func moduleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (entry.Name() == "node_modules" || entry.Name() == "testdata" ||
			strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.Name() == "go.mod":
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join("..", "go.mod"); !slices.Contains(files, want) {
		t.Fatalf("got %v, want %s among them", files, want)
	}
	return files
}
