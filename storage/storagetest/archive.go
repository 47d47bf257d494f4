package storagetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"modelrelay/storage"
)

// Store is what the suite asks of an archive: *storage.Archive and *MemoryArchive.
type Store interface {
	Put(ctx context.Context, key string, r io.Reader, size int64, opts storage.PutOptions) (storage.Object, error)
	Open(ctx context.Context, key string) (*storage.Reader, error)
	Stat(ctx context.Context, key string) (storage.Object, error)
	Delete(ctx context.Context, key string) error
	DeletePrefix(ctx context.Context, prefix string) error
	List(ctx context.Context, prefix string) iter.Seq2[storage.Object, error]
	PutJSON(ctx context.Context, key string, v any) error
	GetJSON(ctx context.Context, key string, v any) error
	Presign(ctx context.Context, key string, ttl time.Duration) (string, error)
	EnsureBucket(ctx context.Context) error
	Ping(ctx context.Context) error
}

const mebi = 1 << 20

// Archive is the conformance suite of archives. open returns the archive under test, with its bucket; the tests keep
// to a prefix of their own and remove it.
func Archive(t *testing.T, open func(t *testing.T) Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Store, string){
		"put and read back":        testPut,
		"a failed put leaves none": testFailedPut,
		"replace":                  testReplace,
		"seek and ranges":          testSeek,
		"absent":                   testAbsent,
		"list and delete":          testList,
		"documents":                testDocuments,
		"presigned":                testPresigned,
		"invalid keys":             testKeys,
		"at the same time":         testConcurrent,
		"bucket":                   testBucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			prefix := fmt.Sprintf("storagetest/%s-%x/", strings.ReplaceAll(name, " ", "-"), rand.Uint64())
			ctx := context.WithoutCancel(t.Context())
			t.Cleanup(func() {
				if err := store.DeletePrefix(ctx, prefix); err != nil {
					t.Errorf("clean up: %v", err)
				}
			})
			test(t, store, prefix)
		})
	}
}

