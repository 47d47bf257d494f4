package main_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	apidocs "modelrelay/api/docs"
	main "modelrelay/cmd/gateway"
	"modelrelay/cmd/gateway/docs"
	"modelrelay/cmd/gateway/internal/buildinfo"
)

var update = flag.Bool("update", false, "write the generated pages of the manual")

// pageWords is the most words of a page that is written by hand: a reader finishes it in five minutes.
const pageWords = 1200

// TestManualGenerated compares the generated pages with the code.
func TestManualGenerated(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"cli": commandReference(t), "metrics": metricReference(t), "json-output": jsonReference(t),
	} {
		file := filepath.Join("docs", "reference", name+".md")
		if *update {
			if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != page {
			t.Errorf("%s differs from the code (%v): go test ./cmd/gateway -run TestManualGenerated -update", file, err)
		}
	}
}

// commandReference returns the page of commands and flags.
func commandReference(t *testing.T) string {
	t.Helper()
	parser, err := main.CommandLine()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Commands\n\nFor an operator or a developer. Every command and flag, generated from the code.\n\n" +
		"`--json` prints JSON. Exit codes: 0 done, 1 failed, 2 usage or configuration.\n")
	var write func(node *kong.Node)
	write = func(node *kong.Node) {
		if node.Type == kong.CommandNode && !node.Hidden && node.Leaf() {
			fmt.Fprintf(&b, "\n## gateway %s\n\n%s\n", commandPath(node), cell(node.Help))
			var rows []string
			for _, argument := range node.Positional {
				rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", argument.Summary(), cell(argument.Help)))
			}
			for _, flag := range node.Flags {
				if !flag.Hidden && flag.Name != "help" {
					rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", flag.Summary(), cell(quoteValues(flag.Help, flag.Enum))))
				}
			}
			if len(rows) > 0 {
				b.WriteString("\n| argument | meaning |\n|---|---|\n" + strings.Join(rows, ""))
			}
		}
		for _, child := range node.Children {
			write(child)
		}
	}
	write(parser.Model.Node)
	return b.String()
}

// commandPath returns the words of a command after the program's name.
func commandPath(node *kong.Node) string {
	if node.Parent == nil || node.Parent.Type == kong.ApplicationNode {
		return node.Name
	}
	return commandPath(node.Parent) + " " + node.Name
}

// quoteValues returns help with the values of an enum as code.
func quoteValues(help, enum string) string {
	for value := range strings.SplitSeq(enum, ",") {
		if value != "" {
			help = regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).ReplaceAllString(help, "`"+value+"`")
		}
	}
	return help
}

// cell returns text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// metricReference returns the page of metrics, from the instruments that the package makes.
func metricReference(t *testing.T) string {
	t.Helper()
	made := regexp.MustCompile(`in\.(seconds|amounts|counter|sum|gauge|seen)\("([^"]+)"(?:,\s+"([^"]*)")?,\s+"([^"]+)"`)
	kinds := map[string][2]string{
		"seconds": {"_seconds", "histogram"}, "amounts": {"", "histogram"}, "counter": {"_total", "counter"},
		"sum": {"_total", "counter"}, "gauge": {"", "gauge"}, "seen": {"_total", "counter"},
	}
	files, err := filepath.Glob(filepath.Join("internal", "metrics", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{"| `gateway_build_info` | gauge | Always 1; the labels are the version, the commit and the version of Go. |\n"}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made.FindAllStringSubmatch(string(source), -1) {
			kind := kinds[m[1]]
			if m[3] == "By" {
				kind[0] = "_bytes" + kind[0]
			}
			rows = append(rows, fmt.Sprintf("| `%s%s` | %s | %s |\n", strings.ReplaceAll(m[2], ".", "_"), kind[0], kind[1], cell(m[4])))
		}
	}
	if len(rows) < 30 {
		t.Fatalf("%d metrics were found: the expression is wrong", len(rows))
	}
	slices.Sort(rows)
	return "# Metrics\n\nFor an operator. Every metric of the gateway at `metrics.listen`, generated from the code. " +
		"The endpoint also has `temporal_*`, `go_*` and `process_*`.\n\n" +
		"| metric | kind | meaning |\n|---|---|---|\n" + strings.Join(rows, "")
}

// TestManualPages checks each page: the index has it, its links and anchors hold, it is short, and it ends with a proof.
func TestManualPages(t *testing.T) {
	t.Parallel()
	sources, anchors := map[string][]byte{}, map[string][]string{}
	err := fs.WalkDir(docs.Pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		sources[name], err = docs.Pages.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string][]string{}
	for name, source := range sources {
		document := apidocs.Markdown().Parser().Parse(text.NewReader(source))
		_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n := node.(type) {
			case *ast.Heading:
				if id, ok := n.AttributeString("id"); ok && entering {
					anchors[name] = append(anchors[name], string(id.([]byte)))
				}
			case *ast.Link:
				if entering && !strings.Contains(string(n.Destination), "://") {
					targets[name] = append(targets[name], string(n.Destination))
				}
			}
			return ast.WalkContinue, nil
		})
	}
	var listed []string
	for name, links := range targets {
		for _, link := range links {
			target, fragment, _ := strings.Cut(link, "#")
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if name == "index.md" {
				listed = append(listed, file)
			}
			if strings.HasPrefix(file, "../") { // a document of the repository
				if _, err := os.Stat(filepath.Join("docs", filepath.FromSlash(file))); err != nil {
					t.Errorf("%s links to %s: %v", name, link, err)
				}
			} else if _, ok := sources[file]; !ok {
				t.Errorf("%s links to %s, which is not a page", name, link)
			} else if fragment != "" && !slices.Contains(anchors[file], fragment) {
				t.Errorf("%s links to %s: %s has no such heading", name, link, file)
			}
		}
	}
	for name, source := range sources {
		if name == "index.md" {
			continue
		}
		if !slices.Contains(listed, name) {
			t.Errorf("index.md has no link to %s", name)
		}
		if path.Dir(name) == "reference" || path.Dir(name) == "." {
			continue
		}
		if words := len(bytes.Fields(source)); words > pageWords {
			t.Errorf("%s has %d words, want at most %d", name, words, pageWords)
		}
		if !bytes.Contains(source, []byte("\n## The proof\n")) || !bytes.Contains(source, []byte("\nFor a")) {
			t.Errorf("%s does not begin with its readers, or does not end with a proof", name)
		}
	}
}

