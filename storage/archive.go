package storage

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// ArchiveOptions name the S3 store.
type ArchiveOptions struct {
	Endpoint  string // http(s)://host:port, no path
	Bucket    string
	AccessKey string
	SecretKey string
	Region    string // empty: us-east-1
}

// PutOptions may be left zero.
type PutOptions struct {
	ContentType string            // empty: application/octet-stream
	Meta        map[string]string // stays with the object; keys in lower case
	Progress    func(n int64)     // called now and then with the bytes stored so far, from one goroutine at a time
}

// Object is one entry of the archive.
type Object struct {
	Key         string
	Size        int64
	ContentType string
	ETag        string // without quotes
	SHA256      string // hex; known after Put, and from Stat and Open where the store was told before the bytes
	Modified    time.Time
	Meta        map[string]string
}

// Archive keeps objects in one bucket of an S3 store. Safe for concurrent use.
type Archive struct{}

// OpenArchive makes an archive. It does not connect.
func OpenArchive(opts ArchiveOptions) (*Archive, error) { return nil, errors.ErrUnsupported }

// EnsureBucket makes the bucket where there is none.
func (a *Archive) EnsureBucket(ctx context.Context) error { return errors.ErrUnsupported }

// Ping asks the store for the bucket.
func (a *Archive) Ping(ctx context.Context) error { return errors.ErrUnsupported }

// Put stores what r has until its end; size is exact, or -1 when unknown.
func (a *Archive) Put(ctx context.Context, key string, r io.Reader, size int64, opts PutOptions) (Object, error) {
	return Object{}, errors.ErrUnsupported
}

// Open reads an object from any position. The caller closes the reader.
func (a *Archive) Open(ctx context.Context, key string) (*Reader, error) {
	return nil, errors.ErrUnsupported
}

// Stat describes an object.
func (a *Archive) Stat(ctx context.Context, key string) (Object, error) {
	return Object{}, errors.ErrUnsupported
}

// Delete removes an object. That it was not there is no error.
func (a *Archive) Delete(ctx context.Context, key string) error { return errors.ErrUnsupported }

// DeletePrefix removes every object below a prefix.
func (a *Archive) DeletePrefix(ctx context.Context, prefix string) error {
	return errors.ErrUnsupported
}

// List yields the objects below a prefix in the order of their keys.
func (a *Archive) List(ctx context.Context, prefix string) iter.Seq2[Object, error] { return nil }

// PutJSON stores a small document, at most MaxDocument bytes.
func (a *Archive) PutJSON(ctx context.Context, key string, v any) error {
	return errors.ErrUnsupported
}

// GetJSON reads a small document into v.
func (a *Archive) GetJSON(ctx context.Context, key string, v any) error {
	return errors.ErrUnsupported
}

// Presign makes a link that reads the object without a credential for ttl.
func (a *Archive) Presign(ctx context.Context, key string, ttl time.Duration) (string, error) {
	return "", errors.ErrUnsupported
}

// Reader reads one object. It is an io.ReadSeekCloser for one goroutine.
type Reader struct{}

// Object describes what is read.
func (r *Reader) Object() Object { return Object{} }

func (r *Reader) Read(p []byte) (int, error) { return 0, errors.ErrUnsupported }

// Seek moves the position.
func (r *Reader) Seek(offset int64, whence int) (int64, error) { return 0, errors.ErrUnsupported }

// Close ends the reading.
func (r *Reader) Close() error { return nil }