// content is n bytes that look random and are the same for the same n.
func content(n int) []byte {
	b := make([]byte, n)
	chacha := rand.NewChaCha8([32]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	_, _ = chacha.Read(b)
	return b
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// stream hides everything of a reader but Read.
type stream struct{ io.Reader }

func mustPut(t *testing.T, store Store, key string, body []byte) storage.Object {
	t.Helper()
	object, err := store.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), storage.PutOptions{ContentType: "video/mp4"})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func readAll(t *testing.T, store Store, key string) []byte {
	t.Helper()
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func testPut(t *testing.T, store Store, prefix string) {
	for _, size := range []int{0, 1000, 5*mebi - 1, 5 * mebi, 5*mebi + 1, 11*mebi + 123} {
		body := content(size)
		for _, how := range []struct {
			name string
			r    io.Reader
			size int64
		}{
			{"in memory", bytes.NewReader(body), int64(size)},
			{"stream of known size", stream{bytes.NewReader(body)}, int64(size)},
			{"stream of unknown size", stream{bytes.NewReader(body)}, -1},
			{"stream in small pieces", iotest.HalfReader(stream{bytes.NewReader(body)}), -1},
			{"end with the last bytes", iotest.DataErrReader(stream{bytes.NewReader(body)}), int64(size)},
		} {
			key := fmt.Sprintf("%sput/%d %s/ä.mp4", prefix, size, how.name)
			var told []int64
			got, err := store.Put(t.Context(), key, how.r, how.size, storage.PutOptions{
				ContentType: "video/mp4", Meta: map[string]string{"task": "video_1"},
				Progress: func(n int64) { told = append(told, n) },
			})
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if got.Key != key || got.Size != int64(size) || got.SHA256 != sum(body) || got.ContentType != "video/mp4" || got.ETag == "" {
				t.Errorf("%s: put returned %+v", key, got)
			}
			for i, n := range told {
				if i > 0 && n < told[i-1] {
					t.Errorf("%s: progress fell from %d to %d", key, told[i-1], n)
				}
			}
			if len(told) == 0 || told[len(told)-1] != int64(size) {
				t.Errorf("%s: progress %v", key, told)
			}
			stat, err := store.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if stat.Key != key || stat.Size != int64(size) || stat.ETag != got.ETag || stat.ContentType != "video/mp4" ||
				!maps.Equal(stat.Meta, map[string]string{"task": "video_1"}) || time.Since(stat.Modified) > time.Hour {
				t.Errorf("%s: stat %+v", key, stat)
			}
			if stat.SHA256 != "" && stat.SHA256 != sum(body) {
				t.Errorf("%s: stat says SHA-256 %s", key, stat.SHA256)
			}
			if !bytes.Equal(readAll(t, store, key), body) {
				t.Errorf("%s: read back otherwise", key)
			}
		}
	}
	if object, err := store.Put(t.Context(), prefix+"plain", strings.NewReader("x"), 1, storage.PutOptions{}); err != nil || object.ContentType != "application/octet-stream" {
		t.Errorf("without a content type: %+v, %v", object, err)
	}
}

func testFailedPut(t *testing.T, store Store, prefix string) {
	broken := errors.New("connection lost")
	for _, size := range []int{100, 5 * mebi, 12 * mebi} {
		body := content(size)
		some := func() io.Reader { return stream{bytes.NewReader(body)} }
		for _, test := range []struct {
			name string
			r    io.Reader
			size int64
			want error
		}{
			{"source fails", io.MultiReader(some(), iotest.ErrReader(broken)), -1, broken},
			{"source fails, known size", io.MultiReader(some(), iotest.ErrReader(broken)), int64(size) + 10, broken},
			{"source is cut off", io.MultiReader(some(), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, storage.ErrSource},
			{"too short", some(), int64(size) + 1, storage.ErrLength},
			{"too short in memory", bytes.NewReader(body), int64(size) + 1, storage.ErrLength},
			{"too long", some(), int64(size) - 1, storage.ErrLength},
			{"too long in memory", bytes.NewReader(body), int64(size) - 1, storage.ErrLength},
		} {
			key := fmt.Sprintf("%s%d/%s", prefix, size, test.name)
			if _, err := store.Put(t.Context(), key, test.r, test.size, storage.PutOptions{}); !errors.Is(err, test.want) || errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("%s: got %v, want %v", key, err, test.want)
			}
			if _, err := store.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s left something behind: %v", key, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	key := prefix + "canceled"
	endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
	_, err := store.Put(ctx, key, endless, -1, storage.PutOptions{Progress: func(n int64) {
		if n > 11*mebi {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v", err)
	}
	if _, err := store.Stat(t.Context(), key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a canceled put left something behind: %v", err)
	}
	if _, err := store.Put(t.Context(), key, strings.NewReader(""), -2, storage.PutOptions{}); err == nil {
		t.Error("size -2: no error")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func testReplace(t *testing.T, store Store, prefix string) {
	key := prefix + "object"
	old, next := content(6*mebi), content(6*mebi+1)
	mustPut(t, store, key, old)
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := store.Put(t.Context(), key, io.MultiReader(bytes.NewReader(next), iotest.ErrReader(io.ErrClosedPipe)), -1, storage.PutOptions{}); err == nil {
		t.Fatal("no error")
	}
	if !bytes.Equal(readAll(t, store, key), old) {
		t.Error("a failed put changed the object that was there")
	}
	mustPut(t, store, key, next)
	if !bytes.Equal(readAll(t, store, key), next) {
		t.Error("not replaced")
	}
	if _, err := r.Seek(5*mebi, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, storage.ErrModified) {
		t.Errorf("reader of the old object: got %v, want ErrModified", err)
	}
}

func testSeek(t *testing.T, store Store, prefix string) {
	key, body := prefix+"video.mp4", content(7*mebi+77)
	put := mustPut(t, store, key, body)
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.Object(); got.Size != int64(len(body)) || got.ETag != put.ETag || got.ContentType != "video/mp4" {
		t.Errorf("object %+v", got)
	}
	if err := iotest.TestReader(&firstBytes{r: r, n: 40_000}, body[:40_000]); err != nil {
		t.Error(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		from := rnd.IntN(len(body))
		n := min(rnd.IntN(100_000)+1, len(body)-from)
		var at int64
		switch rnd.IntN(3) {
		case 0:
			at, err = r.Seek(int64(from), io.SeekStart)
		case 1:
			at, err = r.Seek(int64(from-len(body)), io.SeekEnd)
		default:
			now, _ := r.Seek(0, io.SeekCurrent)
			at, err = r.Seek(int64(from)-now, io.SeekCurrent)
		}
		if err != nil || at != int64(from) {
			t.Fatalf("seek to %d: %d, %v", from, at, err)
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, body[from:from+n]) {
			t.Fatalf("%d bytes at %d: %v", n, from, err)
		}
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("seek before the start: no error")
	}
	if _, err := r.Seek(10, io.SeekEnd); err != nil {
		t.Error(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read behind the end: %d, %v", n, err)
	}

	// As the gateway serves it.
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header.Set("Range", "bytes=5000000-5999999")
	answer := httptest.NewRecorder()
	http.ServeContent(answer, request, "video.mp4", time.Time{}, r)
	if answer.Code != http.StatusPartialContent || !bytes.Equal(answer.Body.Bytes(), body[5000000:6000000]) {
		t.Errorf("served range: status %d, %d bytes", answer.Code, answer.Body.Len())
	}
}

// firstBytes is the beginning of a reader that stays seekable.
type firstBytes struct {
	r  io.ReadSeeker
	n  int64
	at int64
}

func (f *firstBytes) Read(p []byte) (int, error) {
	if f.at >= f.n {
		return 0, io.EOF
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.n-f.at)])
	f.at += int64(n)
	return n, err
}

func (f *firstBytes) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		offset, whence = f.n+offset, io.SeekStart
	}
	at, err := f.r.Seek(offset, whence)
	if err == nil {
		f.at = at
	}
	return at, err
}

func testAbsent(t *testing.T, store Store, prefix string) {
	ctx, key := t.Context(), prefix+"nothing"
	if _, err := store.Stat(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("stat: %v", err)
	}
	if _, err := store.Open(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("open: %v", err)
	}
	var v any
	if err := store.GetJSON(ctx, key, &v); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("get json: %v", err)
	}
	if err := store.Delete(ctx, key); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := store.DeletePrefix(ctx, key+"/"); err != nil {
		t.Errorf("delete prefix: %v", err)
	}
	for object, err := range store.List(ctx, key+"/") {
		t.Errorf("list: %+v, %v", object, err)
	}
}

func testList(t *testing.T, store Store, prefix string) {
	ctx := t.Context()
	for _, name := range []string{"a/1", "a/2/x", "ab", "b/1"} {
		mustPut(t, store, prefix+name, []byte(name))
	}
	list := func(under string) string {
		var keys []string
		for object, err := range store.List(ctx, prefix+under) {
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(object.Key, prefix)
			if object.Size != int64(len(name)) || object.ETag == "" || object.Modified.IsZero() {
				t.Errorf("listed %+v", object)
			}
			keys = append(keys, name)
		}
		return strings.Join(keys, " ")
	}
	for under, want := range map[string]string{"": "a/1 a/2/x ab b/1", "a/": "a/1 a/2/x", "a": "a/1 a/2/x ab", "c/": ""} {
		if got := list(under); got != want {
			t.Errorf("list %q: got %q, want %q", under, got, want)
		}
	}
	for range store.List(ctx, prefix) {
		break
	}
	if err := store.Delete(ctx, prefix+"a/1"); err != nil {
		t.Error(err)
	}
	if err := store.DeletePrefix(ctx, prefix+"a/"); err != nil {
		t.Error(err)
	}
	if got := list(""); got != "ab b/1" {
		t.Errorf("after deleting a/: %q", got)
	}
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	failed := false
	for _, err := range store.List(canceled, prefix) {
		failed = errors.Is(err, context.Canceled)
	}
	if !failed {
		t.Error("canceled list ends without its error")
	}
}

func testDocuments(t *testing.T, store Store, prefix string) {
	type document struct {
		Name  string
		Parts []int
	}
	ctx, key := t.Context(), prefix+"request.json"
	want := document{"<ä>", []int{1, 2}}
	if err := store.PutJSON(ctx, key, want); err != nil {
		t.Fatal(err)
	}
	var got document
	if err := store.GetJSON(ctx, key, &got); err != nil || got.Name != want.Name || len(got.Parts) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if object, err := store.Stat(ctx, key); err != nil || object.ContentType != "application/json" {
		t.Errorf("stat: %+v, %v", object, err)
	}
	if err := store.PutJSON(ctx, key+"2", make([]byte, storage.MaxDocument)); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	mustPut(t, store, key+"3", content(storage.MaxDocument+1))
	if err := store.GetJSON(ctx, key+"3", &got); !errors.Is(err, storage.ErrTooLarge) {
		t.Errorf("get too large: %v", err)
	}
	mustPut(t, store, key+"4", []byte("{"))
	if err := store.GetJSON(ctx, key+"4", &got); err == nil || errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNotFound) {
		t.Errorf("broken document: %v", err)
	}
	if err := store.PutJSON(ctx, key+"5", func() {}); err == nil {
		t.Error("a func as a document: no error")
	}
}

func testPresigned(t *testing.T, store Store, prefix string) {
	ctx, key, body := t.Context(), prefix+"a b/ü+1.mp4", content(2000)
	mustPut(t, store, key, body)
	link, err := store.Presign(ctx, key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Presign(ctx, key, 0); err == nil {
		t.Error("ttl 0: no error")
	}
	if !strings.HasPrefix(link, "http") {
		return // an archive in memory has no address
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Range", "bytes=10-19")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusPartialContent || !bytes.Equal(got, body[10:20]) {
		t.Errorf("presigned range: status %d, %d bytes, %v", answer.StatusCode, len(got), err)
	}
}

func testKeys(t *testing.T, store Store, prefix string) {
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", prefix, prefix + "a//b", prefix + "../x", prefix + "./x", "..", prefix + "a\x00b", prefix + "a\nb",
		prefix + `a\b`, prefix + "\xff", strings.Repeat("k", 1025),
	} {
		if _, err := store.Put(ctx, key, strings.NewReader("x"), 1, storage.PutOptions{}); !errors.Is(err, storage.ErrKey) {
			t.Errorf("put %.40q: got %v, want ErrKey", key, err)
		}
		if _, err := store.Open(ctx, key); !errors.Is(err, storage.ErrKey) {
			t.Errorf("open %.40q: got %v, want ErrKey", key, err)
		}
		if err := store.Delete(ctx, key); !errors.Is(err, storage.ErrKey) {
			t.Errorf("delete %.40q: got %v, want ErrKey", key, err)
		}
	}
	for _, all := range []string{"", "/", "../"} {
		if err := store.DeletePrefix(ctx, all); !errors.Is(err, storage.ErrKey) {
			t.Errorf("delete everything below %q: got %v, want ErrKey", all, err)
		}
	}
}

func testConcurrent(t *testing.T, store Store, prefix string) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			key, body := fmt.Sprintf("%s%d", prefix, i), content(6*mebi+i)
			if _, err := store.Put(t.Context(), key, stream{bytes.NewReader(body)}, -1, storage.PutOptions{}); err != nil {
				t.Error(err)
				return
			}
			r, err := store.Open(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%s: read back otherwise (%v)", key, err)
			}
		})
	}
	wg.Wait()
}

func testBucket(t *testing.T, store Store, _ string) {
	for range 2 {
		if err := store.EnsureBucket(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
