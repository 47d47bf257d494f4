package archive_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/storagetest"
)

func TestMemoryArchive(t *testing.T) {
	t.Parallel()
	storagetest.Archive(t, func(*testing.T) storagetest.Store { return storagetest.NewMemoryArchive() })
}

// TestS3Archive runs the suite against the store that MODELRELAY_TEST_S3 names as http://access:secret@host:port/bucket.
// The end-to-end test TestStore runs the same suite against the store of the development stack.
func TestS3Archive(t *testing.T) {
	t.Parallel()
	bucket := s3Archive(t)
	storagetest.Archive(t, func(*testing.T) storagetest.Store { return bucket })
}

func s3Archive(tb testing.TB) *archive.Store {
	tb.Helper()
	where := os.Getenv("MODELRELAY_TEST_S3") // tests only
	if where == "" {
		tb.Skip("no S3 store is named in MODELRELAY_TEST_S3")
	}
	u, err := url.Parse(where)
	if err != nil {
		tb.Fatal(err)
	}
	secret, _ := u.User.Password()
	bucket, err := archive.New(archive.Options{
		Endpoint: u.Scheme + "://" + u.Host, Bucket: strings.Trim(u.Path, "/"), AccessKey: u.User.Username(), SecretKey: secret,
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = bucket.Close() })
	if err := bucket.EnsureBucket(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return bucket
}

func TestOpenArchiveOptions(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{"", "127.0.0.1:9000", "ftp://h", "http://", "http://h/path", "http://u:p@h", "http://h?x=1", "://"} {
		if _, err := archive.New(archive.Options{Endpoint: endpoint, Bucket: "videos"}); err == nil {
			t.Errorf("endpoint %q: no error", endpoint)
		}
	}
	if _, err := archive.New(archive.Options{Endpoint: "http://127.0.0.1:9000/"}); err == nil {
		t.Error("no bucket: no error")
	}
}

func TestArchiveIsAway(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/away/") { // the port may have been another test's, whose client still tries
			asked.Add(1)
		}
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
	}))
	t.Cleanup(away.Close)
	bucket, err := archive.New(archive.Options{Endpoint: away.URL, Bucket: "away", AccessKey: "AKIDEXAMPLE", SecretKey: "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var v any
	_, put := bucket.Put(ctx, "a", strings.NewReader("x"), 1, archive.PutOptions{})
	_, open := bucket.Open(ctx, "a")
	var list error
	for _, err := range bucket.List(ctx, "a/") {
		list = err
	}
	for name, err := range map[string]error{
		"ping": bucket.Ping(ctx), "put": put, "open": open, "get": bucket.GetJSON(ctx, "a", &v), "delete": bucket.Delete(ctx, "a"),
		"delete prefix": bucket.DeletePrefix(ctx, "a/"), "list": list, "bucket": bucket.EnsureBucket(ctx),
	} {
		if !errors.Is(err, storage.ErrUnavailable) || strings.Contains(err.Error(), "AKIDEXAMPLE") {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
	if n := asked.Load(); n == 0 || n > 8*3 {
		t.Errorf("8 calls sent %d requests, want at most three each", n)
	}
	if _, err := bucket.Presign(ctx, "a", time.Minute); err != nil {
		t.Errorf("presign, which sends no request: %v", err)
	}
}

// TestPresignedForThePublic: links are for the address at which clients reach the store, and signed for it; the store
// itself is asked elsewhere.
func TestPresignedForThePublic(t *testing.T) {
	t.Parallel()
	open := func(endpoint, public string) *archive.Store {
		bucket, err := archive.New(archive.Options{
			Endpoint: endpoint, PublicEndpoint: public, Bucket: "videos", AccessKey: "AKIDEXAMPLE", SecretKey: "secret",
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bucket.Close() })
		return bucket
	}
	link := func(bucket *archive.Store) *url.URL {
		text, err := bucket.Presign(t.Context(), "outputs/a b.mp4", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	private, outside := open("http://10.0.0.7:9000", "https://media.example.com"), open("https://media.example.com", "")
	for { // a signature holds the second in which it was made
		got, want := link(private), link(outside)
		if got.Query().Get("X-Amz-Date") != want.Query().Get("X-Amz-Date") {
			continue
		}
		if got.String() != want.String() || got.Host != "media.example.com" || got.Scheme != "https" || got.Query().Get("X-Amz-Signature") == "" {
			t.Errorf("got %s, want what the store signs at that address: %s", got, want)
		}
		break
	}
	if got := link(open("http://10.0.0.7:9000", "")); got.Host != "10.0.0.7:9000" || got.Scheme != "http" {
		t.Errorf("without a public address: %s", got)
	}
	for _, bad := range []string{"media.example.com", "https://media.example.com/videos", "ftp://media.example.com"} {
		_, err := archive.New(archive.Options{Endpoint: "http://10.0.0.7:9000", PublicEndpoint: bad, Bucket: "videos"})
		if err == nil || !strings.Contains(err.Error(), "public endpoint") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	// What is not a link goes to the store's own address.
	asked := make(chan string, 1)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Host:
		default:
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(store.Close)
	if err := open(store.URL, "https://media.example.com").Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if host := <-asked; "http://"+host != store.URL {
		t.Errorf("asked at %s", host)
	}
}

// BenchmarkArchivePut stores a stream of 256 MiB and prints what its process used.
func BenchmarkArchivePut(b *testing.B) {
	bucket := s3Archive(b)
	const size = 256 << 20
	b.SetBytes(size)
	before := storagetest.CPU(b)
	for b.Loop() {
		source := io.LimitReader(zeros{}, size)
		if _, err := bucket.Put(b.Context(), "storagetest/put", source, -1, archive.PutOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((storagetest.CPU(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/1024, "MiB-maxrss")
	if err := bucket.Delete(b.Context(), "storagetest/put"); err != nil {
		b.Fatal(err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestClaimWithoutConditions: a store that refuses conditional puts keeps claims as well as it can, and the refusal does
// not hold every submit up.
func TestClaimWithoutConditions(t *testing.T) {
	t.Parallel()
	var kept atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := kept.Load()
		switch {
		case r.Method == http.MethodGet && name != nil:
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			_, _ = io.WriteString(w, *name)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
		case r.Header.Get("If-None-Match") != "":
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = io.WriteString(w, `<Error><Code>NotImplemented</Code></Error>`)
		default:
			body, _ := io.ReadAll(r.Body)
			text := string(body)
			kept.Store(&text)
		}
	}))
	t.Cleanup(server.Close)
	bucket, err := archive.New(archive.Options{Endpoint: server.URL, Bucket: "videos", AccessKey: "a", SecretKey: "b"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bucket.Close() })
	for _, owner := range []string{"first", "second"} {
		if holder, err := bucket.Claim(t.Context(), "tasks/x/attempts/1.begun", owner); err != nil || holder != "first" {
			t.Errorf("%s claims: got %q, %v", owner, holder, err)
		}
	}
}
