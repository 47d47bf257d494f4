package compose_test

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// goCommand matches the commands of the Dockerfile that compile packages of this repository. go install builds MinIO from the
// network, for minutes, and is left out.
var goCommand = regexp.MustCompile(`\bgo (build|run) `)

// TestImageContext runs every go build and go run of the Dockerfile on exactly the files that its ignore file lets through:
// each stage sees only what it copies.
func TestImageContext(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles the gateway: left out with -short")
	}
	context := t.TempDir()
	for _, file := range contextFiles(t) {
		copyFile(t, filepath.Join(root, file), filepath.Join(context, file))
	}
	b := build{context: context, folder: t.TempDir(), stages: map[string]stage{}, defaults: map[string]string{}}
	for _, instruction := range instructions(t) {
		b.step(t, instruction)
	}
	if want := len(goCommand.FindAllString(strings.Join(instructions(t), "\n"), -1)); b.ran != want || want < 4 {
		t.Errorf("ran %d Go commands of %d: the Dockerfile was not understood", b.ran, want)
	}
	for _, name := range []string{
		"usr/local/bin/gateway", "usr/share/sbom/gateway.cdx.json", "usr/share/licenses/gateway/LICENSE",
		"usr/share/licenses/gateway/third-party.txt", "usr/share/licenses/gateway/LICENSE-rapidoc.txt",
	} {
		if info, err := os.Stat(b.path("gateway", "/"+name)); err != nil || info.Size() == 0 {
			t.Errorf("the gateway's image lacks %s: %v", name, err)
		}
	}
	out, err := exec.CommandContext(t.Context(), b.path("gateway", "/usr/local/bin/gateway"), "version").CombinedOutput()
	for _, name := range []string{"VERSION", "COMMIT"} {
		if err != nil || !strings.Contains(string(out), b.defaults[name]) {
			t.Errorf("gateway version: got %v, %s, want %s", err, out, b.defaults[name])
		}
	}
}

// contextFiles lists the files of the working tree that the ignore file lets through, as Docker selects them.
func contextFiles(t *testing.T) []string {
	t.Helper()
	patterns, err := ignorefile.ReadAll(strings.NewReader(text(t, "Dockerfile.dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		ignored, err := matcher.MatchesOrParentMatches(file)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && ignored && !slices.ContainsFunc(patterns, func(p string) bool { return strings.HasPrefix(p, "!"+file+"/") }):
			return fs.SkipDir
		case entry.Type().IsRegular() && !ignored:
			files = append(files, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// instructions are those of the Dockerfile, one a line, without comments and continuations.
func instructions(t *testing.T) []string {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^\s*#.*\n`).ReplaceAllString(text(t, "Dockerfile"), "")
	lines = strings.ReplaceAll(lines, "\\\n", " ")
	return slices.DeleteFunc(strings.Split(lines, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
}

// build runs the parts of a Dockerfile that concern this repository's files.
type build struct {
	context, folder string
	defaults        map[string]string // of the arguments before the first stage
	stages          map[string]stage
	now             string // the stage
	ran             int
}

type stage struct {
	workdir string
	env     []string // the arguments of the stage
	copied  int
	ran     bool
}

// path is where a path of a stage's image is on this machine.
func (b *build) path(stage, name string) string {
	return filepath.Join(b.folder, stage, filepath.FromSlash(name))
}

func (b *build) step(t *testing.T, instruction string) {
	t.Helper()
	fields := strings.Fields(instruction)
	s := b.stages[b.now]
	switch fields[0] {
	case "ARG":
		name, value, _ := strings.Cut(fields[1], "=")
		if b.now == "" {
			b.defaults[name] = cmp.Or(value, "of-the-test")
			return
		}
		s.env = append(s.env, name+"="+b.defaults[name])
	case "FROM":
		b.now = fields[3]
		s = b.stages[fields[1]] // empty for an image of a registry
		if s.copied > 0 {
			t.Fatalf("stage %s begins with the files of %s: this test does not copy them", b.now, fields[1])
		}
		s.env = slices.Clone(s.env)
	case "WORKDIR":
		s.workdir = fields[1]
	case "COPY":
		s.copied += b.copy(t, s, fields[1:])
	case "RUN":
		if goCommand.MatchString(instruction) {
			b.run(t, s, instruction)
			s.ran = true
			b.ran += len(goCommand.FindAllString(instruction, -1))
		}
	}
	b.stages[b.now] = s
}

// copy copies into the current stage what a COPY names, and returns the number of files. It skips files of a stage in which
// no Go command ran: they come from a registry's image.
func (b *build) copy(t *testing.T, s stage, args []string) int {
	t.Helper()
	from := b.context
	if name, ok := strings.CutPrefix(args[0], "--from="); ok {
		if !b.stages[name].ran {
			return 0
		}
		from, args = b.path(name, "/"), args[1:]
	}
	sources, target := args[:len(args)-1], args[len(args)-1]
	intoFolder := strings.HasSuffix(target, "/") || target == "."
	if !path.IsAbs(target) {
		target = path.Join("/", s.workdir, target)
	}
	copied := 0
	for _, source := range sources {
		at := filepath.Join(from, filepath.FromSlash(source))
		info, err := os.Stat(at)
		if err != nil {
			t.Fatalf("stage %s: COPY %s: %v", b.now, source, err)
		}
		if !info.IsDir() {
			name := target
			if intoFolder {
				name = path.Join(target, path.Base(source))
			}
			copyFile(t, at, b.path(b.now, name))
			copied++
			continue
		}
		err = filepath.WalkDir(at, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			file, err := filepath.Rel(at, name)
			if err != nil {
				return err
			}
			copyFile(t, name, filepath.Join(b.path(b.now, target), file))
			copied++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return copied
}

// run runs a command in the stage's folder; its absolute paths lead into the stage. Go's settings are this machine's, so
// that the build cache of the other tests is used.
func (b *build) run(t *testing.T, s stage, instruction string) {
	t.Helper()
	command := regexp.MustCompile(`^RUN|\s--mount=\S+`).ReplaceAllString(instruction, "")
	command = regexp.MustCompile(`(\s)/out/`).ReplaceAllString(command, "${1}"+b.path(b.now, "/out")+"/")
	for _, folder := range []string{s.workdir, "/out"} {
		if err := os.MkdirAll(b.path(b.now, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", command)
	cmd.Dir = b.path(b.now, s.workdir)
	cmd.Env = append(os.Environ(), s.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stage %s:%s: %v\n%s", b.now, command, err, out)
	}
}

// copyFile links a file where the system can, for the trees are large and nothing writes to them.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Link(from, to) == nil {
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, info.Mode().Perm()); err != nil {
		t.Fatal(err)
	}
}
