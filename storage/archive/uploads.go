package archive

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// uploadsPage is the page length for incomplete uploads, the largest of S3.
const uploadsPage = 1000

// AbortUploads aborts the multipart uploads below a prefix that began before a time, and returns their number. Killed processes leave them.
// A store that does not list uploads has none. rclone's S3 server answers NoSuchUpload for a bucket without uploads.
func (s *Store) AbortUploads(ctx context.Context, prefix string, before time.Time) (aborted int, err error) {
	keyMarker, idMarker := "", ""
	for {
		page, err := s.core.ListMultipartUploads(ctx, s.bucket, prefix, keyMarker, idMarker, "", uploadsPage)
		if answer, ok := errors.AsType[minio.ErrorResponse](err); ok &&
			(answer.StatusCode == http.StatusNotImplemented || answer.Code == minio.NoSuchUpload) {
			return aborted, nil
		}
		if err != nil {
			return aborted, s3Error(ctx, "list uploads of "+prefix+"*", err)
		}
		for _, upload := range page.Uploads {
			if !upload.Initiated.Before(before) {
				continue
			}
			if err := s.core.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID); err != nil &&
				minio.ToErrorResponse(err).Code != minio.NoSuchUpload {
				return aborted, s3Error(ctx, "abort the upload of "+upload.Key, err)
			}
			aborted++
		}
		if !page.IsTruncated || page.NextKeyMarker == "" {
			return aborted, nil
		}
		keyMarker, idMarker = page.NextKeyMarker, page.NextUploadIDMarker
	}
}
