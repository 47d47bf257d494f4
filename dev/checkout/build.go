package checkout

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildGrace is how long the go command may take to end after an interrupt.
const buildGrace = 10 * time.Second

// Build compiles a package of the module in folder into the file binary. It writes to out how many of the packages that are not
// yet in the build cache it has begun, and the messages of the go command. If the cache has all of them, it writes nothing.
func Build(ctx context.Context, folder, pkg, binary string, out io.Writer) error {
	m := newMeter(out, filepath.Base(binary))
	defer m.end()
	// Package main is never in the cache: its line in the output of the build means that the linker is next.
	listed, err := runGo(ctx, folder, m.download, "list", "-deps", "-f", `{{if and .Stale (ne .Name "main")}}{{.ImportPath}}{{end}}`, pkg)
	if err != nil {
		return fmt.Errorf("list the packages of %s: %w", pkg, err)
	}
	m.expect(strings.Fields(string(listed)))
	// Without DWARF the linker takes half of the time.
	if _, err := runGo(ctx, folder, m.compile, "build", "-v", "-ldflags=-w", "-o", binary, pkg); err != nil {
		return fmt.Errorf("build %s: %w", pkg, err)
	}
	return nil
}

// runGo runs the go command in folder. line is called with each line of its stderr.
func runGo(ctx context.Context, folder string, line func(string), args ...string) (stdout []byte, err error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // the caller names a package of this repository
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = buildGrace
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+folder)
	var output bytes.Buffer
	cmd.Stdout = &output
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	scan := bufio.NewScanner(stderr)
	for scan.Scan() {
		line(scan.Text())
	}
	err = errors.Join(scan.Err(), cmd.Wait())
	return output.Bytes(), err
}

// meter shows the progress of a build: on a terminal in one line that changes, elsewhere in a line for each tenth.
type meter struct {
	out      io.Writer
	name     string // of the program
	terminal bool

	downloads int
	expected  map[string]bool // import paths that the go command has not printed yet
	total     int
	tenths    int
	shown     bool // the cursor is in the line that changes
}

// downloadStep is the number of downloads between two lines.
const downloadStep = 50

func newMeter(out io.Writer, name string) *meter {
	m := &meter{out: out, name: name}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		m.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return m
}

// download gets a line of `go list`.
func (m *meter) download(line string) {
	if !strings.HasPrefix(line, "go: downloading ") {
		m.message(line)
		return
	}
	m.downloads++
	if m.terminal || m.downloads%downloadStep == 1 {
		m.progress(fmt.Sprintf("downloading the modules of %s: %d", m.name, m.downloads))
	}
}

// expect begins the build of packages.
func (m *meter) expect(packages []string) {
	m.expected, m.total = map[string]bool{}, len(packages)
	for _, pkg := range packages {
		m.expected[pkg] = true
	}
	if m.total > 0 {
		m.progress(fmt.Sprintf("compiling %s: 0 of %d packages", m.name, m.total))
	}
}

// compile gets a line of `go build -v`: the import path of a package whose turn it is, or a message.
func (m *meter) compile(line string) {
	switch {
	case m.expected[line]:
		delete(m.expected, line)
		done := m.total - len(m.expected)
		if tenths := 10 * done / m.total; m.terminal || tenths > m.tenths {
			m.tenths = tenths
			m.progress(fmt.Sprintf("compiling %s: %d of %d packages", m.name, done, m.total))
		}
	case strings.Contains(line, " ") || strings.HasPrefix(line, "#"):
		m.message(line)
	case m.total > 0:
		m.progress("linking " + m.name)
	}
}

func (m *meter) progress(text string) {
	if !m.terminal {
		fmt.Fprintln(m.out, text)
		return
	}
	fmt.Fprintf(m.out, "\r\x1b[K%s", text)
	m.shown = true
}

func (m *meter) message(line string) {
	m.end()
	fmt.Fprintln(m.out, line)
}

// end leaves the line that changes.
func (m *meter) end() {
	if m.shown {
		fmt.Fprintln(m.out)
	}
	m.shown = false
}
