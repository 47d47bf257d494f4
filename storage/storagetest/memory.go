package storagetest

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // as S3 makes its ETags
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// MemoryArchive is an archive in memory for tests of other packages, with the methods of archive.Store. It passes the same conformance
// suite. It is safe for concurrent use.
type MemoryArchive struct {
	// Fail, if set before use, may return an error for an operation ("put", "open", "stat", "delete", "list", "presign", "ping") on a key,
	// for example storage.ErrUnavailable.
	Fail func(operation, key string) error

	// Uploads maps the keys of incomplete uploads to their start. Set before use.
	Uploads map[string]time.Time

	mu      sync.Mutex
	objects map[string]memoryObject
}

type memoryObject struct {
	object archive.Object
	bytes  []byte
}

// NewMemoryArchive returns an empty archive.
func NewMemoryArchive() *MemoryArchive {
	return &MemoryArchive{objects: make(map[string]memoryObject)}
}

func (m *MemoryArchive) begin(ctx context.Context, operation, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m.Fail != nil {
		if err := m.Fail(operation, key); err != nil {
			return fmt.Errorf("%s %s: %w", operation, key, err)
		}
	}
	return nil
}

// AbortUploads is archive.Store.AbortUploads.
func (m *MemoryArchive) AbortUploads(ctx context.Context, prefix string, before time.Time) (aborted int, err error) {
	if err := m.begin(ctx, "uploads", prefix); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, at := range m.Uploads {
		if strings.HasPrefix(key, prefix) && at.Before(before) {
			delete(m.Uploads, key)
			aborted++
		}
	}
	return aborted, nil
}

// Put is archive.Store.Put.
func (m *MemoryArchive) Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
	if err := archive.CheckKey(key); err != nil {
		return archive.Object{}, err
	}
	if size < -1 {
		return archive.Object{}, fmt.Errorf("put %s: size %d", key, size)
	}
	if err := m.begin(ctx, "put", key); err != nil {
		return archive.Object{}, err
	}
	var body bytes.Buffer
	buf := make([]byte, 64<<10)
	for {
		if err := ctx.Err(); err != nil {
			return archive.Object{}, err
		}
		n, err := r.Read(buf)
		body.Write(buf[:n])
		if opts.Progress != nil {
			opts.Progress(int64(body.Len()))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return archive.Object{}, fmt.Errorf("put %s: %w: %w", key, archive.ErrSource, err)
		}
	}
	if size >= 0 && int64(body.Len()) != size {
		return archive.Object{}, fmt.Errorf("put %s: %w: %d instead of %d bytes", key, archive.ErrLength, body.Len(), size)
	}
	sum, tag := sha256.Sum256(body.Bytes()), md5.Sum(body.Bytes()) //nolint:gosec // as S3 makes its ETags
	object := archive.Object{
		Key: key, Size: int64(body.Len()), ContentType: opts.ContentType, ETag: hex.EncodeToString(tag[:]),
		SHA256: hex.EncodeToString(sum[:]),
	}
	if object.ContentType == "" {
		object.ContentType = "application/octet-stream"
	}
	kept := object
	kept.Modified = time.Now().UTC().Truncate(time.Second)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.objects[key] = memoryObject{kept, body.Bytes()}
	return object, nil
}

