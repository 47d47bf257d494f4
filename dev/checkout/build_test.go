package checkout_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"modelrelay/dev/checkout"
)

// writeModule writes the module of a program with a package. No build cache has one of them.
func writeModule(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":       "module example\n\ngo 1.26\n",
		"main.go":      fmt.Sprintf("package main\n\nimport \"example/word\"\n\n// %s\nfunc main() { print(word.Text) }\n", rand.Text()),
		"word/word.go": fmt.Sprintf("package word\n\n// %s\nconst Text = %s\n", rand.Text(), text),
	} {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestBuild(t *testing.T) {
	t.Parallel()
	folder, binary := writeModule(t, `"hello"`), filepath.Join(t.TempDir(), "hello")
	for _, want := range []string{"compiling hello: 0 of 1 packages\ncompiling hello: 1 of 1 packages\nlinking hello\n", ""} {
		var out bytes.Buffer
		if err := checkout.Build(t.Context(), folder, ".", binary, &out); err != nil || out.String() != want {
			t.Errorf("got %v, %q, want %q", err, out.String(), want)
		}
		if said, err := exec.CommandContext(t.Context(), binary).CombinedOutput(); err != nil || string(said) != "hello" {
			t.Errorf("the program: got %q, %v", said, err)
		}
	}
}

func TestBuildShowsErrors(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	err := checkout.Build(t.Context(), writeModule(t, "missing"), ".", filepath.Join(t.TempDir(), "hello"), &out)
	if err == nil || !strings.Contains(out.String(), "undefined: missing") {
		t.Errorf("got %v, %q, want the compiler's message", err, out.String())
	}
}
