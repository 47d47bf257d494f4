// Command licenses prints the licences of everything that the product's binary may contain: the product itself, Go's library,
// the linked modules of every supported system, and the embedded files of others. A line has a name and an SPDX expression,
// with a tab between. cmd/gateway/internal/buildinfo embeds the output:
//
//	go run -C dev ./licenses > cmd/gateway/internal/buildinfo/licenses.txt
//
// With -texts it prints the texts of these licences and the notices that Apache-2.0 asks to pass on, for a file next to the binary.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

func main() {
	texts := flag.Bool("texts", false, "print the texts of the licences")
	flag.Parse()
	parts, err := read(context.Background(), "..")
	if err == nil {
		err = write(os.Stdout, parts, *texts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// part is something that the product contains, with the files of its licences.
type part struct {
	name  string
	files []file
}

type file struct {
	path, text string
	matches    []licensecheck.Match
}

// systems are those that the product is built for. Each links some modules that the others do not.
func systems() []string { return []string{"darwin", "linux", "windows"} }

// licenseFile matches the names of files with the text of a licence.
var licenseFile = regexp.MustCompile(`(?i)^(un)?licen[sc]e\b|^copying\b`)

// noticeFile matches the names of files with the attributions that Apache-2.0 asks to pass on. They are not licences.
var noticeFile = regexp.MustCompile(`(?i)^notice\b`)

// covered is how many percent of a file the texts of known licences must make up. The index of Go packages has the same limit.
const covered = 75

// read finds the parts of the product in the folder root, sorted by name. It is an error if a part has no known licence, or one
// whose conditions a program under Apache-2.0 does not meet.
func read(ctx context.Context, root string) ([]part, error) {
	found, err := modules(ctx, root)
	if err != nil {
		return nil, err
	}
	goRoot, err := run(ctx, root, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if found["std"], err = licenseFiles(strings.TrimSpace(goRoot)); err != nil {
		return nil, err
	}
	docs := filepath.Join(root, "api", "docs", "rapidoc")
	version, err := rapidocVersion(filepath.Join(docs, "rapidoc-min.js"))
	if err != nil {
		return nil, err
	}
	found["rapidoc@"+version] = []string{filepath.Join(docs, "LICENSE-rapidoc.txt")}
	var parts []part
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(found)) {
		p, err := newPart(name, found[name])
		parts, errs = append(parts, p), append(errs, err)
	}
	return parts, errors.Join(errs...)
}

// modules finds the modules that the product links, each with the files of its licences: those in the folders of the linked
// packages and in the folders above them, up to the module's.
func modules(ctx context.Context, root string) (map[string][]string, error) {
	found := make(map[string][]string)
	seen := make(map[string]bool)
	for _, system := range systems() {
		// .Module.Dir is that of the replacement, where there is one.
		list, err := run(ctx, root, []string{"GOOS=" + system, "CGO_ENABLED=0"}, "list", "-deps",
			"-f", "{{with .Module}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}", "./cmd/gateway")
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(list) {
			columns := strings.Split(strings.TrimSpace(line), "\t")
			if len(columns) != 3 {
				continue // a package of Go's library
			}
			name, top, dir := columns[0], columns[1], columns[2]
			for ; !seen[dir] && len(dir) >= len(top); dir = filepath.Dir(dir) {
				seen[dir] = true
				files, err := licenseFiles(dir)
				if err != nil {
					return nil, err
				}
				found[name] = append(found[name], files...)
			}
		}
	}
	return found, nil
}

// licenseFiles finds the licences and notices in a folder.
func licenseFiles(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.Type().IsRegular() && (licenseFile.MatchString(entry.Name()) || noticeFile.MatchString(entry.Name())) &&
			filepath.Ext(entry.Name()) != ".go" {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}

// rapidocVersion reads the version in the first line of the embedded script.
func rapidocVersion(path string) (string, error) {
	script, err := os.ReadFile(path) //nolint:gosec // a file of the repository
	if err != nil {
		return "", err
	}
	line, _, _ := bytes.Cut(script, []byte("\n"))
	m := regexp.MustCompile(`RapiDoc (\S+)`).FindSubmatch(line)
	if m == nil {
		return "", fmt.Errorf("%s does not begin with its version", path)
	}
	return string(m[1]), nil
}

// newPart classifies the licences of a part. An error explains which of them the product must not have.
func newPart(name string, paths []string) (part, error) {
	p := part{name: name}
	var errs []error
	licensed := false
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of a module or of the repository
		if err != nil {
			return p, err
		}
		if noticeFile.MatchString(filepath.Base(path)) {
			p.files = append(p.files, file{path: path, text: string(text)})
			continue
		}
		licensed = true
		scan := licensecheck.Scan(text)
		p.files = append(p.files, file{path, string(text), scan.Match})
		if len(scan.Match) == 0 || scan.Percent < covered {
			errs = append(errs, fmt.Errorf("%s: the licence in %s is not known (%.0f%%)", name, filepath.Base(path), scan.Percent))
		}
		for _, match := range scan.Match {
			if !slices.Contains(allowed(), match.ID) {
				errs = append(errs, fmt.Errorf("%s: %s has the licence %s, which is not one of %s", name, filepath.Base(path), match.ID, allowed()))
			}
		}
	}
	if !licensed {
		errs = append(errs, fmt.Errorf("%s has no licence", name))
	}
	return p, errors.Join(errs...)
}

// allowed are the licences that ask for no more than a notice, and MPL-2.0, whose conditions end at its own files.
func allowed() []string {
	return []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense", "Zlib"}
}

// license is the SPDX expression of all licences of a part.
func (p part) license() string {
	var ids []string
	if strings.HasPrefix(p.name, "rapidoc@") {
		ids = append(ids, "BSD-3-Clause") // of libraries in its script, by api/docs/rapidoc/rapidoc-min.js.LICENSE.txt
	}
	for _, file := range p.files {
		for _, match := range file.matches {
			ids = append(ids, match.ID)
		}
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND ")
}

func write(out io.Writer, parts []part, texts bool) error {
	var text bytes.Buffer
	for _, p := range parts {
		if !texts {
			fmt.Fprintf(&text, "%s\t%s\n", p.name, p.license())
			continue
		}
		for _, file := range p.files {
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", p.name, filepath.Base(file.path), strings.TrimSpace(file.text))
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// run runs the go command in the product's module.
func run(ctx context.Context, root string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // constant commands
	cmd.Dir, cmd.Env = root, append(append(os.Environ(), "GOWORK=off"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, stderr.Bytes())
	}
	return string(out), nil
}
