package archive_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/storagetest"
)

// TestReaderDoesNotWaitForEver: a store that takes the connection and then sends nothing more, as one on a hung disk,
// ends a read; it does not hold a client's download for as long as the client stays.
func TestReaderDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]string{"no answer about the object": http.MethodHead, "no answer": http.MethodGet, "half of it": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == silent || r.Header.Get("Range") == "bytes=5-9" {
					<-over
					return
				}
				w.Header().Set("ETag", `"e"`)
				w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
				w.Header().Set("Content-Length", "10")
				if r.Method != http.MethodGet {
					return
				}
				w.WriteHeader(http.StatusPartialContent)
				_, _ = io.WriteString(w, "01234")
				_ = http.NewResponseController(w).Flush()
				<-over
			}))
			t.Cleanup(func() { close(over); store.Close() })
			bucket, err := archive.New(archive.Options{
				Endpoint: store.URL, Bucket: "videos", AccessKey: "a", SecretKey: "b", Stall: 200 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				r, err := bucket.Open(t.Context(), "outputs/0.mp4")
				if err == nil {
					_, err = io.ReadAll(r)
					_ = r.Close()
				}
				ended <- err
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, storage.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
			case <-time.After(storagetest.Patience):
				t.Fatal("still waiting")
			}
		})
	}
}
