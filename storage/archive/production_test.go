package archive_test

import (
	"bytes"
	"crypto/md5"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// s3Edge is a fake S3 store. It accepts objects signed with its access key, and records the requests.
type s3Edge struct {
	mu            sync.Mutex
	accessKey     string // the known access key; "": any
	session       string // the session token of accessKey
	code          string // of the refusal of each request; "": none
	status        int
	missingBucket bool
	asked         []*http.Request
}

func (e *s3Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	e.asked = append(e.asked, r)
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>refused</Message></Error>", code)
	}
	if sum := r.Header.Get("Content-Md5"); sum != "" {
		own := md5.Sum(body)
		if sum != base64.StdEncoding.EncodeToString(own[:]) {
			refuse(http.StatusBadRequest, "BadDigest")
			return
		}
	}
	switch {
	case e.code != "":
		refuse(e.status, e.code)
	case e.accessKey != "" && (!strings.Contains(r.Header.Get("Authorization"), "Credential="+e.accessKey+"/") ||
		r.Header.Get("X-Amz-Security-Token") != e.session):
		refuse(http.StatusForbidden, "InvalidAccessKeyId")
	case e.missingBucket && r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case e.missingBucket:
		refuse(http.StatusForbidden, "AccessDenied")
	case r.URL.Query().Has("uploads"):
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
	case r.Method == http.MethodPost:
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><Bucket>videos</Bucket><ETag>e</ETag></CompleteMultipartUploadResult>")
	case r.Method == http.MethodGet:
		refuse(http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", `"e"`)
	}
}

func (e *s3Edge) know(accessKey, session string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.accessKey, e.session = accessKey, session
}

// open opens an archive at the edge.
func (e *s3Edge) open(t *testing.T, change func(*archive.Options)) *archive.Store {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	opts := archive.Options{Endpoint: server.URL, Bucket: "videos", AccessKey: "a", SecretKey: "secret"}
	if change != nil {
		change(&opts)
	}
	store, err := archive.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func put(t *testing.T, store *archive.Store) error {
	t.Helper()
	_, err := store.Put(t.Context(), "a/b", strings.NewReader("text"), 4, archive.PutOptions{})
	return err
}

// metadataEdge is a metadata service of version 2, or STS, that gives a new pair at each question, which is about to expire.
type metadataEdge struct {
	t      *testing.T
	store  *s3Edge
	token  string // of the web identity
	pairs  int
	expire time.Duration
}

func (m *metadataEdge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const session = "metadata-token"
	next := func() (key, expires string) {
		m.pairs++
		key = fmt.Sprintf("ASIA%d", m.pairs)
		m.store.know(key, "session-"+key)
		return key, time.Now().Add(m.expire).UTC().Format(time.RFC3339)
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/":
		if err := r.ParseForm(); err != nil || r.Form.Get("Action") != "AssumeRoleWithWebIdentity" || r.Form.Get("WebIdentityToken") != m.token ||
			r.Form.Get("RoleArn") != "arn:aws:iam::1:role/relay" {
			m.t.Errorf("STS was asked %v, %v", r.Form, err)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		key, expires := next()
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>`+
			`<AccessKeyId>%s</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>session-%s</SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, key, key, expires)
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" && r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "":
		_, _ = io.WriteString(w, session)
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != session:
		w.WriteHeader(http.StatusUnauthorized) // version 1 is switched off
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
		_, _ = io.WriteString(w, "relay")
	case r.URL.Path == "/latest/meta-data/iam/security-credentials/relay":
		key, expires := next()
		_, _ = fmt.Fprintf(w, `{"Code": "Success", "AccessKeyId": %q, "SecretAccessKey": "s", "Token": %q, "Expiration": %q}`, key,
			"session-"+key, expires)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// TestCredentials: without a key of its own the archive finds credentials where programs on AWS do, and new ones before they end.
func TestCredentials(t *testing.T) { //nolint:paralleltest // the environment is the process's
	folder := t.TempDir()
	file, identity := filepath.Join(folder, "credentials"), filepath.Join(folder, "token")
	for path, text := range map[string]string{
		file:     "[relay]\naws_access_key_id = AKIAFILE\naws_secret_access_key = s\n",
		identity: "web-identity",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		env     map[string]string
		known   string
		session string
		pairs   int // that a role gives for two writes, each about to expire
	}{
		"environment": {
			env:   map[string]string{"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "st"},
			known: "AKIAENV", session: "st",
		},
		"shared file":  {env: map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_PROFILE": "relay"}, known: "AKIAFILE"},
		"web identity": {env: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": identity, "AWS_ROLE_ARN": "arn:aws:iam::1:role/relay"}, pairs: 2},
		"instance":     {pairs: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{
				"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN",
				"AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_REGION",
			} {
				t.Setenv(variable, "")
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(folder, "none"))
			for variable, value := range test.env {
				t.Setenv(variable, value)
			}
			edge := &s3Edge{accessKey: test.known, session: test.session}
			role := &metadataEdge{t: t, store: edge, token: "web-identity", expire: time.Millisecond}
			service := httptest.NewServer(role)
			t.Cleanup(service.Close)
			store := edge.open(t, func(o *archive.Options) { o.AccessKey, o.SecretKey, o.CredentialsEndpoint = "", "", service.URL })
			for range 2 {
				if err := put(t, store); err != nil {
					t.Fatal(err)
				}
			}
			if role.pairs < test.pairs || test.pairs == 0 && role.pairs > 0 {
				t.Errorf("a role gave %d pairs, want %d or more", role.pairs, test.pairs)
			}
			service.Close()
			if test.pairs == 0 {
				return
			}
			if err := put(t, store); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "archive.access_key") {
				t.Errorf("without a service for credentials: got %v", err)
			}
		})
	}
}

// TestWrites: encryption and the checks of locked buckets are asked for with everything that is written.
func TestWrites(t *testing.T) {
	t.Parallel()
	for sse, want := range map[string][2]string{"": {"", ""}, "s3": {"AES256", ""}, "kms:arn:aws:kms:x": {"aws:kms", "arn:aws:kms:x"}} {
		edge := new(s3Edge)
		store := edge.open(t, func(o *archive.Options) { o.Encryption, o.ContentMD5 = sse, true })
		_, claimed := store.Claim(t.Context(), "c", "me")
		_, streamed := store.Put(t.Context(), "m", io.LimitReader(zeros{}, 6<<20), -1, archive.PutOptions{})
		_, inPlace := store.Put(t.Context(), "p", bytes.NewReader(make([]byte, 6<<20)), 6<<20, archive.PutOptions{})
		if err := errors.Join(put(t, store), claimed, streamed, inPlace); err != nil {
			t.Fatal(err)
		}
		// The edge passes over conditions and gives nothing back: of the two the right to read counts.
		if err := store.CheckRights(t.Context()); err == nil || !strings.Contains(err.Error(), "s3:GetObject") {
			t.Fatal(err)
		}
		objects := 0
		for _, r := range edge.asked {
			part := r.URL.Query().Has("partNumber")
			if r.Method == http.MethodPut && r.Header.Get("Content-Md5") == "" {
				t.Errorf("%s %s has no MD5", r.Method, r.URL)
			}
			if r.Method == http.MethodPut && !part || r.URL.Query().Has("uploads") {
				objects++
				if got := [2]string{
					r.Header.Get("X-Amz-Server-Side-Encryption"),
					r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"),
				}; got != want {
					t.Errorf("%q: %s %s asks for %q, want %q", sse, r.Method, r.URL, got, want)
				}
			}
		}
		if objects != 6 {
			t.Errorf("%d objects were written, want 6", objects)
		}
	}
}

// TestRefusals: a refusal that an operator can fix is storage.ErrUnavailable, so no task fails. Its message names the key of
// the configuration.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code   string
		status int
		want   string
	}{
		{"InvalidAccessKeyId", 403, "archive.access_key"},
		{"SignatureDoesNotMatch", 403, "archive.secret_key"},
		{"RequestTimeTooSkewed", 403, "the clocks"},
		{"AccessDenied", 403, "lack this right for archive.bucket"},
		{"ExpiredToken", 400, "the credentials"},
		{"AuthorizationHeaderMalformed", 400, "archive.region"},
		{"KMS.NotFoundException", 400, "archive.sse"},
		{"kms:KeyNotFound", 400, "archive.sse"},
		{"NoSuchBucket", 404, "archive.bucket"},
		{"RequestTimeout", 400, "RequestTimeout"}, // of a connection on which too little came; the next may do
	} {
		edge := &s3Edge{code: test.code, status: test.status}
		err := put(t, edge.open(t, nil))
		if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret ") {
			t.Errorf("%s: got %v, want ErrUnavailable that names %s", test.code, err, test.want)
		}
	}
	edge := &s3Edge{missingBucket: true}
	if err := edge.open(t, nil).EnsureBucket(t.Context()); !errors.Is(err, storage.ErrUnavailable) ||
		!strings.Contains(err.Error(), "s3:CreateBucket") {
		t.Errorf("a bucket that may not be made: got %v", err)
	}
	before := len(edge.asked)
	err := edge.open(t, func(o *archive.Options) { o.MayNotCreate = true }).EnsureBucket(t.Context())
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "archive.create_bucket") {
		t.Errorf("a bucket that is not to be made: got %v", err)
	}
	for _, r := range edge.asked[before:] {
		if r.Method == http.MethodPut {
			t.Error("it tried to make the bucket all the same")
		}
	}
}

// TestOwnCA: a store whose certificate another authority signed is refused by a word that names the key.
func TestOwnCA(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(new(s3Edge))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // the one that a server takes
	server.StartTLS()
	t.Cleanup(server.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	for _, test := range []struct {
		roots *x509.CertPool
		want  string
	}{{trusted, ""}, {x509.NewCertPool(), "archive.ca"}} {
		store, err := archive.New(archive.Options{
			Endpoint: server.URL, Bucket: "videos", AccessKey: "a", SecretKey: "b",
			TLS: func() (*tls.Config, error) {
				return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: test.roots}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		err = put(t, store)
		if test.want == "" && err != nil || test.want != "" &&
			(!errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("got %v, want %q", err, test.want)
		}
		_ = store.Close()
	}
}

// TestSchemeOfEndpoint: an endpoint whose scheme is not the store's names the key, and fails no task.
func TestSchemeOfEndpoint(t *testing.T) {
	t.Parallel()
	plain, secured := httptest.NewUnstartedServer(new(s3Edge)), httptest.NewUnstartedServer(new(s3Edge))
	plain.Start()
	secured.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // the one that a server takes
	secured.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secured.Close)
	for endpoint, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1):   "the store does not use TLS: see archive.endpoint",
		strings.Replace(secured.URL, "https:", "http:", 1): "the store uses TLS: see archive.endpoint",
	} {
		store, err := archive.New(archive.Options{Endpoint: endpoint, Bucket: "videos", AccessKey: "a", SecretKey: "b"})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range store.List(t.Context(), "a/") { // a read has no body, which would be cut off before the answer is read
			if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want ErrUnavailable and %q", endpoint, err, want)
			}
		}
		if err := store.CheckRights(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the look at the rights says %v, want %q", endpoint, err, want)
		}
		_ = store.Close()
	}
}

