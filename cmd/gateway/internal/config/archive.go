package config

import (
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/storage/archive"
)

// Archive is the S3 store of finished videos and input media.
type Archive struct {
	Endpoint  string           `yaml:"endpoint" doc:"http(s)://host:port of an S3 store; of AWS https://s3.<region>.amazonaws.com"`
	Bucket    string           `yaml:"bucket" doc:"bucket name"`
	AccessKey string           `yaml:"access_key" doc:"S3 access key; empty: as programs on AWS find theirs, in the environment, the shared file, by a web identity token, or by the role of the container or the instance, refreshed before they expire"`
	SecretKey providers.Secret `yaml:"secret_key" doc:"S3 secret key"`
	// CredentialsEndpoint is STS's or the metadata service's.
	CredentialsEndpoint string `yaml:"credentials_endpoint" doc:"http(s)://host:port of STS or of the metadata service, where access_key is empty and a role gives the credentials; empty: AWS's own"`
	Region              string `yaml:"region" doc:"S3 region"`
	Style               string `yaml:"style" doc:"how the bucket is addressed: path (https://host/bucket), virtual (https://bucket.host), or auto: virtual at AWS, else path"`
	CreateBucket        bool   `yaml:"create_bucket" doc:"make the bucket at the start where it is missing"`
	SSE                 string `yaml:"sse" doc:"server-side encryption of written objects: s3, or kms:KEY with the id or ARN of a key; empty: the bucket's default"`
	ContentMD5          bool   `yaml:"content_md5" doc:"send the MD5 of what is written, which a bucket with object lock wants whose objects are locked by default"`
	CA                  string `yaml:"ca" doc:"file of PEM certificates that may sign the store's, where endpoint begins with https://; empty: the system's. Read again when it changes"`
	// PublicEndpoint is where clients reach the store.
	PublicEndpoint string `yaml:"public_endpoint" doc:"http(s)://host:port at which clients reach the store, for the links of video.presigned_urls; empty: archive.endpoint"`
}

// Options are what the archive is opened by; buffers are those of all its writers.
func (a Archive) Options(buffers int) archive.Options {
	opts := archive.Options{
		Endpoint: a.Endpoint, PublicEndpoint: a.PublicEndpoint, Bucket: a.Bucket, Region: a.Region,
		AccessKey: a.AccessKey, SecretKey: a.SecretKey.Reveal(), CredentialsEndpoint: a.CredentialsEndpoint,
		Style: a.Style, Encryption: a.SSE, ContentMD5: a.ContentMD5, MayNotCreate: !a.CreateBucket, Buffers: buffers,
	}
	if a.CA != "" {
		opts.TLS = certs.NewSource(certs.Files{CA: a.CA}).Config
	}
	return opts
}

func checkArchive(v *validator, a Archive) {
	v.store("archive.endpoint", a.Endpoint)
	if a.PublicEndpoint != "" {
		v.store("archive.public_endpoint", a.PublicEndpoint)
	}
	if a.CredentialsEndpoint != "" {
		v.store("archive.credentials_endpoint", a.CredentialsEndpoint)
	}
	v.filled("archive.bucket", a.Bucket)
	switch {
	case a.AccessKey == "" && a.SecretKey != "":
		v.add("archive.access_key", "is missing beside secret_key")
	case a.AccessKey != "" && a.SecretKey == "":
		v.add("archive.secret_key", "is missing beside access_key")
	}
	v.oneOf("archive.style", a.Style, archive.StyleAuto, archive.StylePath, archive.StyleVirtual)
	if key, isKMS := strings.CutPrefix(a.SSE, archive.EncryptKMS); a.SSE != "" && a.SSE != archive.EncryptS3 && (!isKMS || key == "") {
		v.add("archive.sse", "%q is neither s3 nor kms:KEY", a.SSE)
	}
	if a.CA == "" {
		return
	}
	if !strings.HasPrefix(a.Endpoint, "https://") {
		v.add("archive.ca", "wants archive.endpoint to begin with https://")
	}
	if problem := (certs.Files{CA: a.CA}).Check(); problem != nil {
		v.add("archive.ca", "%v", problem.Err)
	}
}
