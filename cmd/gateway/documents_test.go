package main_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// repository is its root folder, seen from this package.
const repository = "../.."

// tree is the repository as the tests of its documents see it: without dependencies and what git keeps.
type tree struct {
	paths []string // of files and folders, with slashes, from the root
	texts map[string]string
}

// readTree reads the files whose names match.
func readTree(t *testing.T, match func(name string) bool) tree {
	t.Helper()
	found := tree{texts: map[string]string{}}
	err := filepath.WalkDir(repository, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == ".git" || name == "node_modules") {
			return fs.SkipDir
		}
		name, err := filepath.Rel(repository, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		found.paths = append(found.paths, name)
		if entry.IsDir() || !match(name) {
			return nil
		}
		text, err := os.ReadFile(file)
		found.texts[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (r tree) has(name string) bool { return slices.Contains(r.paths, path.Clean(name)) }

// knows reports whether name, as a file in folder may cite it, is there: from that folder, from the root, or, of a name
// that has no folder or ends in one, anywhere.
func (r tree) knows(folder, name string) bool {
	return r.has(path.Join(folder, name)) || r.has(name) ||
		slices.ContainsFunc(r.paths, func(p string) bool { return strings.HasSuffix(p, "/"+name) })
}

func document(name string) bool {
	return path.Ext(name) == ".md" && !strings.Contains(name, "testdata/")
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quoted   = regexp.MustCompile("`([^`\n]+)`")
	fileName = regexp.MustCompile(`^\.?[\w][\w./-]*$`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unslug   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	markdown = regexp.MustCompile(`[\w./:-]*[\w-]\.md\b`)
	comments = regexp.MustCompile(`//.*`)
	source   = regexp.MustCompile(`(?:^|[^\w./-])(\w+\.go)\b`) // one with a folder may be another repository's
)

// TestDocuments holds that what the documents link to and name is in the repository.
func TestDocuments(t *testing.T) {
	t.Parallel()
	all := readTree(t, document)
	if len(all.texts) < 8 {
		t.Fatalf("%d documents were found: the walk is wrong", len(all.texts))
	}
	for name, text := range all.texts {
		folder := path.Dir(name)
		prose := fenced.ReplaceAllString(text, "")
		for _, m := range link.FindAllStringSubmatch(prose, -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(folder, target)
			}
			if !all.has(file) {
				t.Errorf("%s links to %s, which is not there", name, m[1])
			} else if fragment != "" && !slices.Contains(anchors(all.texts[file]), fragment) {
				t.Errorf("%s links to %s: %s has no such heading", name, m[1], file)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(prose, -1) {
			if file := m[1]; fileName.MatchString(file) && looksLikeOurs(all, folder, file) && !all.knows(folder, file) {
				t.Errorf("%s names %s, which is not there", name, file)
			}
		}
	}
}

// looksLikeOurs reports whether a quoted word is meant to be a file or folder of the repository.
func looksLikeOurs(all tree, folder, name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".yml", ".yaml", ".sh":
		return true
	}
	first, _, within := strings.Cut(name, "/")
	return within && (all.has(first) || all.has(path.Join(folder, first)))
}

// anchors are the fragments that a document's headings have.
func anchors(text string) []string {
	var found []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := unslug.ReplaceAllString(strings.ToLower(m[1]), "")
		found = append(found, strings.ReplaceAll(strings.TrimSpace(slug), " ", "-"))
	}
	return found
}

// TestDocumentLengths: a newcomer reads each document to its end. Only generated pages and the list of changes are longer.
func TestDocumentLengths(t *testing.T) {
	t.Parallel()
	const readmeWords, folderWords = 700, 400
	for name, text := range readTree(t, func(name string) bool { return path.Ext(name) == ".md" }).texts {
		most := pageWords
		switch {
		case name == "README.md":
			most = readmeWords
		case path.Base(name) == "README.md":
			most = folderWords
		case slices.Contains(generated(), name):
			continue
		}
		if words := len(strings.Fields(text)); words > most {
			t.Errorf("%s has %d words, want at most %d", name, words, most)
		}
	}
}

// generated returns the documents that a test writes.
func generated() []string {
	return []string{"cmd/gateway/docs/reference/config.md", "cmd/gateway/docs/reference/cli.md", "cmd/gateway/docs/reference/metrics.md"}
}

// TestCitedFiles holds that comments and documents cite only documents and sources that a reader of the repository has.
func TestCitedFiles(t *testing.T) {
	t.Parallel()
	all := readTree(t, func(name string) bool {
		return slices.Contains([]string{".go", ".md", ".yml", ".yaml", ".sh"}, path.Ext(name)) || strings.HasPrefix(name, ".ci/")
	})
	for name, text := range all.texts {
		var files []string
		for _, m := range markdown.FindAllString(text, -1) {
			if !strings.Contains(m, "://") {
				files = append(files, m)
			}
		}
		if path.Ext(name) == ".go" {
			for _, comment := range comments.FindAllString(text, -1) {
				for _, m := range source.FindAllStringSubmatch(comment, -1) {
					files = append(files, m[1])
				}
			}
		}
		for _, file := range files {
			if !all.knows(path.Dir(name), file) {
				t.Errorf("%s cites %s, which is not in the repository", name, file)
			}
		}
	}
}
