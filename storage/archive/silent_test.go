package archive_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/storage/archive"
)

// TestSilentSourcesHoldNoBuffer: a source that has not sent its first byte holds no buffer, so other sources are stored.
func TestSilentSourcesHoldNoBuffer(t *testing.T) {
	t.Parallel()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"e"`)
	}))
	t.Cleanup(store.Close)
	bucket, err := archive.New(archive.Options{Endpoint: store.URL, Bucket: "videos", AccessKey: "a", SecretKey: "b", Buffers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	put := func(key string, r io.Reader) error {
		_, err := bucket.Put(t.Context(), key, r, -1, archive.PutOptions{})
		return err
	}
	const silent = 4
	ended := make(chan error, silent)
	var writers []*io.PipeWriter
	for range silent {
		source, writer := io.Pipe()
		began := make(chan struct{})
		writers = append(writers, writer)
		go func() { ended <- put("silent", watchedReader{source, began}) }()
		<-began
	}
	if err := put("flows", io.MultiReader(strings.NewReader("a video"))); err != nil {
		t.Errorf("with silent sources: %v", err)
	}
	for _, writer := range writers {
		if _, err := io.WriteString(writer, "late"); err != nil {
			t.Error(err)
		}
		_ = writer.Close()
		if err := <-ended; err != nil {
			t.Errorf("a source that was silent at first: %v", err)
		}
	}
}

// watchedReader closes began at the first Read.
type watchedReader struct {
	io.Reader
	began chan struct{}
}

// Read implements io.Reader.
func (r watchedReader) Read(p []byte) (int, error) {
	select {
	case <-r.began:
	default:
		close(r.began)
	}
	return r.Reader.Read(p)
}
