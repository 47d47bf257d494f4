package e2e_test

import (
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/storagetest"
)

// TestStore runs the archive's conformance suite on the S3 server of the development stack.
func TestStore(t *testing.T) {
	t.Parallel()
	s := stack.SharedS3(t)
	storagetest.Archive(t, func(t *testing.T) storagetest.Store {
		t.Helper()
		archive := s.Archive()
		t.Cleanup(func() { _ = archive.Close() })
		return archive
	})
}
