package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // a checksum for the transfer
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	partSize    = 5 << 20 // the smallest part that a store accepts, except for the last
	maxParts    = 10_000  // the most parts that a store accepts: 48.8 GiB
	partTimeout = 5 * time.Minute
	abortWithin = 10 * time.Second
)

// PutOptions configure a Put; the zero value is valid.
type PutOptions struct {
	ContentType string // empty: application/octet-stream
	// Progress is called with the bytes read so far, after every read and stored part, in the goroutine of Put. It must not block.
	Progress func(n int64)
}

// Put stores the content of r. size is exact, or -1 if unknown. It replaces an object with the same key atomically; before Put returns
// nothing is visible, and after an error nothing was stored. If the store is unavailable, the error may be wrong: the object may be stored.
//
// Put uses at most two buffers of 5 MiB, each from its part's first byte on: one is filled while the other is sent. It waits for them if
// all buffers of the archive are in use. A source in memory or in a file (io.ReaderAt) of known size needs none.
// ErrSource: r failed. ErrLength: r was shorter or longer than size. Put does not close r.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64, opts PutOptions) (Object, error) {
	if err := CheckKey(key); err != nil {
		return Object{}, err
	}
	if size < -1 || size > partSize*maxParts {
		return Object{}, fmt.Errorf("put %s: size %d", key, size)
	}
	opts.ContentType = cmp.Or(opts.ContentType, "application/octet-stream")
	p := &put{store: s, key: key, opts: opts, source: source{r: r, size: size, sum: sha256.New(), progress: opts.Progress}}
	object, err := p.run(ctx)
	if err != nil {
		return Object{}, fmt.Errorf("put %s: %w", key, err)
	}
	return object, nil
}

type put struct {
	store  *Store
	key    string
	opts   PutOptions
	source source
	upload string // multipart upload id; empty: none begun
	parts  []minio.CompletePart
}

// part is a piece of the source. free releases it when it is stored.
type part struct {
	body io.ReadSeeker
	size int64
	sum  string // SHA-256 in hex
	md5  string // MD5 in Base64, "" if the store does not require it
	free func()
}

func (p *put) run(ctx context.Context) (object Object, err error) {
	first, last, err := p.next(ctx)
	if err != nil {
		return Object{}, err
	}
	if last {
		defer first.free()
		return p.whole(ctx, first)
	}
	p.upload, err = p.store.core.NewMultipartUpload(ctx, p.store.bucket, p.key, p.options(""))
	if err != nil {
		first.free()
		return Object{}, s3Error(ctx, "begin", err)
	}
	defer func() {
		if err != nil {
			p.abort(ctx)
		}
	}()
	if err := p.sendAll(ctx, first); err != nil {
		return Object{}, err
	}
	info, err := p.store.core.CompleteMultipartUpload(ctx, p.store.bucket, p.key, p.upload, p.parts, minio.PutObjectOptions{})
	if err != nil {
		return Object{}, s3Error(ctx, "complete", err)
	}
	return p.object(info.ETag), nil
}

func (p *put) whole(ctx context.Context, only part) (Object, error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	info, err := p.store.core.PutObject(ctx, p.store.bucket, p.key, only.body, only.size, only.md5, only.sum, p.options(only.sum))
	if err != nil {
		return Object{}, s3Error(ctx, "store", err)
	}
	p.progress()
	return p.object(info.ETag), nil
}

// sendAll stores all parts: one is sent while the next is filled.
func (p *put) sendAll(ctx context.Context, current part) error {
	type stored struct {
		part minio.CompletePart
		err  error
	}
	sent := make(chan stored, 1)
	last := false
	for number := 1; ; number++ {
		go func() {
			defer current.free()
			etag, err := p.sendPart(ctx, number, current)
			sent <- stored{minio.CompletePart{PartNumber: number, ETag: etag}, err}
		}()
		var next part
		var err error
		ended := last
		if !ended {
			next, last, err = p.next(ctx)
		}
		done := <-sent // also after an error, because the goroutine must end
		if err == nil {
			err = done.err
		}
		if err != nil {
			next.release()
			return err
		}
		p.parts = append(p.parts, done.part)
		p.progress()
		if ended || last && next.size == 0 {
			next.release()
			return nil
		}
		if number == maxParts {
			next.release()
			return fmt.Errorf("%w: above %d bytes", ErrSource, int64(partSize)*maxParts)
		}
		current = next
	}
}

