package archive_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"modelrelay/storage/archive"
)

// TestSilentSourcesHoldNoBuffer: sources of which nothing has come yet keep no other from being stored, however many they are.
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
	var ways []*io.PipeWriter
	for range silent {
		source, way := io.Pipe()
		asked := make(chan struct{})
		ways = append(ways, way)
		go func() { ended <- put("silent", told{source, asked}) }()
		<-asked
	}
	if err := put("flows", io.MultiReader(strings.NewReader("a video"))); err != nil {
		t.Errorf("beside silent sources: %v", err)
	}
	for _, way := range ways {
		if _, err := io.WriteString(way, "late"); err != nil {
			t.Error(err)
		}
		_ = way.Close()
		if err := <-ended; err != nil {
			t.Errorf("a source that was silent at first: %v", err)
		}
	}
}

// told is a reader that tells when it is first read.
type told struct {
	io.Reader
	asked chan struct{}
}

// Read implements io.Reader.
func (r told) Read(p []byte) (int, error) {
	select {
	case <-r.asked:
	default:
		close(r.asked)
	}
	return r.Reader.Read(p)
}
