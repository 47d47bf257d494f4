package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Binaries are the programs that a stack runs.
type Binaries struct{ Dev, Gateway string }

// Bin are those that Build made, once for all tests.
var Bin Binaries

// Build makes the binaries of all stacks in a directory, from the repository at root.
func Build(ctx context.Context, root, dir string) error {
	Bin = Binaries{Dev: filepath.Join(dir, "dev"), Gateway: filepath.Join(dir, "gateway")}
	for _, step := range [][]string{{filepath.Join(root, "dev"), Bin.Dev, "."}, {root, Bin.Gateway, "./cmd/gateway"}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", step[1], step[2])
		cmd.Dir = step[0]
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", step[2], err, out)
		}
	}
	return nil
}
