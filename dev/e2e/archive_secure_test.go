package e2e_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testport"
)

// tlsStore stands before a store and ends TLS. It notes the writes that come.
type tlsStore struct {
	endpoint string // https://localhost:port

	mu     sync.Mutex
	writes []http.Header
}

func newTLSStore(t *testing.T, behind, certFile, keyFile string) *tlsStore {
	t.Helper()
	f := new(tlsStore)
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind}) // with the host that the signature is for
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Count(r.URL.Path, "/") > 1 && !r.URL.Query().Has("partNumber") {
			f.mu.Lock()
			f.writes = append(f.writes, r.Header.Clone())
			f.mu.Unlock()
		}
		pass.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // refused handshakes are what some tests want
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	f.endpoint = "https://localhost:" + port
	return f
}

// objects are the headers of the objects that were written so far.
func (f *tlsStore) objects() []http.Header {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]http.Header(nil), f.writes...)
}

// archiveSection is a section for the stack's store behind TLS; bucket and more are a test's own.
func archiveSection(endpoint, bucket, more string) string {
	return fmt.Sprintf("{endpoint: %q, bucket: %s, access_key: %s, secret_key: %s%s}", endpoint, bucket, stack.AccessKey, stack.SecretKey,
		more)
}

// keeps has a gateway make a video, hand it out and delete it.
func keeps(t *testing.T, g *stack.Gateway, prompt string) {
	t.Helper()
	id := g.Create(t.Context(), "sora-2-fast", prompt).ID
	g.AwaitCompleted(id, stack.TaskTimeout)
	if answer := g.Content(t, id, ""); answer.Status != http.StatusOK || len(answer.Body) < 1000 {
		t.Errorf("the video: %d, %d bytes", answer.Status, len(answer.Body))
	}
	if answer := g.Call(t, stack.Request{Method: http.MethodDelete, Path: "/v1/videos/" + id}); answer.Status != http.StatusOK {
		t.Errorf("delete: %d %s", answer.Status, answer.Body)
	}
	if answer := g.Call(t, stack.Request{Path: "/v1/videos/" + id}); answer.Status != http.StatusNotFound {
		t.Errorf("after the delete: %d", answer.Status)
	}
}

// TestArchiveSecured: over TLS with an authority of one's own, in a bucket that was made beforehand, with sums of what is written.
func TestArchiveSecured(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s, p := stack.Shared(t), newPKI(t)
	front := newTLSStore(t, s.S3At, p.serverCert, p.serverKey)
	g := s.Configure(stack.GatewayOptions{Video: "poll_min: 200ms, poll_max: 1s"})
	rewriteSection(t, g, "archive", archiveSection(front.endpoint, s.Bucket,
		", ca: "+p.servers.File+", style: path, create_bucket: false, content_md5: true"))
	g.Start()
	if stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect"); err != nil {
		t.Errorf("%v\n%s%s", err, stdout, stderr)
	}
	keeps(t, g, "over TLS")
	objects := front.objects()
	if len(objects) < 2 {
		t.Errorf("%d objects were written over TLS", len(objects))
	}
	for _, header := range objects {
		if header.Get("Content-Md5") == "" {
			t.Errorf("an object without its MD5: %v", header)
		}
	}
}

