// Package newvendor writes the first files of a new video vendor: a copy of a small vendor under the new name, and its rows in the
// tables. The copy compiles and passes the conformance suite. The contributor then replaces the wire facts of the model.
//
// It must not import any package of the stack.
package newvendor

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// model is the vendor that is copied, products the beginning of the names of its models.
const model, products = "zhipu", "cogvideox"

var (
	validName = regexp.MustCompile(`^[a-z][a-z0-9]*$`)
	// facts are the lines of comments and of recorded answers that name the documents of the model.
	sources = regexp.MustCompile(`(?m)^Source: .*$`)
	facts   = regexp.MustCompile(`(?m)(docs\.bigmodel\.cn|docs\.z\.ai)[^\n]*(\n// docs\.z\.ai[^\n]*|\n// \(generate-video[^\n]*)?`)
	address = regexp.MustCompile(`"https://open\.bigmodel\.cn/[^"]*"`)
	abroad  = regexp.MustCompile("; that outside China is [^\n]*|; `https://api\\.z\\.ai/\\S*` outside China")
	title   = regexp.MustCompile(`Zhipu \(Z\.ai\)(: CogVideoX| CogVideoX, and the models that the platform sells on)?`)
)

// table is a file that lists the vendors.
type table struct {
	file string
	// row matches what the file has of the model, one entry for each row. Copies come after the model's rows; gofmt and the
	// tests of the tables do not require an order.
	rows []*regexp.Regexp
}

// tables returns the files with a row for each vendor.
func tables() []table {
	return []table{
		{"providers/vendors/vendors.go", []*regexp.Regexp{
			regexp.MustCompile(`(?m)^\t"modelrelay/providers/zhipu"\n`), regexp.MustCompile(`(?ms)^\t\t"zhipu": \{.*?^\t\t\},\n`),
		}},
		{"providers/vendors/pace_test.go", []*regexp.Regexp{regexp.MustCompile(`(?m) "zhipu": \{[^}]*\},`)}},
		{"dev/upstream/vendors.go", []*regexp.Regexp{
			regexp.MustCompile(`(?m)^\t"modelrelay/dev/upstream/fakezhipu"\n`), regexp.MustCompile(`(?m)^\t\t\{fakezhipu\.Serve, .*\n`),
		}},
		{"cmd/gateway/docs/reference/vendors.md", []*regexp.Regexp{regexp.MustCompile("(?m)^\\| `zhipu` \\|.*\n")}},
		{"cmd/gateway/docs/reference/video-vendors.md", []*regexp.Regexp{regexp.MustCompile("(?m)^\\| `zhipu` \\|.*\n")}},
	}
}

// Write adds the vendor called name to the checkout at root. It returns the files that it made or changed, by their paths from root.
// It changes nothing if the name is not a lower-case Go identifier, or a vendor has it.
func Write(root, name string) ([]string, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("%q is not a name of a vendor: use lower-case letters and digits", name)
	}
	files := map[string][]byte{}
	for _, folder := range []string{"providers/" + model, "dev/upstream/fake" + model} {
		to := strings.Replace(folder, model, name, 1)
		if _, err := os.Stat(filepath.Join(root, to)); !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the folder %s exists", to)
		}
		err := fs.WalkDir(os.DirFS(filepath.Join(root, folder)), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(root, folder, path)) //nolint:gosec // of the checkout
			files[to+"/"+strings.ReplaceAll(path, model, name)] = renamed(text, name)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("copy %s: %w", folder, err)
		}
	}
	for _, t := range tables() {
		text, err := os.ReadFile(filepath.Join(root, t.file)) //nolint:gosec // of the checkout
		if err != nil {
			return nil, err
		}
		for _, row := range t.rows {
			at := row.FindIndex(text)
			if at == nil {
				return nil, fmt.Errorf("%s has no row of %s", t.file, model)
			}
			text = slices.Concat(text[:at[1]], renamed(text[at[0]:at[1]], name), text[at[1]:])
		}
		files[t.file] = text
	}
	return write(root, files)
}

// renamed returns text with the model's name replaced. Its documents and its address become places to fill in.
func renamed(text []byte, name string) []byte {
	for _, change := range []struct {
		from *regexp.Regexp
		to   string
	}{
		{sources, "Source: FILL IN"},
		{facts, "FILL IN the vendor's pages."},
		{address, `"https://api.` + name + `.example"`},
		{abroad, "."},
		{title, name},
	} {
		text = change.from.ReplaceAll(text, []byte(change.to))
	}
	text = bytes.ReplaceAll(text, []byte(model), []byte(name))
	return bytes.ReplaceAll(text, []byte(products), []byte(name))
}

// write writes the files and returns their names in order. Go files are formatted, which also sorts their imports.
func write(root string, files map[string][]byte) ([]string, error) {
	var names []string
	for name, text := range files {
		if filepath.Ext(name) == ".go" {
			formatted, err := format.Source(text)
			if err != nil {
				return nil, fmt.Errorf("format %s: %w", name, err)
			}
			text = formatted
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}
