package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
)

func testPut(t *testing.T, store Store, prefix string) {
	t.Helper()
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
			var progress []int64
			got, err := store.Put(t.Context(), key, how.r, how.size, archive.PutOptions{
				ContentType: "video/mp4",
				Progress:    func(n int64) { progress = append(progress, n) },
			})
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if got.Key != key || got.Size != int64(size) || got.SHA256 != sum(body) || got.ContentType != "video/mp4" || got.ETag == "" {
				t.Errorf("%s: put returned %+v", key, got)
			}
			for i, n := range progress {
				if i > 0 && n < progress[i-1] {
					t.Errorf("%s: progress fell from %d to %d", key, progress[i-1], n)
				}
			}
			if len(progress) == 0 || progress[len(progress)-1] != int64(size) {
				t.Errorf("%s: progress %v", key, progress)
			}
			stat, err := store.Stat(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if stat.Key != key || stat.Size != int64(size) || stat.ETag != got.ETag || stat.ContentType != "video/mp4" ||
				time.Since(stat.Modified) > time.Hour {
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
	if object, err := store.Put(t.Context(), prefix+"plain", strings.NewReader("x"), 1, archive.PutOptions{}); err != nil ||
		object.ContentType != "application/octet-stream" {
		t.Errorf("without a content type: %+v, %v", object, err)
	}
}

func testFailedPut(t *testing.T, store Store, prefix string) {
	t.Helper()
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
			{"source is cut off", io.MultiReader(some(), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, archive.ErrSource},
			{"too short", some(), int64(size) + 1, archive.ErrLength},
			{"too short in memory", bytes.NewReader(body), int64(size) + 1, archive.ErrLength},
			{"too long", some(), int64(size) - 1, archive.ErrLength},
			{"too long in memory", bytes.NewReader(body), int64(size) - 1, archive.ErrLength},
		} {
			key := fmt.Sprintf("%s%d/%s", prefix, size, test.name)
			if _, err := store.Put(t.Context(), key, test.r, test.size, archive.PutOptions{}); !errors.Is(err, test.want) ||
				errors.Is(err, storage.ErrUnavailable) {
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
	_, err := store.Put(ctx, key, endless, -1, archive.PutOptions{Progress: func(n int64) {
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
	if _, err := store.Put(t.Context(), key, strings.NewReader(""), -2, archive.PutOptions{}); err == nil {
		t.Error("size -2: no error")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func testReplace(t *testing.T, store Store, prefix string) {
	t.Helper()
	key := prefix + "object"
	old, next := content(6*mebi), content(6*mebi+1)
	mustPut(t, store, key, old)
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer closeReader(t, r)
	if _, err := store.Put(t.Context(), key, io.MultiReader(bytes.NewReader(next), iotest.ErrReader(io.ErrClosedPipe)), -1,
		archive.PutOptions{}); err == nil {
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
	if _, err := io.ReadAll(r); !errors.Is(err, archive.ErrModified) {
		t.Errorf("reader of the old object: got %v, want ErrModified", err)
	}
}
