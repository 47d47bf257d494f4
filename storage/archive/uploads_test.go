package archive_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"modelrelay/storage/archive"
)

// TestAbortUploads reads the list of unfinished uploads page by page, as S3 documents it, and ends those that are old. A store without
// such a list has none.
func TestAbortUploads(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	item := func(key string, age time.Duration) string {
		return fmt.Sprintf("<Upload><Key>%s</Key><UploadId>u-%s</UploadId><Initiated>%s</Initiated></Upload>", key, key, now.Add(-age).Format(time.RFC3339))
	}
	var mu sync.Mutex
	var ended []string
	listed := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		query := r.URL.Query()
		switch {
		case !listed:
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = io.WriteString(w, "<Error><Code>NotImplemented</Code></Error>")
		case r.Method == http.MethodDelete:
			ended = append(ended, query.Get("uploadId"))
			if query.Get("uploadId") == "u-outputs/gone" { // completed meanwhile
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, "<Error><Code>NoSuchUpload</Code></Error>")
				return
			}
			w.WriteHeader(http.StatusNoContent)
		case query.Get("key-marker") == "":
			_, _ = io.WriteString(w, "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>outputs/b</NextKeyMarker><NextUploadIdMarker>u-outputs/b</NextUploadIdMarker>"+
				item("outputs/a", 2*time.Hour)+item("outputs/b", time.Minute)+"</ListMultipartUploadsResult>")
		default:
			_, _ = io.WriteString(w, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"+item("outputs/gone", 3*time.Hour)+"</ListMultipartUploadsResult>")
		}
	}))
	t.Cleanup(server.Close)
	bucket, err := archive.New(archive.Options{Endpoint: server.URL, Bucket: "videos", AccessKey: "a", SecretKey: "secret-key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	if got, err := bucket.AbortUploads(t.Context(), "outputs/", now.Add(-time.Hour)); err != nil || got != 2 || !slices.Equal(ended, []string{"u-outputs/a", "u-outputs/gone"}) {
		t.Errorf("ended %d, %v, %q", got, err, ended)
	}
	mu.Lock()
	listed = false
	mu.Unlock()
	if got, err := bucket.AbortUploads(t.Context(), "outputs/", now); err != nil || got != 0 {
		t.Errorf("of a store without a list: %d, %v", got, err)
	}
}
