package archive

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"

	"modelrelay/storage"
)

// probeFolder holds the objects of CheckRights.
const probeFolder = "probe/"

// ErrNoConditions reports that the store ignores If-None-Match: two owners that claim a key at the same moment may both get it.
var ErrNoConditions = errors.New("the store ignores If-None-Match")

// CheckRights tries each operation of the archive with an object that it then deletes: write (in one piece, with a condition, in parts)
// with the encryption and the checksums of all objects, read, list, delete. The error names the denied S3 action. ErrNoConditions: no right
// is missing.
func (s *Store) CheckRights(ctx context.Context) error {
	key := probeFolder + rand.Text()
	body := []byte("written by gateway config check\n")
	steps := []struct {
		action string
		do     func() error
	}{
		{"s3:PutObject", func() error { return s.write(ctx, key, body, minio.PutObjectOptions{}) }},
		{"s3:PutObject (If-None-Match)", func() error {
			opts := minio.PutObjectOptions{}
			opts.SetMatchETagExcept("*")
			switch err := s.write(ctx, key, body, opts); minio.ToErrorResponse(err).StatusCode {
			case http.StatusPreconditionFailed:
				return nil
			case http.StatusNotImplemented:
				return ErrNoConditions
			default:
				return cmp.Or(err, ErrNoConditions)
			}
		}},
		{"s3:GetObject", func() error {
			got, _, err := s.read(ctx, key, int64(len(body))+1)
			if err == nil && !bytes.Equal(got, body) {
				err = errors.New("the object that was read differs from the one that was written")
			}
			return err
		}},
		{"s3:ListBucket", func() error {
			for _, err := range s.List(ctx, key) {
				return err
			}
			return errors.New("the object that was written is not listed")
		}},
		{"s3:ListBucketMultipartUploads", func() error {
			_, err := s.AbortUploads(ctx, key, time.Time{})
			return err
		}},
		{"s3:AbortMultipartUpload", func() error {
			upload, err := s.core.NewMultipartUpload(ctx, s.bucket, key+"-parts", minio.PutObjectOptions{ServerSideEncryption: s.sse})
			if err != nil {
				return err
			}
			return s.core.AbortMultipartUpload(ctx, s.bucket, key+"-parts", upload)
		}},
		{"s3:DeleteObject", func() error { return s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}) }},
	}
	var noConditions error
	for i, step := range steps {
		err := step.do()
		if err == nil {
			continue
		}
		if errors.Is(err, ErrNoConditions) { // no right is missing
			noConditions = fmt.Errorf("%s: %w", step.action, err)
			continue
		}
		if i == 0 && minio.ToErrorResponse(err).StatusCode == 0 {
			err = s.answerWithoutBody(ctx, key, err)
		}
		if i > 0 {
			_ = s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{}) // may be denied too
		}
		if errors.Is(err, storage.ErrUnavailable) {
			return fmt.Errorf("%s: %w", step.action, err)
		}
		return s3Error(ctx, step.action, err)
	}
	return noConditions
}

// answerWithoutBody returns the store's error for a request without a body, else err: one with a body may break before the answer.
func (s *Store) answerWithoutBody(ctx context.Context, key string, err error) error {
	for _, answer := range s.List(ctx, key) {
		if answer != nil {
			return answer
		}
	}
	return err
}

// Clock returns the store's time from the Date header of an answer, to the second.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, s.core.EndpointURL().String(), http.NoBody)
	if err != nil {
		return time.Time{}, err
	}
	response, err := s.transport.RoundTrip(request) // unsigned: every answer has a date
	if err != nil {
		return time.Time{}, s3Error(ctx, "read the store's clock", err)
	}
	response.Body.Close()
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: no date in its answer: %w", err)
	}
	return at, nil
}
