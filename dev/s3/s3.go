// Package s3 runs an S3 object store: one in this process that keeps its objects as plain files, or, as production may have it,
// MinIO. One per process: the library has global state and changes the working directory. It imports nothing of the rest of the
// stack but loopback, process, settings and supervise.
package s3

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"modelrelay/dev/loopback"
	"modelrelay/dev/settings"
)

const (
	startTimeout = 30 * time.Second
	askInterval  = 20 * time.Millisecond
	// copyThreshold is the size above which an object cannot be copied in one call, as at AWS.
	copyThreshold = 5 << 30
)

// Options says where the store listens, what it keeps and who may use it.
type Options struct {
	// Listen is the address; port 0 picks a free one.
	Listen string
	// Data is the folder of the objects, an absolute path. It must exist.
	Data string
	// AccessKey and SecretKey are the only credentials it accepts.
	AccessKey, SecretKey string
	// Bucket is created where it is missing.
	Bucket string
	// Ready is called once, with the address, when the bucket can be used.
	Ready func(addr string)
	// Log receives what happens.
	Log *slog.Logger
}

// Run serves until ctx ends, then stops in order and returns nil. An object whose upload was answered survives the
// death of the process.
func Run(ctx context.Context, o Options) error {
	listen, err := loopback.Address(o.Listen)
	if err != nil {
		return fmt.Errorf("listen address: %w", err)
	}
	addr := listen.String()
	objects, metadata := filepath.Join(o.Data, "objects"), filepath.Join(o.Data, "metadata")
	if err := os.MkdirAll(objects, 0o700); err != nil {
		return fmt.Errorf("create the folder of the objects: %w", err)
	}
	attributes, sidecar, err := metadataStore(objects, metadata)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, attributes, posix.PosixOpts{
		NewDirPerm: 0o755, Concurrency: 64, CopyObjectThreshold: copyThreshold, SideCarDir: sidecar,
	})
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	end := make(chan error, 1)
	go func() {
		end <- embedgw.RunVersityGW(serving, backend, &embedgw.Config{
			RootUserAccess: o.AccessKey, RootUserSecret: o.SecretKey, Region: settings.Region, Ports: []string{addr},
			MaxConnections: 4096, MaxRequests: 1024, MultipartMaxParts: 10000,
			Quiet: true, KeepAlive: true, HealthPath: "/healthz",
		})
	}()
	made := make(chan error, 1)
	go func() { made <- ensureBucket(serving, addr, o) }()
	for {
		select {
		case err := <-made:
			made = nil
			switch {
			case ctx.Err() != nil:
			case err != nil:
				stop()
				return errors.Join(err, <-end)
			default:
				o.Ready(addr)
			}
		case err := <-end:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the store ended: %w", err)
		}
	}
}

// metadataStore keeps an object's metadata in extended attributes, which are set together with the file, or in files
// beside it where the file system has none. Whichever a folder began with it stays with.
func metadataStore(objects, metadata string) (store meta.MetadataStorer, sidecar string, err error) {
	_, kept := os.Stat(metadata)
	if xattr := (meta.XattrMeta{}); os.IsNotExist(kept) && xattr.Test(objects) == nil {
		return xattr, "", nil
	}
	if err := os.MkdirAll(metadata, 0o700); err != nil {
		return nil, "", fmt.Errorf("create the folder of the metadata: %w", err)
	}
	files, err := meta.NewSideCar(metadata)
	if err != nil {
		return nil, "", fmt.Errorf("open the metadata: %w", err)
	}
	return files, metadata, nil
}

// ensureBucket returns when the bucket is there, waiting for the store to answer.
func ensureBucket(ctx context.Context, addr string, o Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := minio.New(addr, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Region: settings.Region, MaxRetries: 1,
	})
	if err != nil {
		return fmt.Errorf("make a client of the store: %w", err)
	}
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		found, err := c.BucketExists(ctx, o.Bucket)
		if err == nil && !found {
			err = c.MakeBucket(ctx, o.Bucket, minio.MakeBucketOptions{Region: settings.Region})
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("create bucket %s: %w", o.Bucket, err)
		case <-tick.C:
		}
	}
}
