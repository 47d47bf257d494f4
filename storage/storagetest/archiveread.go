package storagetest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/iotest"
	"time"
)

func testSeek(t *testing.T, store Store, prefix string) {
	t.Helper()
	key, body := prefix+"video.mp4", content(7*mebi+77)
	put := mustPut(t, store, key, body)
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer closeReader(t, r)
	if got := r.Object(); got.Size != int64(len(body)) || got.ETag != put.ETag || got.ContentType != "video/mp4" {
		t.Errorf("object %+v", got)
	}
	if err := iotest.TestReader(&firstBytes{r: r, n: 40_000}, body[:40_000]); err != nil {
		t.Error(err)
	}
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same places in every run
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
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.Header.Set("Range", "bytes=5000000-5999999")
	answer := httptest.NewRecorder()
	http.ServeContent(answer, request, "video.mp4", time.Time{}, r)
	if answer.Code != http.StatusPartialContent || !bytes.Equal(answer.Body.Bytes(), body[5000000:6000000]) {
		t.Errorf("served range: status %d, %d bytes", answer.Code, answer.Body.Len())
	}
}

// firstBytes is the first n bytes of a reader, with Seek.
type firstBytes struct {
	r  io.ReadSeeker
	n  int64
	at int64
}

// Read implements io.Reader.
func (f *firstBytes) Read(p []byte) (int, error) {
	if f.at >= f.n {
		return 0, io.EOF
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.n-f.at)])
	f.at += int64(n)
	return n, err
}

// Seek implements io.Seeker.
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
