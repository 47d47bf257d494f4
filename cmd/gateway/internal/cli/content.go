package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

type videoContentCmd struct {
	remote

	ID      string `arg:"" help:"Task id."`
	Output  string `short:"o" help:"File to write, - for standard output; none: the task id with the ending of what it is." placeholder:"FILE"`
	Index   int    `help:"Which of several videos, counted from 0."`
	Variant string `help:"What of it: video, thumbnail or spritesheet." enum:"video,thumbnail,spritesheet" default:"video"`
	Range   string `help:"These bytes of it alone, such as 0-1023, 1024- or, after =, -500." placeholder:"BYTES"`
}

var oneRange = regexp.MustCompile(`^(\d+-\d*|-\d+)$`)

// Run fetches the content from the archive. What it has fetched of a video that it cannot fetch whole goes away.
func (c *videoContentCmd) Run(ctx context.Context, p *Program) error {
	query, header := url.Values{}, http.Header{}
	switch {
	case c.Index < 0:
		return &UsageError{Err: errors.New("--index: is negative; the first video is 0")}
	case c.Range != "" && !oneRange.MatchString(c.Range):
		return &UsageError{Err: fmt.Errorf("--range: %q is no range such as 0-1023, 1024- or -500", c.Range)}
	case c.Range != "":
		header.Set("Range", "bytes="+c.Range)
	}
	if c.Index > 0 {
		query.Set("index", strconv.Itoa(c.Index))
	}
	if c.Variant != "video" {
		query.Set("variant", c.Variant)
	}
	client, err := p.operations()
	if err != nil {
		return err
	}
	path := taskPath(c.ID) + "/content"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	plain := c.ID
	if c.Variant != "video" {
		plain += "-" + c.Variant
	}
	if c.Index > 0 {
		plain += "-" + strconv.Itoa(c.Index)
	}
	if c.Range != "" {
		plain += "." + c.Range
	}
	response, err := client.send(ctx, request{method: http.MethodGet, path: path, header: header})
	if err != nil {
		return refusal(err)
	}
	defer response.Body.Close()
	return p.save(response, plain, c.Output)
}

// save writes an answer to an output: a file, - for standard output, or "" for the plain name with the ending of what it is.
func (p *Program) save(response *http.Response, plain, output string) error {
	file := contentFile{name: output, plain: plain, stdout: p.Stdout, sum: sha256.New()}
	size, err := file.take(response)
	if err == nil {
		err = file.check(size)
	}
	if err = file.end(err); err != nil {
		return err
	}
	if file.name == toStdout {
		return nil
	}
	shown := fetched{Name: file.name, Size: size, SHA256: hex.EncodeToString(file.sum.Sum(nil))}
	return p.say(shown, "%s  %s  sha256 %s\n", shown.Name, Counted(int(shown.Size), "byte"), shown.SHA256)
}

// toStdout is the output that is no file.
const toStdout = "-"

// contentFile is where content goes: a file that gets its name when all of it is there, or the standard output.
type contentFile struct {
	name   string // "" until the answer says what it is
	plain  string // name without an ending, for want of another
	stdout io.Writer
	part   *os.File
	header http.Header
	sum    interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

// begin opens the output.
func (f *contentFile) begin(header http.Header) (io.Writer, error) {
	f.header = header
	if f.name == toStdout {
		return io.MultiWriter(f.stdout, f.sum), nil
	}
	if f.name == "" {
		f.name = f.plain + endingOf(header.Get("Content-Type"))
	}
	if info, err := os.Stat(f.name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the output: %s is no file; - writes to the standard output", f.name)
	}
	part, err := os.CreateTemp(filepath.Dir(f.name), filepath.Base(f.name)+".*.part")
	if err != nil {
		return nil, fmt.Errorf("open the output: %w", err)
	}
	f.part = part
	return io.MultiWriter(part, f.sum), nil
}

// take writes the answer to the output.
func (f *contentFile) take(response *http.Response) (int64, error) {
	to, err := f.begin(response.Header)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(to, response.Body)
	if err != nil {
		return size, fmt.Errorf("fetch the content: %w", err)
	}
	return size, nil
}

// check compares the content with the length, and whole content with the digest, that the answer has given.
func (f *contentFile) check(size int64) error {
	if told, err := strconv.ParseInt(f.header.Get("Content-Length"), 10, 64); err == nil && told != size {
		return fmt.Errorf("the content broke off after %d of %d bytes", size, told)
	}
	if want := digest(f.header); want != "" && f.header.Get("Content-Range") == "" && want != hex.EncodeToString(f.sum.Sum(nil)) {
		return fmt.Errorf("the content's SHA-256 is not %s, which the archive noted", want)
	}
	return nil
}

// end gives the file its name, or takes it away where something went wrong.
func (f *contentFile) end(err error) error {
	if f.part == nil {
		return err
	}
	err = errors.Join(err, f.part.Close())
	if err == nil {
		err = os.Rename(f.part.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.part.Name()))
	}
	return nil
}

// endingOf is the ending of files of a content type, as far as tasks make them.
func endingOf(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	switch strings.TrimSpace(kind) {
	case "video/webm":
		return ".webm"
	case "video/quicktime":
		return ".mov"
	case "image/webp":
		return ".webp"
	case "image/jpeg":
		return ".jpg"
	case "image/png":
		return ".png"
	case "image/gif":
		return ".gif"
	case "application/json":
		return ".json"
	case "text/event-stream", "text/plain":
		return ".txt"
	case "audio/mpeg":
		return ".mp3"
	case "audio/wav":
		return ".wav"
	}
	return ".mp4"
}
