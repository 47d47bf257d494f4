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

// TestAbortUploads: AbortUploads reads the list of incomplete uploads page by page, as S3 documents it, and aborts the old ones. A store
// without such a list, or one that answers NoSuchUpload, has none.
func TestAbortUploads(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	item := func(key string, age time.Duration) string {
		return fmt.Sprintf("<Upload><Key>%s</Key><UploadId>u-%s</UploadId><Initiated>%s</Initiated></Upload>", key, key,
			now.Add(-age).Format(time.RFC3339))
	}
	var mu sync.Mutex
	var ended []string
	refusal, status := "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		query := r.URL.Query()
		switch {
		case refusal != "":
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<Error><Code>"+refusal+"</Code></Error>")
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
			_, _ = io.WriteString(w, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"+item("outputs/gone", 3*time.Hour)+
				"</ListMultipartUploadsResult>")
		}
	}))
	t.Cleanup(server.Close)
	bucket, err := archive.New(archive.Options{Endpoint: server.URL, Bucket: "videos", AccessKey: "a", SecretKey: "secret-key"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	if got, err := bucket.AbortUploads(t.Context(), "outputs/", now.Add(-time.Hour)); err != nil || got != 2 ||
		!slices.Equal(ended, []string{"u-outputs/a", "u-outputs/gone"}) {
		t.Errorf("ended %d, %v, %q", got, err, ended)
	}
	for _, answer := range []struct {
		code   string
		status int
		works  bool
	}{
		{"NotImplemented", http.StatusNotImplemented, true},
		{"NoSuchUpload", http.StatusNotFound, true},
		{"AccessDenied", http.StatusForbidden, false},
	} {
		mu.Lock()
		refusal, status = answer.code, answer.status
		mu.Unlock()
		if got, err := bucket.AbortUploads(t.Context(), "outputs/", now); (err == nil) != answer.works || got != 0 {
			t.Errorf("%s to the list: %d, %v", answer.code, got, err)
		}
	}
}