// TestArchiveBadInput: whatever is wrong with the way to the store, the command that tries it ends with an error that names the key
// or the file, and no secret.
func TestArchiveBadInput(t *testing.T) {
	t.Parallel()
	s, p := stack.SharedS3(t), newPKI(t)
	front := newTLSStore(t, s.S3At, p.serverCert, p.serverKey)
	expired, expiredKey := p.files("expired-server")
	p.servers.Sign(t, "localhost", p.past, expired, expiredKey)
	expiredFront := newTLSStore(t, s.S3At, expired, expiredKey)
	ca := ", create_bucket: false, ca: " + p.servers.File
	unreadable := filepath.Join(p.folder, "unreadable.pem")
	if err := os.Mkdir(unreadable, 0o700); err != nil { // of a file's rights the superuser takes no notice
		t.Fatal(err)
	}
	right := archiveSection(front.endpoint, s.Bucket, ca)
	for name, test := range map[string]struct {
		section string
		code    int    // the command's; 1 where something else is missing in any case
		want    string // "": the store is well
	}{
		"right":                {right, 1, ""},
		"unknown authority":    {archiveSection(front.endpoint, s.Bucket, ", ca: "+p.clients.File), 1, "see archive.ca"},
		"system's authorities": {archiveSection(front.endpoint, s.Bucket, ""), 1, "see archive.ca"},
		"another name": {
			archiveSection(strings.Replace(front.endpoint, "localhost", "127.0.0.1", 1), s.Bucket, ca), 1,
			"archive.endpoint",
		},
		"certificate expired": {archiveSection(expiredFront.endpoint, s.Bucket, ca), 1, "certificate has expired"},
		"a store without TLS": {archiveSection("https://"+s.S3At, s.Bucket, ca), 1, "archive.endpoint"},
		"a store with TLS":    {archiveSection(strings.Replace(front.endpoint, "https", "http", 1), s.Bucket, ""), 1, "archive.endpoint"},
		"authority without TLS": {
			archiveSection("http://"+s.S3At, s.Bucket, ca), 2,
			"archive.ca: requires an archive.endpoint that begins with https://",
		},
		"unreadable authority": {
			archiveSection(front.endpoint, s.Bucket, ", ca: "+unreadable), 2,
			"archive.ca: the file cannot be read: read " + unreadable,
		},
		"authority is not there": {
			archiveSection(front.endpoint, s.Bucket, ", ca: nowhere.pem"), 2,
			"archive.ca: the file cannot be read: open ",
		},
		"wrong secret key":        {strings.Replace(right, stack.SecretKey, "wrong-secret", 1), 1, "archive.secret_key"},
		"wrong access key":        {strings.Replace(right, "access_key: "+stack.AccessKey, "access_key: nobody", 1), 1, "archive.access_key"},
		"a bucket that is not":    {archiveSection(front.endpoint, "nobodys", ca), 1, "see archive.bucket"},
		"a style that is none":    {archiveSection(front.endpoint, s.Bucket, ca+", style: sideways"), 2, "archive.style"},
		"encryption that is none": {archiveSection(front.endpoint, s.Bucket, ca+", sse: rot13"), 2, "archive.sse"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := s.Configure(stack.GatewayOptions{})
			rewriteSection(t, g, "archive", test.section)
			stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect")
			said := stdout + stderr
			well := strings.Contains(said, "The key may write, read, list and delete")
			if exitCode(err) != test.code || !strings.Contains(said, test.want) || well != (test.want == "") ||
				strings.Contains(said, stack.SecretKey) {
				t.Errorf("%v: %s\nwant code %d, %s", err, said, test.code, test.want)
			}
		})
	}
}

// storeKey is the one key of the store's key service in TestArchiveProduction.
const storeKey = "videos-key"

// storeDomain is the one below which TestArchiveVirtualHosts' store has its buckets. No name service knows it.
const storeDomain = "store.test"

