// Package archive stores objects in one bucket of an S3 store: it streams them in with bounded memory, reads them in pieces and signs links
// to them. It must not import Redis clients, vendors or HTTP formats, and does not interpret objects.
package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"

	"modelrelay/storage"
)

// MaxDocument bounds the documents of PutJSON and GetJSON, in bytes.
const MaxDocument = 8 << 20

// Store stores objects in one bucket of an S3 store. It is safe for concurrent use.
//
// Keys are paths of one or more segments: none empty, no "." or "..", at most 1,024 bytes, no control characters and no backslash. For
// other keys the error is ErrKey, without a request to the store.
type Store struct {
	core      *minio.Core
	public    *minio.Core // signs links; it sends no requests
	bucket    string
	region    string
	mayMake   bool               // the bucket may be created
	sse       encrypt.ServerSide // nil: the bucket's default
	sendMD5   bool
	transport *http.Transport
	stall     time.Duration
	slots     chan struct{} // one per buffer
	buffers   sync.Pool     // of *[partSize]byte
}

// Object is one entry of the archive.
type Object struct {
	Key         string    `json:"key"`
	Size        int64     `json:"size"`
	ContentType string    `json:"content_type,omitempty"` // not from List
	ETag        string    `json:"etag,omitempty"`         // without quotes
	SHA256      string    `json:"sha256,omitempty"`       // hex; from Put, and for objects up to 5 MiB from Stat and Open
	Modified    time.Time `json:"modified,omitzero"`      // zero from Put
}

// metaSHA256 is the metadata with the object's SHA-256, if that was known before the first byte was sent.
const metaSHA256 = "sha256"

// New returns a store. It does not connect. The caller closes it.
func New(opts Options) (*Store, error) {
	u, err := storeAddress(opts.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("archive endpoint: %w", err)
	}
	public, err := storeAddress(cmp.Or(opts.PublicEndpoint, opts.Endpoint))
	if err != nil {
		return nil, fmt.Errorf("archive public endpoint: %w", err)
	}
	if opts.Bucket == "" {
		return nil, errors.New("archive bucket is missing")
	}
	opts.Region = cmp.Or(opts.Region, "us-east-1")
	sse, err := serverSide(opts.Encryption)
	if err != nil {
		return nil, err
	}
	lookup, known := map[string]minio.BucketLookupType{
		"": minio.BucketLookupAuto, StyleAuto: minio.BucketLookupAuto, StylePath: minio.BucketLookupPath, StyleVirtual: minio.BucketLookupDNS,
	}[opts.Style]
	if !known {
		return nil, fmt.Errorf("archive style: %q is unknown", opts.Style)
	}
	s := &Store{
		bucket: opts.Bucket, mayMake: !opts.MayNotCreate, sse: sse, sendMD5: opts.ContentMD5,
		stall:  cmp.Or(opts.Stall, 20*time.Second),
		region: opts.Region,
		slots:  make(chan struct{}, max(2, cmp.Or(opts.Buffers, 12))),
		transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: 3 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   handshakeTimeout,
			ResponseHeaderTimeout: time.Minute,
			MaxIdleConns:          256,
			MaxIdleConnsPerHost:   64,
			IdleConnTimeout:       90 * time.Second,
			DisableCompression:    true, // objects are stored as they are
		},
	}
	inside := minio.Options{
		Creds:        newCredentials(opts),
		Secure:       u.Scheme == "https",
		Region:       opts.Region,
		BucketLookup: lookup,
		Transport:    s.transport,
		MaxRetries:   3,
	}
	if opts.TLS != nil {
		s.transport.DialTLSContext = storage.DialTLS(s.transport.DialContext, opts.TLS, handshakeTimeout)
	}
	if s.core, err = minio.NewCore(u.Host, &inside); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	outside := inside
	outside.Secure = public.Scheme == "https"
	if s.public, err = minio.NewCore(public.Host, &outside); err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	for _, core := range []*minio.Core{s.core, s.public} {
		core.SetS3EnableDualstack(false) // the SDK would replace the configured endpoint of AWS, which network rules and policies name
	}
	return s, nil
}

// Close closes idle connections. Open readers continue.
func (s *Store) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// EnsureBucket creates the bucket if it does not exist, unless Options.MayNotCreate is set.
func (s *Store) EnsureBucket(ctx context.Context) error {
	doing := fmt.Sprintf("find bucket %q", s.bucket)
	exists, err := s.core.BucketExists(ctx, s.bucket)
	switch {
	case err == nil && !exists && !s.mayMake:
		return fmt.Errorf("%s: %w: there is none, and archive.create_bucket is false", doing, storage.ErrUnavailable)
	case err == nil && !exists:
		doing = fmt.Sprintf("create bucket %q", s.bucket)
		err = s.core.MakeBucket(ctx, s.bucket, minio.MakeBucketOptions{Region: s.region})
		switch minio.ToErrorResponse(err).Code {
		case minio.BucketAlreadyOwnedByYou, minio.BucketAlreadyExists:
			err = nil
		case minio.AccessDenied:
			doing += " (create it by other means, or grant the right s3:CreateBucket)"
		}
	}
	return s3Error(ctx, doing, err)
}

