// Package checkout finds the checkout of the repository that a program of this module belongs to, and compiles programs
// from it. It imports only the standard library: the launcher of the development stack has to be ready in seconds.
package checkout

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// module is the name in this module's go.mod.
const module = "modelrelay/dev"

// ErrMissing means that no checkout was found.
var ErrMissing = errors.New("the sources of the gateway are not here: run this from a checkout with `go run -C dev`")

// isModule reports whether dir is the root of this module.
func isModule(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // a fixed name below folders of our own
	return err == nil && bytes.Contains(text, []byte("module "+module+"\n"))
}

// Root returns the root of the checkout that contains home, the working folder, or the source this program was compiled
// from: the first of them that is in one. Without a checkout the error is ErrMissing.
func Root(home string) (string, error) {
	starts := []string{home}
	if here, err := os.Getwd(); err == nil {
		starts = append(starts, here)
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		starts = append(starts, filepath.Dir(file))
	}
	for _, start := range starts {
		for dir := start; filepath.IsAbs(dir); dir = filepath.Dir(dir) {
			if isModule(filepath.Join(dir, "dev")) {
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", ErrMissing
}

// CallerFolder returns the folder in which the user typed the command. `go run -C dev` runs a program in the module's
// folder and leaves the caller's folder in PWD.
func CallerFolder() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	if pwd := os.Getenv("PWD"); filepath.IsAbs(pwd) && isModule(here) {
		return pwd, nil
	}
	return here, nil
}
