package archive

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"modelrelay/storage"
)

// ownerMost bounds an owner's name, in bytes.
const ownerMost = 1 << 10

// Claim writes the owner's name to the key unless the key has an owner, and returns its owner: exactly one owner gets the key, until it
// is deleted. A repeated claim by the same owner succeeds. After an error the claim may have been made. It requires a store that
// supports If-None-Match, as MinIO and S3 do. On a store that ignores or rejects it, two owners that claim the key at the same moment
// may both get it.
func (s *Store) Claim(ctx context.Context, key, owner string) (holder string, err error) {
	if err := CheckKey(key); err != nil {
		return "", err
	}
	if owner == "" || len(owner) > ownerMost {
		return "", fmt.Errorf("claim %s: owner of %d bytes", key, len(owner))
	}
	if holder, err = s.holder(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		return holder, err
	}
	plain := minio.PutObjectOptions{ContentType: "text/plain"}
	opts := plain
	opts.SetMatchETagExcept("*")
	if err = s.write(ctx, key, []byte(owner), opts); minio.ToErrorResponse(err).StatusCode == http.StatusNotImplemented {
		err = s.write(ctx, key, []byte(owner), plain)
	}
	switch {
	case err == nil:
		return owner, nil
	case minio.ToErrorResponse(err).StatusCode == http.StatusPreconditionFailed:
		return s.holder(ctx, key) // another owner, or this one, whose answer was lost
	default:
		return "", s3Error(ctx, "claim "+key, err)
	}
}

func (s *Store) holder(ctx context.Context, key string) (string, error) {
	name, _, err := s.read(ctx, key, ownerMost)
	return string(name), s3Error(ctx, "claim "+key, err)
}