// Ping checks the bucket, for at most two seconds. It returns storage.ErrUnavailable if there is no answer or no bucket.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	exists, err := s.core.BucketExists(ctx, s.bucket)
	if err == nil && !exists {
		return fmt.Errorf("ping archive: %w: no bucket %q", storage.ErrUnavailable, s.bucket)
	}
	return s3Error(ctx, "ping archive", err)
}

// Stat returns the description of an object, or storage.ErrNotFound.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	info, err := s.core.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return Object{}, s3Error(ctx, "stat "+key, err)
	}
	return objectOf(info), nil
}

// Delete removes an object. A missing object is not an error.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	err := s3Error(ctx, "delete "+key, s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}))
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

// DeletePrefix removes every object with a prefix that is not empty. After an error some may be gone; a repeat, also of none, is safe.
func (s *Store) DeletePrefix(ctx context.Context, prefix string) error {
	if err := CheckKey(strings.TrimSuffix(prefix, "/")); err != nil {
		return err
	}
	doing := "delete " + prefix + "*"
	var listing error
	results, err := s.core.RemoveObjectsWithIter(ctx, s.bucket, func(yield func(minio.ObjectInfo) bool) {
		for object, err := range s.List(ctx, prefix) {
			if err != nil {
				listing = err
				return
			}
			if !yield(minio.ObjectInfo{Key: object.Key}) {
				return
			}
		}
	}, minio.RemoveObjectsOptions{})
	if err != nil {
		return s3Error(ctx, doing, err)
	}
	var failed error
	for result := range results {
		if result.Err != nil && failed == nil {
			failed = s3Error(ctx, doing, result.Err)
		}
	}
	return cmp.Or(listing, failed, s3Error(ctx, doing, ctx.Err()))
}

// List yields the objects whose keys begin with the prefix, ordered by key. An error is the last thing it yields.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for info, err := range s.list(ctx, prefix, true) {
			if !yield(Object{Key: info.Key, Size: info.Size, ETag: info.ETag, Modified: info.LastModified}, err) {
				return
			}
		}
	}
}

// Folders yields the folders directly below the prefix; both end with a slash. An error is the last thing it yields.
func (s *Store) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for info, err := range s.list(ctx, prefix, false) {
			if err == nil && (!strings.HasSuffix(info.Key, "/") || info.Key == prefix) {
				continue
			}
			if !yield(info.Key, err) {
				return
			}
		}
	}
}

// list yields what is below the prefix: all objects, or the objects and folders directly below it.
func (s *Store) list(ctx context.Context, prefix string, all bool) iter.Seq2[minio.ObjectInfo, error] {
	return func(yield func(minio.ObjectInfo, error) bool) {
		doing := "list " + prefix + "*"
		if prefix != "" || !all {
			if err := CheckKey(strings.TrimSuffix(prefix, "/")); err != nil {
				yield(minio.ObjectInfo{}, err)
				return
			}
		}
		for info := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: all}) {
			if info.Err != nil {
				yield(minio.ObjectInfo{}, s3Error(ctx, doing, info.Err))
				return
			}
			if !yield(info, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(minio.ObjectInfo{}, s3Error(ctx, doing, err))
		}
	}
}

// PutJSON stores a document of at most MaxDocument bytes; for a larger one it returns ErrTooLarge.
func (s *Store) PutJSON(ctx context.Context, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	if len(text) > MaxDocument {
		return fmt.Errorf("put %s: %w: %d bytes", key, ErrTooLarge, len(text))
	}
	_, err = s.Put(ctx, key, bytes.NewReader(text), int64(len(text)), PutOptions{ContentType: "application/json"})
	return err
}

// GetJSON reads a document into v. storage.ErrNotFound: there is none. ErrTooLarge: it is above MaxDocument.
func (s *Store) GetJSON(ctx context.Context, key string, v any) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	text, size, err := s.read(ctx, key, MaxDocument)
	if err != nil {
		return s3Error(ctx, "get "+key, err)
	}
	if size > MaxDocument {
		return fmt.Errorf("get %s: %w: %d bytes", key, ErrTooLarge, size)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	return nil
}

// read returns the size of an object and at most so many of its bytes.
func (s *Store) read(ctx context.Context, key string, most int64) (content []byte, size int64, err error) {
	body, info, _, err := s.core.GetObject(ctx, s.bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, err
	}
	defer body.Close()
	content, err = io.ReadAll(io.LimitReader(body, most))
	return content, info.Size, err
}

// Presign returns a link at Options.PublicEndpoint that reads the object, which may not exist, for ttl, from a second to seven days.
func (s *Store) Presign(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	u, err := s.public.PresignedGetObject(ctx, s.bucket, key, ttl, nil)
	if err != nil {
		return "", s3Error(ctx, "presign "+key, err)
	}
	return u.String(), nil
}

func objectOf(info minio.ObjectInfo) Object {
	o := Object{Key: info.Key, Size: info.Size, ContentType: info.ContentType, ETag: info.ETag, Modified: info.LastModified}
	for name, value := range info.UserMetadata {
		if strings.EqualFold(name, metaSHA256) {
			o.SHA256 = value
		}
	}
	return o
}
