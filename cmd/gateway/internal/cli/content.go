package cli

import (
	"cmp"
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
	operatedTask

	Output  string `short:"o" help:"File to write, - for standard output; none: the task id with the file extension of the content." placeholder:"FILE"`
	Index   int    `help:"Index of the video, from 0."`
	Variant string `help:"Variant: video, thumbnail or spritesheet." enum:"video,thumbnail,spritesheet" default:"video"`
	Range   string `help:"Fetch only these bytes, such as 0-1023, 1024- or, after =, -500." placeholder:"BYTES"`
}

var oneRange = regexp.MustCompile(`^(\d+-\d*|-\d+)$`)

// Run fetches the content from the archive. If it cannot fetch the whole video, it removes the incomplete file.
func (c *videoContentCmd) Run(ctx context.Context, p *Program) error {
	query, header := url.Values{}, http.Header{}
	switch {
	case c.Index < 0:
		return &UsageError{Err: errors.New("--index: is negative; the first video is 0")}
	case c.Range != "" && !oneRange.MatchString(c.Range):
		return &UsageError{Err: fmt.Errorf("--range: %q is not a range such as 0-1023, 1024- or -500", c.Range)}
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

const toStdout = "-"

// save writes an answer to a file, which gets its name at the end. output is its name: "" means plain with an extension, - the standard
// output.
func (p *Program) save(response *http.Response, plain, output string) error {
	total, err := strconv.ParseInt(response.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		total = -1
	}
	switch output {
	case "":
		output = plain + endingOf(response.Header.Get("Content-Type"))
	case toStdout:
		sum := sha256.New()
		size, err := io.Copy(io.MultiWriter(p.Stdout, sum), response.Body)
		if err != nil {
			return fmt.Errorf("fetch the content: %w", err)
		}
		return fetched{Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}.check(total, response.Header)
	}
	if info, err := os.Stat(output); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("open the output: %s is not a file; - writes to the standard output", output)
	}
	part, err := os.CreateTemp(filepath.Dir(output), filepath.Base(output)+".*.part")
	if err != nil {
		return fmt.Errorf("open the output: %w", err)
	}
	var file fetched
	if _, err = io.Copy(part, response.Body); err == nil {
		file, err = verify(part, output, total, response.Header)
	}
	if err != nil {
		_ = part.Close() // verify may have closed and removed it
		_ = os.Remove(part.Name())
		return fmt.Errorf("fetch the content: %w", err)
	}
	return p.sentence(file, "%s  %s  sha256 %s\n", file.Name, Counted(int(file.Size), "byte"), file.SHA256)
}

func endingOf(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return cmp.Or(map[string]string{
		"video/webm": ".webm", "video/quicktime": ".mov", "image/webp": ".webp", "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif",
		"application/json": ".json", "text/event-stream": ".txt", "text/plain": ".txt", "audio/mpeg": ".mp3", "audio/wav": ".wav",
	}[strings.TrimSpace(kind)], ".mp4")
}
