package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/schollz/progressbar/v3"

	"modelrelay/storage"
)

type fetched struct {
	Name   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// check compares the file with the gateway's headers: the length, unless total is negative, and the digest of the whole.
func (f fetched) check(total int64, announced http.Header) error {
	expected := digest(announced)
	switch {
	case total >= 0 && f.Size != total:
		return fmt.Errorf("the file has %d bytes, the gateway announced %d", f.Size, total)
	case expected != "" && expected != f.SHA256 && announced.Get("Content-Range") == "":
		return fmt.Errorf("the file's SHA-256 is %s, the gateway announced %s", f.SHA256, expected)
	}
	return nil
}

// downloadTries is the maximum number of consecutive tries without a new byte.
const downloadTries = 5

func videoContent(id string, index int) string {
	path := "/v1/videos/" + url.PathEscape(id) + "/content"
	if index > 0 {
		path += "?index=" + strconv.Itoa(index)
	}
	return path
}

// download fetches a path into output. It collects the bytes in a file next to the output, with a hash of the ETag in its name. So it joins
// only bytes of the same video, and continues an earlier incomplete download. When length and digest are correct, the file gets the name of
// the output.
func (c *videoClient) download(ctx context.Context, path, output string) (fetched, error) {
	get := request{method: http.MethodGet, path: path, tries: clientTries}
	resp, err := c.do(ctx, get)
	if err != nil {
		return fetched{}, err
	}
	defer func() { resp.Body.Close() }()
	announced, etag, total := resp.Header, resp.Header.Get("ETag"), resp.ContentLength
	resumable := etag != "" && !strings.HasPrefix(etag, "W/") && total > 0
	tag := sha256.Sum256([]byte(etag))
	part, err := os.OpenFile(output+"."+hex.EncodeToString(tag[:4])+".part", os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // may be shared
	if err != nil {
		return fetched{}, fmt.Errorf("open the output: %w", err)
	}
	defer func() { _ = part.Close() }() // after a success, it was closed before
	have, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return fetched{}, fmt.Errorf("read the output: %w", err)
	}
	defer c.draw(total, "download", progressbar.OptionShowBytes(true), progressbar.OptionUseIECUnits(true))()
	for idle := 0; ; idle++ {
		if resumable && have > 0 {
			have = min(have, total-1) // the last byte of a complete file is read again, because a range cannot be empty
			get.header = http.Header{"Range": {"bytes=" + strconv.FormatInt(have, 10) + "-"}, "If-Range": {etag}}
		}
		if idle > 0 || get.header != nil {
			resp.Body.Close()
			next, err := c.do(ctx, get)
			if err != nil {
				return fetched{}, err
			}
			resp = next
		}
		if resp.StatusCode != http.StatusPartialContent {
			have = 0
		}
		_, err := part.Seek(have, io.SeekStart)
		if err := errors.Join(err, part.Truncate(have)); err != nil {
			return fetched{}, fmt.Errorf("position the output: %w", err)
		}
		into := io.Writer(part)
		if total > 0 {
			_ = c.bar.Set64(have)
			into = io.MultiWriter(part, c.bar)
		}
		n, err := io.Copy(into, resp.Body)
		have += n
		var disk *fs.PathError
		switch {
		case err == nil && (total < 0 || have >= total):
			return verify(part, output, total, announced)
		case errors.As(err, &disk) || ctx.Err() != nil:
			return fetched{}, err
		case resumable && n > 0:
			idle = 0 // continue immediately
		case idle+1 == downloadTries:
			return fetched{}, fmt.Errorf("the download broke off after %d bytes: %w; the same command continues it", have, err)
		default:
			if err := storage.Sleep(ctx, clientPause); err != nil {
				return fetched{}, err
			}
		}
	}
}

// verify checks the length and the digest, if the gateway's headers have them, and gives the file the name of the output.
func verify(part *os.File, output string, total int64, announced http.Header) (file fetched, err error) {
	_, err = part.Seek(0, io.SeekStart)
	hash := sha256.New()
	size, failed := io.Copy(hash, part)
	if err := errors.Join(err, failed); err != nil {
		return fetched{}, fmt.Errorf("read the output: %w", err)
	}
	file = fetched{Name: output, Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}
	err = file.check(total, announced)
	if err != nil {
		return file, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	if err := errors.Join(part.Close(), os.Rename(part.Name(), output)); err != nil {
		return file, fmt.Errorf("name the output: %w", err)
	}
	return file, nil
}

// digest returns the SHA-256 in hex of the answer's headers: from Repr-Digest (RFC 9530), or from an ETag of 64 hexadecimal digits.
func digest(header http.Header) string {
	if _, after, ok := strings.Cut(header.Get("Repr-Digest"), "sha-256=:"); ok {
		text, _, _ := strings.Cut(after, ":")
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && len(sum) == sha256.Size {
			return hex.EncodeToString(sum)
		}
	}
	tag := strings.ToLower(strings.Trim(header.Get("ETag"), `"`))
	if sum, err := hex.DecodeString(tag); err == nil && len(sum) == sha256.Size {
		return tag
	}
	return ""
}
