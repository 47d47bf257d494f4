package vendors_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"modelrelay/providers/vendors"
)

// TestPlaces: a video vendor is named in its two folders, in this package and in the table of the fakes. No other file that is not a test
// imports it or has its name as a text, so that a new vendor touches these places only. The command that copies a vendor names its model.
func TestPlaces(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	fakes, err := fs.ReadFile(root, "dev/upstream/vendors.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	places := map[string]bool{"providers/vendors": true, "dev/newvendor": true}
	for name, vendor := range vendors.New(http.DefaultClient) {
		for _, place := range []string{"providers/" + name, "dev/upstream/fake" + name} {
			places[place] = true
			if _, err := fs.Stat(root, place); err != nil {
				t.Errorf("vendor %s: %v", name, err)
			}
		}
		if !strings.Contains(string(fakes), "{fake"+name+".Serve, ") {
			t.Errorf("vendor %s is not in the table of the fakes", name)
		}
		// The others relay calls or have a wire that clients speak: they are formats as well.
		if vendor.Relay == nil && name != "generic" && name != "vendorc" {
			names = append(names, name)
		}
	}
	named := regexp.MustCompile(`(?:"|providers/|upstream/fake)(?:` + strings.Join(names, "|") + `)"`)
	err = fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (places[path] || path != "." && strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"), path == "dev/upstream/vendors.go":
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		if found := named.Find(text); found != nil {
			t.Errorf("%s names a vendor: %s", path, found)
		}
		return nil
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d video vendors, %v", len(names), err)
	}
}