func (p *put) sendPart(ctx context.Context, number int, current part) (etag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	sent, err := p.store.core.PutObjectPart(ctx, p.store.bucket, p.key, p.upload, number, current.body, current.size,
		minio.PutObjectPartOptions{Md5Base64: current.md5, Sha256Hex: current.sum, DisableContentSha256: true})
	return sent.ETag, s3Error(ctx, fmt.Sprintf("store part %d", number), err)
}

// abort aborts the multipart upload, even if ctx has ended. After a failure the store or AbortUploads removes the parts.
func (p *put) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortWithin)
	defer cancel()
	_ = p.store.core.AbortMultipartUpload(ctx, p.store.bucket, p.key, p.upload)
}

func (p *put) options(sum string) minio.PutObjectOptions {
	var meta map[string]string
	if sum != "" {
		meta = map[string]string{metaSHA256: sum}
	}
	return minio.PutObjectOptions{
		ContentType: p.opts.ContentType, UserMetadata: meta, DisableContentSha256: true, ServerSideEncryption: p.store.sse,
	}
}

func (p *put) object(etag string) Object {
	return Object{
		Key: p.key, Size: p.source.read, ContentType: p.opts.ContentType, ETag: etag,
		SHA256: hex.EncodeToString(p.source.sum.Sum(nil)),
	}
}

func (p *put) progress() {
	if p.opts.Progress != nil {
		p.opts.Progress(p.source.read)
	}
}

// next reads the next part from the source; last: the source has ended. A part that is not the last is full.
func (p *put) next(ctx context.Context) (part, bool, error) {
	if at, ok := p.source.r.(io.ReaderAt); ok && p.source.size >= 0 && p.source.fixed() {
		return p.nextInPlace(at)
	}
	var first [1]byte // a silent source occupies no buffer
	begun, last, err := p.source.fill(ctx, first[:])
	if err != nil {
		return part{}, false, err
	}
	select {
	case p.store.slots <- struct{}{}:
	case <-ctx.Done():
		return part{}, false, ctx.Err()
	}
	buffer, ok := p.store.buffers.Get().(*[partSize]byte)
	if !ok {
		buffer = new([partSize]byte)
	}
	free := func() {
		p.store.buffers.Put(buffer)
		<-p.store.slots
	}
	n := copy(buffer[:], first[:begun])
	if !last {
		var more int
		if more, last, err = p.source.fill(ctx, buffer[n:]); err != nil {
			free()
			return part{}, false, err
		}
		n += more
	}
	return part{body: bytes.NewReader(buffer[:n]), size: int64(n), sum: sumOf(buffer[:n]), md5: p.store.md5(buffer[:n]), free: free}, last, nil
}

// nextInPlace is next for a source that can be read without a copy.
func (p *put) nextInPlace(at io.ReaderAt) (part, bool, error) {
	from := p.source.start + p.source.read
	n := min(partSize, p.source.size-p.source.read)
	body := io.NewSectionReader(at, from, n)
	own, legacy := sha256.New(), io.Discard
	var checked hash.Hash
	if p.store.sendMD5 {
		checked = md5.New() //nolint:gosec // a checksum for the transfer
		legacy = checked
	}
	copied, err := io.Copy(io.MultiWriter(own, p.source.sum, legacy), body)
	if err != nil {
		return part{}, false, fmt.Errorf("%w: %w", ErrSource, err)
	}
	p.source.read += copied
	if copied < n {
		return part{}, false, p.source.short()
	}
	p.progress()
	only := part{body: body, size: n, sum: hex.EncodeToString(own.Sum(nil)), free: func() {}}
	if checked != nil {
		only.md5 = base64.StdEncoding.EncodeToString(checked.Sum(nil))
	}
	return only, p.source.read == p.source.size, nil
}

func (s *Store) write(ctx context.Context, key string, body []byte, opts minio.PutObjectOptions) error {
	opts.ServerSideEncryption, opts.DisableContentSha256 = s.sse, true
	_, err := s.core.PutObject(ctx, s.bucket, key, bytes.NewReader(body), int64(len(body)), s.md5(body), sumOf(body), opts)
	return err
}

func sumOf(piece []byte) string {
	sum := sha256.Sum256(piece)
	return hex.EncodeToString(sum[:])
}

// md5 returns the MD5 of a piece in Base64 if the store requires it, else "".
func (s *Store) md5(piece []byte) string {
	if !s.sendMD5 {
		return ""
	}
	sum := md5.Sum(piece) //nolint:gosec // a checksum for the transfer
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (p part) release() {
	if p.free != nil {
		p.free()
	}
}
