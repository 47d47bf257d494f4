// Package s3 runs an S3 object store: one in this process that keeps its objects in files, or, as production may have it, MinIO. It
// imports nothing of the rest of the stack but loopback, process, settings and supervise.
package s3

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rclone/gofakes3"

	"modelrelay/dev/loopback"
	"modelrelay/dev/settings"
)

const (
	startTimeout = 30 * time.Second
	askInterval  = 20 * time.Millisecond
	// stopGrace is how long requests in progress may continue after the stop.
	stopGrace = 5 * time.Second
	// headerTimeout bounds the time to read a request's header.
	headerTimeout = 30 * time.Second
)

// Options are where the store listens, what it stores and which keys may use it.
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
	objects, err := openDisk(o.Data)
	if err != nil {
		return fmt.Errorf("open the store: %w", err)
	}
	if err := objects.CreateBucket(ctx, o.Bucket); err != nil && !gofakes3.HasErrorCode(err, gofakes3.ErrBucketAlreadyExists) {
		return fmt.Errorf("create bucket %s: %w", o.Bucket, err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen.String())
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{
		Handler: gofakes3.New(objects, gofakes3.WithV4Auth(map[string]string{o.AccessKey: o.SecretKey}),
			gofakes3.WithLogger(failures{o.Log})).Server(),
		ReadHeaderTimeout: headerTimeout,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	o.Ready(listen.String())
	if err := loopback.Serve(ctx, server, listener, stopGrace); err != nil {
		return fmt.Errorf("the store ended: %w", err)
	}
	return nil
}

// failures logs the failures of the store itself. What else the library logs has addresses with signatures in it.
type failures struct{ log *slog.Logger }

// Print implements [gofakes3.Logger].
func (f failures) Print(level gofakes3.LogLevel, v ...any) {
	if level == gofakes3.LogErr {
		f.log.Error("the store failed", "error", fmt.Sprint(v...))
	}
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
