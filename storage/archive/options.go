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
	Endpoint       string `yaml:"endpoint" doc:"http(s)://host:port of an S3 store; for AWS https://s3.<region>.amazonaws.com"`
	PublicEndpoint string `yaml:"public_endpoint" doc:"http(s)://host:port at which clients reach the store, for the links of video.presigned_urls; empty: archive.endpoint"`
	Bucket         string `yaml:"bucket" required:"true" doc:"bucket name"`
	AccessKey      string `yaml:"access_key" doc:"S3 access key. Empty: credentials of the environment, the shared file, a web identity token, or the role of the container or instance, as usual on AWS; the gateway refreshes them before they expire"`
	SecretKey      string
	// CredentialsEndpoint is the source of a role's credentials.
	CredentialsEndpoint string `yaml:"credentials_endpoint" doc:"http(s)://host:port of STS or of the metadata service, if access_key is empty and a role has the credentials; empty: AWS's own address"`
	Region              string `yaml:"region" doc:"S3 region"` // empty: us-east-1
	Style               string `yaml:"style" enum:"auto,path,virtual" doc:"form of the bucket's address: path (https://host/bucket), virtual (https://bucket.host), or auto (virtual at AWS, else path)"`
	Encryption          string `yaml:"sse" doc:"server-side encryption of written objects: s3, or kms:KEY with the id or ARN of a key; empty: the bucket's default"`
	ContentMD5          bool   `yaml:"content_md5" doc:"send the MD5 of written objects; required by a bucket with object lock and a default retention"`
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