// TestStyle: links show how the bucket is addressed.
func TestStyle(t *testing.T) {
	t.Parallel()
	for endpoint, styles := range map[string]map[string]string{
		"https://s3.eu-central-1.amazonaws.com": {
			"":     "https://videos.s3.eu-central-1.amazonaws.com/",
			"path": "https://s3.eu-central-1.amazonaws.com/videos/", "virtual": "https://videos.s3.eu-central-1.amazonaws.com/",
		},
		"https://store.internal:9000": {
			"auto":    "https://store.internal:9000/videos/",
			"virtual": "https://videos.store.internal:9000/",
		},
	} {
		for style, want := range styles {
			store, err := archive.New(archive.Options{
				Endpoint: endpoint, Bucket: "videos", AccessKey: "a", SecretKey: "b", Region: "eu-central-1",
				Style: style,
			})
			if err != nil {
				t.Fatal(err)
			}
			if link, err := store.Presign(t.Context(), "k", time.Minute); err != nil || !strings.HasPrefix(link, want) {
				t.Errorf("%s, %q: got %s, %v, want %s", endpoint, style, link, err, want)
			}
		}
	}
	for _, bad := range []archive.Options{{Style: "x"}, {Encryption: "aes"}, {Encryption: "kms:"}} {
		bad.Endpoint, bad.Bucket = "http://127.0.0.1:1", "videos"
		if _, err := archive.New(bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
