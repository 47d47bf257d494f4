package cli

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

type videoDownloadCmd struct {
	callerFlags

	ID     string `arg:"" help:"Task id."`
	Output string `short:"o" help:"File to write; none: the task id with .mp4." placeholder:"FILE"`
	Index  int    `help:"Which of several videos, counted from 0."`
}

// Run fetches the video. An earlier download of it that broke off is continued.
func (c *videoDownloadCmd) Run(ctx context.Context, p *Program) error {
	if c.Index < 0 {
		return &UsageError{Err: errors.New("--index: is negative; the first video is 0")}
	}
	client, err := c.client(p)
	if err != nil {
		return err
	}
	output := c.Output
	if output == "" {
		output = c.ID + ".mp4"
	}
	file, err := client.download(ctx, c.ID, c.Index, output)
	if err != nil {
		return err
	}
	return p.say(file, "%s  %d bytes  sha256 %s\n", file.Name, file.Size, file.SHA256)
}

// fetched is a downloaded file.
type fetched struct {
	Name   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// downloadTries is how often in a row a download may break off without a byte.
const downloadTries = 5

// errBroken says that the connection ended before the whole file was here.
var errBroken = errors.New("the download broke off")

// download fetches one output of a task. The bytes gather in a file beside the output whose name holds their ETag, so
// that only bytes of the same video are ever joined; the output appears when length and digest are right.
func (v *videoClient) download(ctx context.Context, id string, index int, output string) (fetched, error) {
	bar := v.progress()
	defer bar.end()
	idle := 0
	for {
		before, file, err := v.downloadOnce(ctx, id, index, output, bar)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, errBroken) || ctx.Err() != nil {
			return fetched{}, err
		}
		idle++
		if before < file.Size {
			idle = 0 // something came: go on at once
		}
		if idle == downloadTries {
			return fetched{}, fmt.Errorf("%w; the same command goes on where it stopped", err)
		}
		if idle > 0 {
			if err := Sleep(ctx, clientPause); err != nil {
				return fetched{}, err
			}
		}
	}
}

// downloadOnce goes on with the download until its end or until the connection breaks: errBroken. It returns how much
// was there before, and in file.Size how much there is now.
func (v *videoClient) downloadOnce(ctx context.Context, id string, index int, output string, bar *progress) (before int64, file fetched, err error) {
	path := "/v1/videos/" + url.PathEscape(id) + "/content"
	if index > 0 {
		path += "?index=" + strconv.Itoa(index)
	}
	resp, err := v.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return 0, fetched{}, err
	}
	defer func() { resp.Body.Close() }()
	etag, total := resp.Header.Get("ETag"), resp.ContentLength
	digests := resp.Header
	part, err := os.OpenFile(partName(output, etag), os.O_RDWR|os.O_CREATE, 0o644) //nolint:gosec // a video for its owner to share
	if err != nil {
		return 0, fetched{}, fmt.Errorf("open the output: %w", err)
	}
	defer func() { _ = part.Close() }() // where it matters, it was closed before
	before, err = part.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fetched{}, fmt.Errorf("look at the output: %w", err)
	}
	resumable := etag != "" && !strings.HasPrefix(etag, "W/") && total > 0
	switch {
	case resumable && before == total:
		resp.Body.Close() // all is here; what remains is the check
		resp.Body = http.NoBody
	case resumable && before > 0 && before < total:
		resp.Body.Close()
		header := http.Header{"Range": {"bytes=" + strconv.FormatInt(before, 10) + "-"}, "If-Range": {etag}}
		rest, err := v.do(ctx, request{method: http.MethodGet, path: path, header: header})
		if err != nil {
			return before, fetched{Size: before}, err
		}
		resp = rest
	}
	if resp.StatusCode != http.StatusPartialContent && resp.Body != http.NoBody {
		before = 0
		if err := errors.Join(part.Truncate(0), seekStart(part)); err != nil {
			return 0, fetched{}, fmt.Errorf("empty the output: %w", err)
		}
	}
	shown := &shownReader{r: resp.Body, have: before, total: total, bar: bar}
	if _, err := io.Copy(part, shown); err != nil {
		if shown.broken {
			err = fmt.Errorf("%w: %w", errBroken, err)
		}
		return before, fetched{Size: shown.have}, err
	}
	if total >= 0 && shown.have < total {
		return before, fetched{Size: shown.have}, fmt.Errorf("%w after %d of %d bytes", errBroken, shown.have, total)
	}
	file, err = verify(part, total, digests)
	if err != nil {
		return before, file, errors.Join(err, part.Close(), os.Remove(part.Name()))
	}
	file.Name = output
	if err := errors.Join(part.Close(), os.Rename(part.Name(), output)); err != nil {
		return before, file, fmt.Errorf("name the output: %w", err)
	}
	return before, file, nil
}

// verify checks length and, where the gateway named one, digest.
func verify(part *os.File, total int64, header http.Header) (fetched, error) {
	if err := seekStart(part); err != nil {
		return fetched{}, fmt.Errorf("read the output: %w", err)
	}
	hash := sha256.New()
	size, err := io.Copy(hash, part)
	if err != nil {
		return fetched{}, fmt.Errorf("read the output: %w", err)
	}
	file := fetched{Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}
	if total >= 0 && size != total {
		return file, fmt.Errorf("the file has %d bytes, the gateway announced %d", size, total)
	}
	if want := digest(header); want != "" && want != file.SHA256 {
		return file, fmt.Errorf("the file's SHA-256 is %s, the gateway announced %s", file.SHA256, want)
	}
	return file, nil
}

// digest is the SHA-256 in hex that the answer names: in Repr-Digest (RFC 9530), or as an ETag of 64 hexadecimal digits.
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

func partName(output, etag string) string {
	if etag == "" {
		return output + ".part"
	}
	sum := sha256.Sum256([]byte(etag))
	return output + "." + hex.EncodeToString(sum[:4]) + ".part"
}

func seekStart(file *os.File) error {
	_, err := file.Seek(0, io.SeekStart)
	return err
}

// shownReader shows how far a download is, and tells a broken connection from a full disk.
type shownReader struct {
	r           io.Reader
	have, total int64
	bar         *progress
	broken      bool
}

func (s *shownReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.have += int64(n)
	s.broken = err != nil && !errors.Is(err, io.EOF)
	if s.total > 0 {
		// Tenths on a log, every percent on a terminal.
		percent := int(s.have * 100 / s.total)
		if !s.bar.terminal {
			percent -= percent % 10
		}
		s.bar.show("download", percent, humanize.IBytes(uint64(s.total)))
	}
	return n, err
}
