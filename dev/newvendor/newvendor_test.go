package newvendor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"modelrelay/dev/newvendor"
)

// checkout copies what the vendors and their fakes need into a folder.
func checkout(t *testing.T) string {
	t.Helper()
	const from = "../.."
	root := t.TempDir()
	for _, folder := range []string{"providers", "dev/upstream", "dev/loopback", "cmd/gateway/docs/reference"} {
		if err := os.CopyFS(filepath.Join(root, folder), os.DirFS(filepath.Join(from, folder))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"go.mod", "go.sum", "dev/go.mod", "dev/go.sum"} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestWrite makes a vendor: it compiles, passes the conformance suite, and is in the tables.
func TestWrite(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	files, err := newvendor.Write(root, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"providers/acme/video.go", "providers/acme/testdata/video/done.http", "dev/upstream/fakeacme/fakeacme.go",
		"providers/vendors/vendors.go",
	} {
		if !slices.Contains(files, want) {
			t.Errorf("got %q, want %s among them", files, want)
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		isTable := !strings.Contains(file, "acme")
		if left := strings.Contains(strings.ToLower(string(text)), "zhipu"); left != isTable {
			t.Errorf("%s names the model: %v", file, left)
		}
		if isTable && !strings.Contains(string(text), "acme") {
			t.Errorf("%s has no row of the vendor", file)
		}
	}
	for folder, args := range map[string][]string{
		".":   {"test", "-vet=off", "./providers/acme", "./providers/vendors"},
		"dev": {"build", "./upstream/..."},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = filepath.Join(root, folder)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if _, err := newvendor.Write(root, "acme"); err == nil {
		t.Error("a second vendor of the name was written")
	}
}

// TestWriteRefuses changes nothing for a name that is not one.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "Acme", "a-b", "../x"} {
		if files, err := newvendor.Write(t.TempDir(), name); err == nil {
			t.Errorf("%q: wrote %q", name, files)
		}
	}
}
