package s3_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"modelrelay/dev/s3"
	"modelrelay/dev/settings"
)

const name = "films"

// open runs the store on a folder and returns a client of it. stop ends the store.
func open(t *testing.T, data string) (client *minio.Core, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, end := make(chan string, 1), make(chan error, 1)
	go func() {
		end <- s3.Run(ctx, s3.Options{
			Listen: "127.0.0.1:0", Data: data, AccessKey: "some", SecretKey: "thing", Bucket: name,
			Ready: func(addr string) { ready <- addr }, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-end; err != nil {
			t.Errorf("the store ended: %v", err)
		}
	})
	t.Cleanup(stop)
	select {
	case err := <-end:
		t.Fatal(err)
	case addr := <-ready:
		core, err := minio.NewCore(addr, &minio.Options{Creds: credentials.NewStaticV4("some", "thing", ""), Region: settings.Region})
		if err != nil {
			t.Fatal(err)
		}
		return core, stop
	}
	return nil, nil
}

func put(t *testing.T, c *minio.Core, key, body string) {
	t.Helper()
	_, err := c.PutObject(t.Context(), name, key, strings.NewReader(body), int64(len(body)), "", "", minio.PutObjectOptions{})
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func TestListInPages(t *testing.T) {
	t.Parallel()
	c, _ := open(t, t.TempDir())
	for _, key := range []string{"a", "b-", "b/1", "b/2", "b/c/3", "c/4", "d"} {
		put(t, c, key, key)
	}
	for _, test := range []struct {
		prefix, delimiter, after string
		want                     []string
	}{
		{want: []string{"a", "b-", "b/1", "b/2", "b/c/3", "c/4", "d"}},
		{delimiter: "/", want: []string{"a", "b-", "b/", "c/", "d"}},
		{prefix: "b", delimiter: "/", want: []string{"b-", "b/"}},
		{prefix: "b/", delimiter: "/", want: []string{"b/1", "b/2", "b/c/"}},
		{prefix: "b/", want: []string{"b/1", "b/2", "b/c/3"}},
		{after: "b/2", want: []string{"b/c/3", "c/4", "d"}},
		{prefix: "b/", delimiter: "/", after: "b/2", want: []string{"b/c/"}},
		{prefix: "e"},
	} {
		for _, size := range []int{1, 2, 1000} {
			var got []string
			token, after := "", test.after
			for {
				page, err := c.ListObjectsV2(name, test.prefix, after, token, test.delimiter, size)
				if err != nil {
					t.Fatal(err)
				}
				var items []string
				for _, object := range page.Contents {
					items = append(items, object.Key)
				}
				for _, folder := range page.CommonPrefixes {
					items = append(items, folder.Prefix)
				}
				if len(items) > size {
					t.Errorf("%+v: got %v in a page of %d", test, items, size)
				}
				slices.Sort(items)
				got = append(got, items...)
				if token = page.NextContinuationToken; !page.IsTruncated {
					break
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v in pages of %d: got %v", test, size, got)
			}
		}
	}
}

func TestConditionalPuts(t *testing.T) {
	t.Parallel()
	c, _ := open(t, t.TempDir())
	var callers sync.WaitGroup
	won := make(chan string, 8)
	for i := range cap(won) {
		callers.Go(func() {
			body := strings.Repeat("x", i+1)
			opts := minio.PutObjectOptions{}
			opts.SetMatchETagExcept("*")
			_, err := c.PutObject(t.Context(), name, "claim", strings.NewReader(body), int64(len(body)), "", "", opts)
			switch code := minio.ToErrorResponse(err).Code; {
			case err == nil:
				won <- body
			case code != "PreconditionFailed":
				t.Errorf("got %v, want success or PreconditionFailed", err)
			}
		})
	}
	callers.Wait()
	close(won)
	if len(won) != 1 {
		t.Fatalf("%d conditional puts succeeded, want 1", len(won))
	}
	object, _, _, err := c.GetObject(t.Context(), name, "claim", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	if got, err := io.ReadAll(object); err != nil || string(got) != <-won {
		t.Errorf("got %q, %v, want the body that was stored first", got, err)
	}
}

// TestReopen checks what a second process finds on the folder.
func TestReopen(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	first, stop := open(t, data)
	put(t, first, "a/kept", "kept")
	put(t, first, "removed", "removed")
	if err := first.RemoveObject(t.Context(), name, "removed", minio.RemoveObjectOptions{}); err != nil {
		t.Fatal(err)
	}
	parts := []string{strings.Repeat("1", 5<<20), "2"}
	upload, err := first.NewMultipartUpload(t.Context(), name, "parts", minio.PutObjectOptions{ContentType: "video/mp4"})
	if err != nil {
		t.Fatal(err)
	}
	var complete []minio.CompletePart
	for i, part := range parts {
		sent, err := first.PutObjectPart(t.Context(), name, "parts", upload, i+1, strings.NewReader(part), int64(len(part)),
			minio.PutObjectPartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		complete = append(complete, minio.CompletePart{PartNumber: i + 1, ETag: sent.ETag})
	}
	wrong := []minio.CompletePart{complete[0], {PartNumber: 2, ETag: complete[0].ETag}}
	if _, err := first.CompleteMultipartUpload(t.Context(), name, "parts", upload, wrong,
		minio.PutObjectOptions{}); minio.ToErrorResponse(err).Code != "InvalidPart" {
		t.Errorf("complete with a part that was not sent: got %v, want InvalidPart", err)
	}
	done, err := first.CompleteMultipartUpload(t.Context(), name, "parts", upload, complete, minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stop()

	second, _ := open(t, data)
	object, info, _, err := second.GetObject(t.Context(), name, "parts", minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	got, err := io.ReadAll(object)
	if err != nil || !bytes.Equal(got, []byte(strings.Join(parts, ""))) || info.ContentType != "video/mp4" || info.ETag != done.ETag {
		t.Errorf("got %d bytes, %q, ETag %s, %v, want the parts and their ETag %s", len(got), info.ContentType, info.ETag, err, done.ETag)
	}
	if info, err := second.StatObject(t.Context(), name, "a/kept", minio.StatObjectOptions{}); err != nil || info.Size != int64(len("kept")) {
		t.Errorf("got %d bytes, %v, want the object", info.Size, err)
	}
	if _, err := second.StatObject(t.Context(), name, "removed",
		minio.StatObjectOptions{}); minio.ToErrorResponse(err).Code != minio.NoSuchKey {
		t.Errorf("a removed object: got %v, want %s", err, minio.NoSuchKey)
	}
}
