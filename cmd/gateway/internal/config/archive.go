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
	CreateBucket bool             `yaml:"create_bucket" doc:"create the bucket at the start if it does not exist"`
	CA           string           `yaml:"ca" type:"file" doc:"PEM file of the CAs that sign the store's certificate; requires an endpoint that begins with https://. Empty: the system's CAs. The gateway reads a changed file again"`
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
	switch {
	case a.AccessKey == "" && a.SecretKey != "":
		v.add("archive.access_key", "is required with secret_key")
	case a.AccessKey != "" && a.SecretKey == "":
		v.add("archive.secret_key", "is required with access_key")
	}
	if key, isKMS := strings.CutPrefix(a.Encryption, archive.EncryptKMS); a.Encryption != "" && a.Encryption != archive.EncryptS3 && (!isKMS || key == "") {
		v.add("archive.sse", "%q is neither s3 nor kms:KEY", a.Encryption)
	}
	if a.CA == "" {
		return
	}
	if !strings.HasPrefix(a.Endpoint, "https://") {
		v.add("archive.ca", "requires an archive.endpoint that begins with https://")
	}
	if problem := (certs.Files{CA: a.CA}).Check(); problem != nil {
		v.add("archive.ca", "%v", problem.Err)
	}
}
