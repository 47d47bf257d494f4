package archive

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// Options configure a Store.
type Options struct {
	Endpoint string // http(s)://host:port, no path
	// PublicEndpoint is the endpoint in the links of Presign; empty: Endpoint.
	PublicEndpoint string
	Bucket         string
	// AccessKey and SecretKey are static credentials. If AccessKey is empty, the store uses those of the environment, the shared file, or a
	// role, and refreshes them.
	AccessKey string
	SecretKey string
	// CredentialsEndpoint is the source of a role's credentials, STS or the metadata service; empty: that of AWS.
	CredentialsEndpoint string
	Region              string // empty: us-east-1
	// Style is how a bucket is addressed: StyleAuto, StylePath or StyleVirtual.
	Style string
	// Encryption is the encryption of stored objects: "" for the bucket's default, "s3", or "kms:" and the name of a key.
	Encryption string
	// ContentMD5 sends the MD5 of every object and part. A bucket with object lock requires it.
	ContentMD5 bool
	// MayNotCreate prevents EnsureBucket from creating the bucket.
	MayNotCreate bool
	// TLS is called for every new connection to an https endpoint, so that files may change. Nil: the roots of the system.
	TLS     func() (*tls.Config, error)
	Buffers int // of 5 MiB each, shared by all Puts of streamed sources; default 12, at least 2
	// Stall bounds the wait of a Reader for the store's answer or for the next bytes; default 20 s.
	Stall time.Duration
}

// The styles of addressing a bucket.
const (
	StyleAuto    = "auto"    // as the endpoint's vendor requires: virtual for AWS, path for others
	StylePath    = "path"    // https://host/bucket/key
	StyleVirtual = "virtual" // https://bucket.host/key
)

// storeAddress parses the address of a store.
func storeAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.User != nil {
		return nil, errors.New("must be http(s)://host:port")
	}
	return u, nil
}

// The encryptions of stored objects.
const (
	EncryptS3  = "s3"   // by keys of the store
	EncryptKMS = "kms:" // before the name of a key of its key service
)

// serverSide parses Options.Encryption.
func serverSide(text string) (encrypt.ServerSide, error) {
	key, isKMS := strings.CutPrefix(text, EncryptKMS)
	switch {
	case text == "":
		return nil, nil //nolint:nilnil // the bucket's own default
	case text == EncryptS3:
		return encrypt.NewSSE(), nil
	case isKMS && key != "":
		sse, err := encrypt.NewSSEKMS(key, nil)
		if err != nil {
			return nil, fmt.Errorf("archive encryption: %w", err)
		}
		return sse, nil
	}
	return nil, errors.New(`archive encryption: must be "s3" or "kms:" and a key`)
}

// handshakeTimeout bounds a TLS handshake with the store.
const handshakeTimeout = 5 * time.Second