// newKeyedMinIO is MinIO with a key service of one key, and with a domain for buckets.
func newKeyedMinIO(t *testing.T, addr string) {
	t.Helper()
	service := func(cmd *exec.Cmd) error {
		cmd.Env = append(os.Environ(), "MINIO_DOMAIN="+storeDomain,
			"MINIO_KMS_SECRET_KEY="+storeKey+":"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
		return cmd.Start()
	}
	stack.LaunchBy(t, service, "minio", stack.Bin.Dev, "s3", "--parts", string(stack.Production), "--listen", addr, "--data", t.TempDir(),
		"--access-key", stack.AccessKey, "--secret-key", stack.SecretKey, "--bucket", stack.DefaultBucket).AwaitReady(t)
}

// TestArchiveProduction: on MinIO, in buckets that encrypt with keys of the store's or of its key service, that keep versions and that
// lock what is written.
func TestArchiveProduction(t *testing.T) {
	t.Parallel()
	stack.NeedProduction(t)
	p, addr := newPKI(t), testport.Address(t)
	newKeyedMinIO(t, addr)
	front := newTLSStore(t, addr, p.serverCert, p.serverKey)
	behind, err := minio.New(addr, &minio.Options{Creds: credentials.NewStaticV4(stack.AccessKey, stack.SecretKey, "")})
	if err != nil {
		t.Fatal(err)
	}
	const versioned, locked = "versioned", "locked"
	days, mode, unit := uint(1), minio.Governance, minio.Days
	for _, step := range []func() error{
		func() error { return behind.MakeBucket(t.Context(), versioned, minio.MakeBucketOptions{}) },
		func() error { return behind.EnableVersioning(t.Context(), versioned) },
		func() error {
			return behind.MakeBucket(t.Context(), locked, minio.MakeBucketOptions{ObjectLocking: true})
		},
		func() error { return behind.SetObjectLockConfig(t.Context(), locked, &mode, &days, &unit) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	s := stack.Shared(t)
	ca := ", create_bucket: false, ca: " + p.servers.File
	for name, test := range map[string]struct {
		bucket, more string
		sse          string // of every object
		versions     bool   // outlive a delete
	}{
		"keys of the store's":  {stack.DefaultBucket, ", sse: s3", "AES256", false},
		"the key service's":    {stack.DefaultBucket, ", sse: kms:" + storeKey, "aws:kms", false},
		"versions":             {versioned, ", sse: s3", "AES256", true},
		"locked by default":    {locked, ", content_md5: true", "", true},
		"locked and encrypted": {locked, ", content_md5: true, sse: kms:" + storeKey, "aws:kms", true},
	} {
		g := s.Configure(stack.GatewayOptions{Video: "poll_min: 200ms, poll_max: 1s"})
		rewriteSection(t, g, "archive", archiveSection(front.endpoint, test.bucket, ca+test.more))
		g.Start()
		if stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect"); err != nil {
			t.Errorf("%s: %v\n%s%s", name, err, stdout, stderr)
		}
		versions := func() iter.Seq[minio.ObjectInfo] {
			return behind.ListObjectsIter(t.Context(), test.bucket,
				minio.ListObjectsOptions{Recursive: true, WithVersions: test.versions, Prefix: "outputs/"})
		}
		earlier := make(map[string]bool)
		for object := range versions() {
			if object.Err != nil {
				t.Fatal(object.Err)
			}
			earlier[object.Key+" "+object.VersionID] = true
		}
		before := len(front.objects())
		keeps(t, g, name)
		written := front.objects()[before:]
		for _, header := range written {
			if got := header.Get("X-Amz-Server-Side-Encryption"); got != test.sse {
				t.Errorf("%s: an object is written with the encryption %q, want %q", name, got, test.sse)
			}
		}
		outputs := 0
		for object := range versions() {
			switch {
			case object.Err != nil:
				t.Fatal(object.Err)
			case earlier[object.Key+" "+object.VersionID] || object.IsDeleteMarker:
				continue
			case object.IsLatest || !test.versions:
				t.Errorf("%s: %s is there after the delete", name, object.Key)
			}
			outputs++
		}
		if len(written) < 2 || (outputs > 0) != test.versions {
			t.Errorf("%s: %d objects were written, and %d versions of outputs outlive the delete", name, len(written), outputs)
		}
		g.Stop(t)
	}
	// A key that the service does not have fails no task.
	g := s.Configure(stack.GatewayOptions{})
	rewriteSection(t, g, "archive", archiveSection(front.endpoint, stack.DefaultBucket, ca+", sse: kms:nobodys"))
	if stdout, stderr, err := g.Command(t.Context(), "config", "check", "--connect"); err == nil ||
		!strings.Contains(stdout+stderr, "archive.sse") {
		t.Errorf("a key that is not there: %v\n%s%s", err, stdout, stderr)
	}
}

// TestArchiveVirtualHosts: on MinIO, with the bucket as a part of the host's name. The store's own name leads nowhere, so whatever
// would address the bucket by a path fails.
func TestArchiveVirtualHosts(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	stack.NeedProduction(t)
	if out, err := exec.CommandContext(t.Context(), "unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("the gateway needs a view of /etc/hosts of its own: %v %s", err, out)
	}
	addr := testport.Address(t)
	newKeyedMinIO(t, addr)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	hosts, program := filepath.Join(dir, "hosts"), filepath.Join(dir, "gateway")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --mount /bin/sh -c 'mount --bind %s /etc/hosts && exec \"$@\"' - %s \"$@\"\n", hosts,
		stack.Bin.Gateway)
	if err := errors.Join(
		os.WriteFile(hosts, []byte("127.0.0.1 localhost "+stack.DefaultBucket+"."+storeDomain+"\n"), 0o600),
		os.WriteFile(program, []byte(script), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	s := stack.Shared(t)
	g := s.Configure(stack.GatewayOptions{Binary: program, Video: "poll_min: 200ms, poll_max: 1s, presigned_urls: true"})
	rewriteSection(t, g, "archive", archiveSection("http://"+net.JoinHostPort(storeDomain, port), stack.DefaultBucket, ", style: virtual"))
	g.Start()
	keeps(t, g, "by name")

	// The link that a client gets has the bucket in its host too, and the store takes its signature.
	id := g.Create(t.Context(), "sora-2-fast", "by link").ID
	g.AwaitCompleted(id, stack.TaskTimeout)
	var task struct{ URL string }
	if answer := g.Call(t, stack.Request{Path: "/v1/video/generations/" + id}); json.Unmarshal(answer.Body, &task) != nil ||
		!strings.HasPrefix(task.URL, "http://"+stack.DefaultBucket+"."+storeDomain+":"+port+"/") {
		t.Fatalf("the task: %s", answer.Body)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, task.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if video, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || len(video) < 1000 {
		t.Errorf("the link: %d, %d bytes, %v", resp.StatusCode, len(video), err)
	}
}
