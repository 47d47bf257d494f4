package storagetest

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// Store is the archive under test: *archive.Store or *MemoryArchive.
type Store interface {
	Put(ctx context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error)
	Open(ctx context.Context, key string) (*archive.Reader, error)
	Stat(ctx context.Context, key string) (archive.Object, error)
	Delete(ctx context.Context, key string) error
	DeletePrefix(ctx context.Context, prefix string) error
	List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error]
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	Claim(ctx context.Context, key, owner string) (string, error)
	PutJSON(ctx context.Context, key string, v any) error
	GetJSON(ctx context.Context, key string, v any) error
	Presign(ctx context.Context, key string, ttl time.Duration) (string, error)
	EnsureBucket(ctx context.Context) error
	Ping(ctx context.Context) error
}

const mebi = 1 << 20

// Archive is the conformance suite of archives. open returns the archive under test, with its bucket; each test uses its own prefix and
// removes it.
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
		"claims":                   testClaim,
		"presigned":                testPresigned,
		"invalid keys":             testKeys,
		"at the same time":         testConcurrent,
		"bucket":                   testBucket,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t)
			prefix := fmt.Sprintf("storagetest/%s-%s/", strings.ReplaceAll(name, " ", "-"), strings.ToLower(crand.Text()))
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

// content returns n pseudo-random bytes, the same for the same n.
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

// stream hides the methods of a reader except Read.
type stream struct{ io.Reader }

func mustPut(t *testing.T, store Store, key string, body []byte) archive.Object {
	t.Helper()
	object, err := store.Put(t.Context(), key, bytes.NewReader(body), int64(len(body)), archive.PutOptions{ContentType: "video/mp4"})
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
	defer closeReader(t, r)
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func closeReader(t *testing.T, r io.Closer) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func testAbsent(t *testing.T, store Store, prefix string) {
	t.Helper()
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
	t.Helper()
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
	for under, want := range map[string]string{"": "a/ b/", "a/": "a/2/", "c/": ""} {
		var folders []string
		for folder, err := range store.Folders(ctx, prefix+under) {
			if err != nil {
				t.Fatal(err)
			}
			folders = append(folders, strings.TrimPrefix(folder, prefix))
		}
		if got := strings.Join(folders, " "); got != want {
			t.Errorf("folders of %q: got %q, want %q", under, got, want)
		}
	}
	for object, err := range store.List(ctx, prefix) {
		if err != nil || object.Key != prefix+"a/1" {
			t.Errorf("first: %+v, %v", object, err)
		}
		break // leaving early is fine
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
	t.Helper()
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
	if err := store.PutJSON(ctx, key+"2", make([]byte, archive.MaxDocument)); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	mustPut(t, store, key+"3", content(archive.MaxDocument+1))
	if err := store.GetJSON(ctx, key+"3", &got); !errors.Is(err, archive.ErrTooLarge) {
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
	t.Helper()
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Range", "bytes=10-19")
	answer, err := (&http.Client{Timeout: time.Minute}).Do(request)
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
	t.Helper()
	ctx := t.Context()
	for _, key := range []string{
		"", "/", "/a", prefix, prefix + "a//b", prefix + "../x", prefix + "./x", "..", prefix + "a\x00b", prefix + "a\nb",
		prefix + `a\b`, prefix + "\xff", strings.Repeat("k", 1025),
	} {
		if _, err := store.Put(ctx, key, strings.NewReader("x"), 1, archive.PutOptions{}); !errors.Is(err, archive.ErrKey) {
			t.Errorf("put %.40q: got %v, want ErrKey", key, err)
		}
		if _, err := store.Open(ctx, key); !errors.Is(err, archive.ErrKey) {
			t.Errorf("open %.40q: got %v, want ErrKey", key, err)
		}
		if err := store.Delete(ctx, key); !errors.Is(err, archive.ErrKey) {
			t.Errorf("delete %.40q: got %v, want ErrKey", key, err)
		}
	}
	for _, all := range []string{"", "/", "../"} {
		if err := store.DeletePrefix(ctx, all); !errors.Is(err, archive.ErrKey) {
			t.Errorf("delete everything below %q: got %v, want ErrKey", all, err)
		}
	}
}

func testConcurrent(t *testing.T, store Store, prefix string) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			key, body := fmt.Sprintf("%s%d", prefix, i), content(6*mebi+i)
			if _, err := store.Put(t.Context(), key, stream{bytes.NewReader(body)}, -1, archive.PutOptions{}); err != nil {
				t.Error(err)
				return
			}
			r, err := store.Open(t.Context(), key)
			if err != nil {
				t.Error(err)
				return
			}
			defer closeReader(t, r)
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%s: read back otherwise (%v)", key, err)
			}
		})
	}
	wg.Wait()
}

func testBucket(t *testing.T, store Store, _ string) {
	t.Helper()
	for range 2 {
		if err := store.EnsureBucket(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := store.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
