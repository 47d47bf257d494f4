package archive

import (
	"context"

	"github.com/minio/minio-go/v7"
)

// BeginUpload begins an upload in parts that is never completed.
func (s *Store) BeginUpload(ctx context.Context, key string) error {
	_, err := s.core.NewMultipartUpload(ctx, s.bucket, key, minio.PutObjectOptions{})
	return err
}
