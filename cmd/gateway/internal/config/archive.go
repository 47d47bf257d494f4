package config

import (
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/storage/archive"
)

// Archive configures the S3 store of finished videos and input media.
type Archive struct {
	archive.Options
	SecretKey    providers.Secret `yaml:"secret_key" doc:"S3 secret key"`
	CreateBucket bool             `yaml:"create_bucket" doc:"make the bucket at the start where it is missing"`
	CA           string           `yaml:"ca" doc:"file of PEM certificates that may sign the store's, where endpoint begins with https://; empty: the system's. Read again when it changes"`
}

// Store returns the options of the archive; buffers is the number for all its writers.
func (a Archive) Store(buffers int) archive.Options {
	opts := a.Options
	opts.SecretKey, opts.MayNotCreate, opts.Buffers = a.SecretKey.Reveal(), !a.CreateBucket, buffers
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
	if key, isKMS := strings.CutPrefix(a.Encryption, archive.EncryptKMS); a.Encryption != "" && a.Encryption != archive.EncryptS3 && (!isKMS || key == "") {
		v.add("archive.sse", "%q is neither s3 nor kms:KEY", a.Encryption)
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