func (m *MemoryArchive) find(ctx context.Context, operation, key string) (memoryObject, error) {
	if err := archive.CheckKey(key); err != nil {
		return memoryObject{}, err
	}
	if err := m.begin(ctx, operation, key); err != nil {
		return memoryObject{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.objects[key]
	if !ok {
		return memoryObject{}, fmt.Errorf("%s %s: %w", operation, key, storage.ErrNotFound)
	}
	return found, nil
}

// Open is archive.Store.Open.
func (m *MemoryArchive) Open(ctx context.Context, key string) (*archive.Reader, error) {
	found, err := m.find(ctx, "open", key)
	if err != nil {
		return nil, err
	}
	return archive.NewReader(found.object, func(offset, length int64) (io.ReadCloser, error) {
		now, err := m.find(ctx, "open", key)
		if err != nil {
			return nil, err
		}
		if now.object.ETag != found.object.ETag {
			return nil, fmt.Errorf("read %s: %w", key, archive.ErrModified)
		}
		return io.NopCloser(bytes.NewReader(now.bytes[offset : offset+length])), nil
	}), nil
}

// Stat is archive.Store.Stat.
func (m *MemoryArchive) Stat(ctx context.Context, key string) (archive.Object, error) {
	found, err := m.find(ctx, "stat", key)
	return found.object, err
}

// Delete is archive.Store.Delete.
func (m *MemoryArchive) Delete(ctx context.Context, key string) error {
	if err := archive.CheckKey(key); err != nil {
		return err
	}
	if err := m.begin(ctx, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

// DeletePrefix is archive.Store.DeletePrefix.
func (m *MemoryArchive) DeletePrefix(ctx context.Context, prefix string) error {
	if err := archive.CheckKey(strings.TrimSuffix(prefix, "/")); err != nil {
		return err
	}
	if err := m.begin(ctx, "delete", prefix); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.objects, func(key string, _ memoryObject) bool { return strings.HasPrefix(key, prefix) })
	return nil
}

// Claim is archive.Store.Claim.
func (m *MemoryArchive) Claim(ctx context.Context, key, owner string) (string, error) {
	if err := archive.CheckKey(key); err != nil {
		return "", err
	}
	if owner == "" {
		return "", fmt.Errorf("claim %s: no owner", key)
	}
	if err := m.begin(ctx, "put", key); err != nil {
		return "", err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.objects[key]; ok {
		return string(found.bytes), nil
	}
	m.objects[key] = memoryObject{
		archive.Object{Key: key, Size: int64(len(owner)), Modified: time.Now().UTC().Truncate(time.Second)},
		[]byte(owner),
	}
	return owner, nil
}

// Folders is archive.Store.Folders.
func (m *MemoryArchive) Folders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last := ""
		for object, err := range m.List(ctx, prefix) {
			if err != nil {
				yield("", err)
				return
			}
			name, _, found := strings.Cut(strings.TrimPrefix(object.Key, prefix), "/")
			if folder := prefix + name + "/"; found && folder != last {
				if last = folder; !yield(folder, nil) {
					return
				}
			}
		}
	}
}

// List is archive.Store.List.
func (m *MemoryArchive) List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		if prefix != "" {
			if err := archive.CheckKey(strings.TrimSuffix(prefix, "/")); err != nil {
				yield(archive.Object{}, err)
				return
			}
		}
		if err := m.begin(ctx, "list", prefix); err != nil {
			yield(archive.Object{}, err)
			return
		}
		for _, key := range m.Keys() {
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			m.mu.Lock()
			found, ok := m.objects[key]
			m.mu.Unlock()
			o := found.object
			if ok && !yield(archive.Object{Key: o.Key, Size: o.Size, ETag: o.ETag, Modified: o.Modified}, nil) {
				return
			}
		}
	}
}

// Keys returns all keys, sorted.
func (m *MemoryArchive) Keys() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.objects))
}

// PutJSON is archive.Store.PutJSON.
func (m *MemoryArchive) PutJSON(ctx context.Context, key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	if len(text) > archive.MaxDocument {
		return fmt.Errorf("put %s: %w: %d bytes", key, archive.ErrTooLarge, len(text))
	}
	_, err = m.Put(ctx, key, bytes.NewReader(text), int64(len(text)), archive.PutOptions{ContentType: "application/json"})
	return err
}

// GetJSON is archive.Store.GetJSON.
func (m *MemoryArchive) GetJSON(ctx context.Context, key string, v any) error {
	found, err := m.find(ctx, "open", key)
	switch {
	case err != nil:
		return err
	case len(found.bytes) > archive.MaxDocument:
		return fmt.Errorf("get %s: %w: %d bytes", key, archive.ErrTooLarge, len(found.bytes))
	}
	if err := json.Unmarshal(found.bytes, v); err != nil {
		return fmt.Errorf("get %s: %w", key, err)
	}
	return nil
}

// Presign returns a link with the key that cannot be opened.
func (m *MemoryArchive) Presign(ctx context.Context, key string, ttl time.Duration) (string, error) {
	if err := archive.CheckKey(key); err != nil {
		return "", err
	}
	if err := m.begin(ctx, "presign", key); err != nil {
		return "", err
	}
	if ttl < time.Second || ttl > 7*24*time.Hour {
		return "", fmt.Errorf("presign %s: ttl %v", key, ttl)
	}
	return "memory:///" + (&url.URL{Path: key}).EscapedPath(), nil
}

// EnsureBucket does nothing.
func (m *MemoryArchive) EnsureBucket(ctx context.Context) error { return m.begin(ctx, "ping", "") }

// Ping does nothing.
func (m *MemoryArchive) Ping(ctx context.Context) error { return m.begin(ctx, "ping", "") }
