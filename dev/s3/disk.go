package s3

import (
	"context"
	"crypto/md5" //nolint:gosec // S3's ETags are MD5 sums
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/tidwall/btree"
)

// disk keeps objects in a folder and an index of them in memory. Each object is one file: its bytes, then its record in JSON, then
// the length of the record. A file is complete before it gets its name, so an object that was answered survives the death of the
// process, and no half of one does. Uploads in parts that were not completed end with the process.
type disk struct {
	buckets, incoming string // folders

	mu    sync.RWMutex
	index map[string]*bucket
}

type bucket struct {
	created time.Time
	objects btree.Map[string, *record]
}

// record describes an object.
type record struct {
	Key      string
	Size     int64
	MD5      []byte // of the bytes, or of the sums of the parts
	Modified time.Time
	Meta     map[string]string // HTTP headers
}

// recordLength is the size of the number that ends a file.
const recordLength = 8

// openDisk reads the index of the objects in folder, which must exist. It removes what an earlier process had not completed.
func openDisk(folder string) (*disk, error) {
	d := &disk{buckets: filepath.Join(folder, "buckets"), incoming: filepath.Join(folder, "incoming"), index: map[string]*bucket{}}
	if err := os.RemoveAll(d.incoming); err != nil {
		return nil, err
	}
	for _, dir := range []string{d.buckets, d.incoming} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	buckets, err := os.ReadDir(d.buckets)
	if err != nil {
		return nil, err
	}
	for _, entry := range buckets {
		if d.index[entry.Name()], err = readBucket(filepath.Join(d.buckets, entry.Name())); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func readBucket(dir string) (*bucket, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	b := &bucket{created: info.ModTime()}
	for _, file := range files {
		r, err := readRecord(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		b.objects.Set(r.Key, r)
	}
	return b, nil
}

func readRecord(path string) (*record, error) {
	file, err := os.Open(path) //nolint:gosec // a file of ours
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var length [recordLength]byte
	end := info.Size() - recordLength
	if _, err := file.ReadAt(length[:], end); err != nil {
		return nil, err
	}
	text := make([]byte, min(end, int64(binary.BigEndian.Uint64(length[:]))))
	if _, err := file.ReadAt(text, end-int64(len(text))); err != nil {
		return nil, err
	}
	r := new(record)
	return r, json.Unmarshal(text, r)
}

// path returns the file of an object. Any key is a name of a file this way.
func (d *disk) path(bucket, key string) string {
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(d.buckets, bucket, hex.EncodeToString(sum[:]))
}

// find returns the record of an object. The caller holds the lock.
func (d *disk) find(bucket, key string) (*record, error) {
	b := d.index[bucket]
	if b == nil {
		return nil, gofakes3.BucketNotFound(bucket)
	}
	r, ok := b.objects.Get(key)
	if !ok {
		return nil, gofakes3.KeyNotFound(key)
	}
	return r, nil
}

func (r *record) object() *gofakes3.Object {
	return &gofakes3.Object{Name: r.Key, Metadata: r.Meta, Size: r.Size, Hash: r.MD5, Contents: http.NoBody}
}

func (r *record) etag() string { return `"` + hex.EncodeToString(r.MD5) + `"` }

// HeadObject returns an object without its bytes.
func (d *disk) HeadObject(_ context.Context, bucket, key string) (*gofakes3.Object, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	r, err := d.find(bucket, key)
	if err != nil {
		return nil, err
	}
	return r.object(), nil
}

// GetObject returns an object. Its bytes stay readable after it was replaced or deleted.
func (d *disk) GetObject(_ context.Context, bucket, key string, asked *gofakes3.ObjectRangeRequest) (*gofakes3.Object, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	r, err := d.find(bucket, key)
	if err != nil {
		return nil, err
	}
	part, err := asked.Range(r.Size)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(d.path(bucket, key))
	if err != nil {
		return nil, err
	}
	object := r.object()
	start, length := int64(0), r.Size
	if object.Range = part; part != nil {
		start, length = part.Start, part.Length
	}
	object.Contents = struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(file, start, length), file}
	return object, nil
}

// DeleteObject removes an object. It returns nil for a missing object.
func (d *disk) DeleteObject(_ context.Context, bucket, key string) (result gofakes3.ObjectDeleteResult, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.index[bucket]
	if b == nil {
		return result, gofakes3.BucketNotFound(bucket)
	}
	if err := os.Remove(d.path(bucket, key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return result, err
	}
	b.objects.Delete(key)
	return result, nil
}

// DeleteMulti removes objects.
func (d *disk) DeleteMulti(ctx context.Context, bucket string, keys ...string) (result gofakes3.MultiDeleteResult, err error) {
	for _, key := range keys {
		if _, err := d.DeleteObject(ctx, bucket, key); err != nil {
			result.Error = append(result.Error, gofakes3.ErrorResultFromError(err))
			continue
		}
		result.Deleted = append(result.Deleted, gofakes3.ObjectID{Key: key})
	}
	return result, nil
}

// PutObject stores an object.
func (d *disk) PutObject(
	ctx context.Context, bucket, key string, meta map[string]string, body io.Reader, size int64,
) (result gofakes3.PutObjectResult, err error) {
	file, err := os.CreateTemp(d.incoming, "")
	if err != nil {
		return result, err
	}
	defer discard(file)
	read, sum, err := receive(file, body, size)
	if err != nil {
		return result, err
	}
	return result, d.publish(ctx, file, bucket, &record{Key: key, Size: read, MD5: sum, Meta: meta})
}

// CopyObject stores an object's bytes under another key.
func (d *disk) CopyObject(
	ctx context.Context, fromBucket, fromKey, bucket, key string, meta map[string]string,
) (result gofakes3.CopyObjectResult, err error) {
	from, err := d.GetObject(ctx, fromBucket, fromKey, nil)
	if err != nil {
		return result, err
	}
	defer from.Contents.Close()
	if _, err := d.PutObject(ctx, bucket, key, meta, from.Contents, from.Size); err != nil {
		return result, err
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	r, err := d.find(bucket, key)
	if err != nil {
		return result, err
	}
	return gofakes3.CopyObjectResult{ETag: r.etag(), LastModified: gofakes3.NewContentTime(r.Modified)}, nil
}

// publish completes the file of an object, whose bytes it has, and gives it its name where the conditions of the request allow it.
func (d *disk) publish(ctx context.Context, file *os.File, bucket string, r *record) error {
	r.Modified = time.Now().UTC()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := file.Write(binary.BigEndian.AppendUint64(text, uint64(len(text)))); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.index[bucket]
	if b == nil {
		return gofakes3.BucketNotFound(bucket)
	}
	old, exists := b.objects.Get(r.Key)
	etag := ""
	if exists {
		etag = old.etag()
	}
	if err := gofakes3.CheckWriteConditions(ctx, exists, etag); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), d.path(bucket, r.Key)); err != nil {
		return err
	}
	b.objects.Set(r.Key, r)
	return nil
}

// receive copies a body to a file and returns its length and MD5. A size below 0 is unknown.
func receive(file io.Writer, body io.Reader, size int64) (read int64, sum []byte, err error) {
	hash := md5.New() //nolint:gosec // as S3 makes its ETags
	read, err = io.Copy(io.MultiWriter(file, hash), body)
	if err == nil && size >= 0 && read != size {
		err = gofakes3.ErrIncompleteBody
	}
	return read, hash.Sum(nil), err
}

// discard closes a file of the folder incoming, and removes it unless it was renamed.
func discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
}
