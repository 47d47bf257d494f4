package s3

import (
	"context"
	"crypto/md5" //nolint:gosec // S3's ETags are MD5 sums
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rclone/gofakes3"
)

// CreateMultipartUpload makes the folder of an upload's parts. The file "meta" in it has what the object will have.
func (d *disk) CreateMultipartUpload(_ context.Context, _, _ string, meta map[string]string) (gofakes3.UploadID, error) {
	id := rand.Text()
	text, err := json.Marshal(meta)
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(d.incoming, id), 0o700); err != nil {
		return "", err
	}
	return gofakes3.UploadID(id), os.WriteFile(filepath.Join(d.incoming, id, "meta"), text, 0o600)
}

// UploadPart stores a part. The name of its file has its ETag: a part that is replaced stays until the upload ends.
func (d *disk) UploadPart(
	_ context.Context, _, _ string, id gofakes3.UploadID, number int, size int64, body io.Reader,
) (etag string, err error) {
	file, err := os.CreateTemp(d.incoming, "")
	if err != nil {
		return "", err
	}
	defer discard(file)
	_, sum, err := receive(file, body, size)
	if err != nil {
		return "", err
	}
	return `"` + hex.EncodeToString(sum) + `"`, os.Rename(file.Name(), d.part(id, number, sum))
}

func (d *disk) part(id gofakes3.UploadID, number int, sum []byte) string {
	return filepath.Join(d.incoming, string(id), strconv.Itoa(number)+"-"+hex.EncodeToString(sum))
}

// CompleteMultipartUpload makes an object of the parts. The parts stay when it fails.
func (d *disk) CompleteMultipartUpload(
	ctx context.Context, bucket, key string, id gofakes3.UploadID, request *gofakes3.CompleteMultipartUploadRequest,
) (version gofakes3.VersionID, etag string, err error) {
	r := &record{Key: key}
	text, err := os.ReadFile(filepath.Join(d.incoming, string(id), "meta"))
	if err != nil {
		return "", "", gofakes3.ErrNoSuchUpload
	}
	if err := json.Unmarshal(text, &r.Meta); err != nil {
		return "", "", err
	}
	file, err := os.CreateTemp(d.incoming, "")
	if err != nil {
		return "", "", err
	}
	defer discard(file)
	sums, last := md5.New(), 0 //nolint:gosec // as S3 makes its ETags
	for _, part := range request.Parts {
		if part.PartNumber <= last {
			return "", "", gofakes3.ErrInvalidPartOrder
		}
		last = part.PartNumber
		sum, err := hex.DecodeString(strings.Trim(part.ETag, `"`))
		if err != nil {
			return "", "", gofakes3.ErrInvalidPart
		}
		length, err := appendFile(file, d.part(id, part.PartNumber, sum))
		if errors.Is(err, fs.ErrNotExist) {
			return "", "", gofakes3.ErrInvalidPart
		}
		if err != nil {
			return "", "", err
		}
		r.Size += length
		_, _ = sums.Write(sum)
	}
	r.MD5 = sums.Sum(nil)
	if err := d.publish(ctx, file, bucket, r); err != nil {
		return "", "", err
	}
	return "", r.etag(), d.AbortMultipartUpload(ctx, bucket, key, id)
}

// AbortMultipartUpload removes an upload with its parts.
func (d *disk) AbortMultipartUpload(_ context.Context, _, _ string, id gofakes3.UploadID) error {
	return os.RemoveAll(filepath.Join(d.incoming, string(id)))
}

// appendFile appends the content of the file at path.
func appendFile(to *os.File, path string) (int64, error) {
	from, err := os.Open(path) //nolint:gosec // a file of ours
	if err != nil {
		return 0, err
	}
	defer from.Close() //nolint:errcheck // it was only read
	return io.Copy(to, from)
}