// TestManualConfigurations checks each whole configuration file of the manual.
func TestManualConfigurations(t *testing.T) {
	t.Parallel()
	page, err := docs.Pages.ReadFile("operate/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("operate/install.md has no configuration")
	}
	example = strings.Replace(example, "127.0.0.1:7233", "127.0.0.1:1", 1) // no Temporal of this machine
	env := map[string]string{
		"S3_ACCESS_KEY": "a", "S3_SECRET_KEY": "b", "FIRST_TOKEN": "sk-first", "OPENAI_API_KEY": "sk-up",
		"GATEWAY_ADMIN_KEY": "an-admin-key-of-32-characters-ab",
	}
	stdout, stderr, code := run(t, env, "config", "check", "--config", writeFile(t, "gateway.yaml", example))
	if code != 0 || !strings.Contains(stdout, "first") || !strings.Contains(stdout, "https://api.openai.com/v1") {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
}

// TestDocsCommand prints a page, and refuses one that does not exist.
func TestDocsCommand(t *testing.T) {
	t.Parallel()
	if stdout, stderr, code := run(t, nil, "docs", "use/python"); code != 0 || !strings.HasPrefix(stdout, "# Python\n") {
		t.Errorf("code %d: %.40s %s", code, stdout, stderr)
	}
	if stdout, _, code := run(t, nil, "docs"); code != 0 || !strings.Contains(stdout, "(use/python.md)") {
		t.Errorf("code %d: %.40s", code, stdout)
	}
	if _, stderr, code := run(t, nil, "docs", "../secret"); code != 2 || !strings.Contains(stderr, "no page") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestDirectDependencies compares the page of the manual with the direct requirements of go.mod and with what the product imports.
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
	page, err := docs.Pages.ReadFile("reference/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-C", repository, "-deps",
		"-f", `{{with .Module}}{{if .Main}}{{join $.Imports "\n"}}{{end}}{{end}}`, "./cmd/gateway").Output()
	if err != nil {
		t.Fatal(err)
	}
	product, tests, _ := strings.Cut(string(page), "Only tests import these")
	for name, table := range map[string]string{"the product": product, "tests": tests} {
		var got, own []string
		for _, row := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\| \\S.* \\|$").FindAllStringSubmatch(table, -1) {
			got = append(got, row[1])
		}
		for _, module := range want {
			imported := slices.ContainsFunc(strings.Fields(string(imports)), func(path string) bool {
				return path == module || strings.HasPrefix(path, module+"/")
			})
			if imported == (name == "the product") {
				own = append(own, module)
			}
		}
		slices.Sort(got)
		slices.Sort(own)
		if !slices.Equal(got, own) {
			t.Errorf("the table of %s has these modules:\n%s\n\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(own, "\n"))
		}
	}
}

// TestChanges: the newest entry of the changes is that of this version.
func TestChanges(t *testing.T) {
	t.Parallel()
	page, err := docs.Pages.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^## (\S+)`).FindStringSubmatch(string(page))
	if want := buildinfo.Read().Version; m == nil || m[1] != want {
		t.Errorf("got entry %v, want %s", m, want)
	}
}
