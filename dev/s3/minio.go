package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"modelrelay/dev/loopback"
	"modelrelay/dev/process"
	"modelrelay/dev/settings"
	"modelrelay/dev/supervise"
)

// MinIOUnit is the name of MinIO's process.
const MinIOUnit = "minio"

// minioGrace is what MinIO gets to end what it answers.
const minioGrace = 10 * time.Second

// minioModule is compiled from source: its licence, the AGPL, allows it as a separate program, not as a part of this one.
const minioModule = "github.com/minio/minio"

// MinIOBinary is where BuildMinIO puts the program, in the user's cache.
func MinIOBinary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for MinIO: %w", err)
	}
	return filepath.Join(cache, "modelrelay", "minio-"+settings.MinIOVersion), nil
}

// BuildMinIO compiles MinIO unless that was done, which takes some minutes once. out gets what the go command says.
func BuildMinIO(ctx context.Context, out io.Writer) (err error) {
	binary, err := MinIOBinary()
	if err != nil {
		return err
	}
	folder := binary + ".build"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("create a folder for MinIO: %w", err)
	}
	unlock, err := waitLock(ctx, folder) // others wait for the first and find its result
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if _, err := os.Stat(binary); err == nil {
		return nil
	}
	fmt.Fprintf(out, "building MinIO, which takes some minutes the first time: go install %s@%s\n", minioModule, settings.MinIOVersion)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", minioModule+"@"+settings.MinIOVersion) //nolint:gosec // a version of ours
	cmd.Dir = folder                                                                                                       // no module of ours
	cmd.Env = append(os.Environ(), "GOBIN="+folder, "GOFLAGS=", "GOWORK=off", "PWD="+folder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build MinIO: %w", err)
	}
	if err := os.Rename(filepath.Join(folder, "minio"), binary); err != nil {
		return fmt.Errorf("put MinIO in place: %w", err)
	}
	return nil
}

// waitLock locks the folder as soon as no other process has.
func waitLock(ctx context.Context, folder string) (unlock func() error, err error) {
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		unlock, err := process.Lock(folder)
		if err == nil {
			return unlock, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

// RunMinIO is Run with MinIO, a process of its own that is started again when it ends. unit is called with its name and id at
// each start.
func RunMinIO(ctx context.Context, o Options, unit func(name string, pid int)) (err error) {
	if err := BuildMinIO(ctx, os.Stderr); err != nil {
		return err
	}
	binary, err := MinIOBinary()
	if err != nil {
		return err
	}
	listen, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	objects := filepath.Join(o.Data, "minio")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return fmt.Errorf("create the folder of the objects: %w", err)
	}
	group := supervise.New(ctx, o.Log, unit)
	defer func() {
		if err = errors.Join(err, group.Stop()); ctx.Err() != nil {
			err = nil // asked to end while still starting
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = group.Start(starting, supervise.Unit{
		Name: MinIOUnit, Grace: minioGrace,
		Command: func() *exec.Cmd {
			cmd := exec.Command(binary, "server", "--quiet", "--address", listen.String(), objects) //nolint:gosec,noctx // the program that was built; the group ends it
			cmd.Env = append(os.Environ(), "MINIO_ROOT_USER="+o.AccessKey, "MINIO_ROOT_PASSWORD="+o.SecretKey,
				"MINIO_REGION="+settings.Region, "MINIO_BROWSER=off", "MINIO_UPDATE=off", "MINIO_PROMETHEUS_AUTH_TYPE=public")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			return cmd
		},
		Ready: func(ctx context.Context) error { return ensureBucket(ctx, listen.String(), o) },
	})
	if err != nil {
		return err
	}
	o.Ready(listen.String())
	<-ctx.Done()
	return nil
}
