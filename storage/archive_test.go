package storage_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

func TestMemoryArchive(t *testing.T) {
	t.Parallel()
	storagetest.Archive(t, func(*testing.T) storagetest.Store { return storagetest.NewMemoryArchive() })
}

func TestOpenArchiveOptions(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "127.0.0.1:9000", "ftp://h", "http://", "http://h/path", "http://u:p@h", "http://h?x=1", "://"} {
		if _, err := storage.OpenArchive(storage.ArchiveOptions{Endpoint: endpoint, Bucket: "videos"}); err == nil {
			t.Errorf("endpoint %q: no error", endpoint)
		}
	}
	if _, err := storage.OpenArchive(storage.ArchiveOptions{Endpoint: "http://127.0.0.1:9000/"}); err == nil {
		t.Error("no bucket: no error")
	}
}

func TestArchiveIsAway(t *testing.T) {
	t.Parallel()
	archive, err := storage.OpenArchive(storage.ArchiveOptions{Endpoint: "http://127.0.0.1:1", Bucket: "videos", AccessKey: "AKIDEXAMPLE", SecretKey: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var v any
	_, put := archive.Put(ctx, "a", strings.NewReader("x"), 1, storage.PutOptions{})
	_, open := archive.Open(ctx, "a")
	var list error
	for _, err := range archive.List(ctx, "a/") {
		list = err
	}
	start := time.Now()
	for name, err := range map[string]error{
		"ping": archive.Ping(ctx), "put": put, "open": open, "get": archive.GetJSON(ctx, "a", &v), "delete": archive.Delete(ctx, "a"),
		"delete prefix": archive.DeletePrefix(ctx, "a/"), "list": list, "bucket": archive.EnsureBucket(ctx),
	} {
		if !errors.Is(err, storage.ErrUnavailable) || strings.Contains(err.Error(), "AKIDEXAMPLE") {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := archive.Presign(ctx, "a", time.Minute); err != nil {
		t.Errorf("presign asks nobody: %v", err)
	}
}
