package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// module is the name in this module's go.mod.
const module = "modelrelay/dev"

// isModule reports whether dir is the root of this module.
func isModule(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // a fixed name below folders of our own
	return err == nil && bytes.Contains(text, []byte("module "+module+"\n"))
}

// repository returns the root of the checkout this program belongs to: the one it runs in, else the one it was
// compiled from.
func repository(home string) (string, error) {
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
	return "", errNoModule
}

// buildGateway compiles the gateway of the checkout at root into the file binary, with flags of go build. The go command prints
// what is wrong with the sources itself.
func buildGateway(ctx context.Context, root, binary string, e environment, flags ...string) error {
	args := append([]string{"build", "-o", binary}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/gateway")...) //nolint:gosec // all of them are ours
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off", "PWD="+root)
	cmd.Stdout, cmd.Stderr = e.stderr, e.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build the gateway: %w", err)
	}
	return nil
}
