// Command dev is the launcher of the development stack: it compiles the command stack, shows the progress, and becomes that
// command. All arguments are the stack's, except newvendor, which the launcher does itself. It imports little, so that `go run` starts it
// in seconds.
package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"modelrelay/dev/checkout"
	"modelrelay/dev/newvendor"
	"modelrelay/dev/process"
)

func main() {
	if err := launch(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "dev:", err)
		os.Exit(1)
	}
}

// launch returns only if it fails or a signal ends it.
func launch(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if process.UnderGoRun() {
		var release context.CancelFunc
		ctx, release = process.FollowParent(ctx)
		defer release()
		args = slices.Concat([]string{"--go-run"}, args)
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working folder: %w", err)
	}
	root, err := checkout.Root(here)
	if err != nil {
		return err
	}
	if command := slices.Index(args, "newvendor"); command >= 0 {
		return newVendor(root, args[command+1:])
	}
	program, err := programFile(root)
	if err != nil {
		return err
	}
	if err := checkout.Build(ctx, filepath.Join(root, "dev"), "./stack", program, os.Stderr); ctx.Err() != nil {
		return nil
	} else if err != nil {
		return err
	}
	return syscall.Exec(program, slices.Concat([]string{program}, args), os.Environ()) //nolint:gosec // the program that was built
}

// newVendor adds the vendor whose name is the only argument to the checkout, and prints the files.
func newVendor(root string, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: go run -C dev . newvendor NAME")
	}
	files, err := newvendor.Write(root, args[0])
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, strings.Join(files, "\n"))
	return err
}

// programFile returns where the stack of the checkout at root is kept, in the user's cache.
func programFile(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the stack: %w", err)
	}
	hash := fnv.New32a() // a checkout has its own stack
	_, _ = hash.Write([]byte(root))
	folder := filepath.Join(cache, "modelrelay", fmt.Sprintf("%08x", hash.Sum32()))
	return filepath.Join(folder, "stack"), os.MkdirAll(folder, 0o700)
}
