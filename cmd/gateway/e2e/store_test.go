package e2e_test

import (
	"path/filepath"
	"testing"

	"modelrelay/storage/archive"
	"modelrelay/storage/storagetest"
)

// TestStore runs the archive's conformance suite on the S3 server of the development stack.
func TestStore(t *testing.T) {
	t.Parallel()
	at := freeAddr(t)
	server := launch(t, "s3", bin.dev, "s3", "--listen", at, "--data", filepath.Join(t.TempDir(), "s3"),
		"--access-key", accessKey, "--secret-key", secretKey, "--bucket", bucket)
	server.ready(t)
	storagetest.Archive(t, func(t *testing.T) storagetest.Store {
		t.Helper()
		bucket, err := archive.New(archive.Options{
			Endpoint: "http://" + at, Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey, Region: "us-east-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bucket.Close() })
		return bucket
	})
}
