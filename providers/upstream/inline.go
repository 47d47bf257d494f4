package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"modelrelay/providers"
)

const (
	// longString is how much of each string is read from an answer that may contain a video, in bytes.
	longString = 64 << 10
	// inlineBuffer is the read buffer for such an answer, in bytes.
	inlineBuffer = 64 << 10
)

// cutter reads JSON and cuts each string after longString bytes, so that the members around a video in Base64 can be read whole.
type cutter struct {
	from io.Reader
	// inside: in a string, of which length bytes were read. dropping: the rest of the string is skipped.
	inside, dropping bool
	length           int
	// escaped: after a backslash. digits is how many digits of a \u escape follow.
	escaped bool
	digits  int
}

// Read implements io.Reader.
func (c *cutter) Read(p []byte) (int, error) {
	for {
		n, err := c.from.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			if c.keeps(b) {
				kept = append(kept, b)
			}
		}
		if len(kept) > 0 || err != nil || len(p) == 0 {
			return len(kept), err
		}
	}
}

// keeps reports whether a byte stays. It cuts no escape in two.
func (c *cutter) keeps(b byte) bool {
	const digits = 4
	switch {
	case !c.inside:
		c.inside, c.dropping, c.length = b == '"', false, 0
		return true
	case c.escaped:
		c.escaped = false
		if b == 'u' {
			c.digits = digits
		}
	case c.digits > 0:
		c.digits--
	case b == '"':
		c.inside = false
		return true
	default:
		c.dropping = c.length >= longString
		c.escaped = b == '\\'
	}
	c.length++
	return !c.dropping
}

// OpenInline streams a video that the answer contains as Base64: the one at index output, counted from 0, among members of this name.
func (j *Jobs) OpenInline(ctx context.Context, to providers.Target, r JobRequest, member string, output int) (providers.Video, error) {
	resp, err := j.send(ctx, to, r)
	if err != nil {
		return providers.Video{}, err
	}
	video, err := inlineVideo(resp.Body, member, output)
	if err != nil {
		_ = resp.Body.Close()
		if ctx.Err() != nil {
			return providers.Video{}, brokenOff(ctx, err)
		}
		return providers.Video{}, err
	}
	return video, nil
}

func inlineVideo(body io.ReadCloser, member string, output int) (providers.Video, error) {
	from := bufio.NewReaderSize(body, inlineBuffer)
	for {
		if err := nextText(from, member); err != nil {
			if errors.Is(err, io.EOF) {
				return providers.Video{}, providers.Faultf(providers.NotFound, "The upstream no longer has the video.")
			}
			return providers.Video{}, BrokenAnswer("cut off", err)
		}
		text := &jsonText{from: from}
		data := base64.NewDecoder(base64.StdEncoding, text)
		head := make([]byte, headLength)
		n, _ := io.ReadFull(data, head) // an error recurs below
		kind := resultType(head[:n])
		if !strings.HasPrefix(kind, "video/") {
			kind = ""
		}
		switch {
		case kind != "" && output == 0:
			return providers.Video{Body: opened{io.MultiReader(bytes.NewReader(head[:n]), data), body}, Length: -1, ContentType: kind}, nil
		case kind != "":
			output--
		}
		if _, err := io.Copy(io.Discard, text); err != nil {
			return providers.Video{}, BrokenAnswer("cut off", err)
		}
	}
}

// nextText reads up to the text of the next member of this name with a string value.
func nextText(from *bufio.Reader, member string) error {
	for {
		b, err := from.ReadByte()
		if err != nil {
			return err
		}
		if b != '"' {
			continue
		}
		text := &jsonText{from: from}
		name, err := io.ReadAll(io.LimitReader(text, int64(len(member)+1)))
		if err == nil {
			_, err = io.Copy(io.Discard, text)
		}
		if err != nil {
			return err
		}
		if string(name) != member {
			continue
		}
		if b, err = next(from); err != nil {
			return err
		}
		if b != ':' {
			continue
		}
		if b, err = next(from); err != nil {
			return err
		}
		if b == '"' {
			return nil
		}
	}
}

// next returns the next byte that is not white space.
func next(from *bufio.Reader) (byte, error) {
	for {
		b, err := from.ReadByte()
		if err != nil || !unicode.IsSpace(rune(b)) {
			return b, err
		}
	}
}

// jsonText reads the text of a JSON string after its opening quote. Escaped characters beyond ASCII become "?"; names and Base64 have none.
type jsonText struct {
	from *bufio.Reader
	done bool
}

// Read implements io.Reader.
func (t *jsonText) Read(p []byte) (int, error) {
	if t.done {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := t.from.Peek(1); err != nil {
		return 0, broken(err)
	}
	chunk, _ := t.from.Peek(min(t.from.Buffered(), len(p))) // is buffered
	n := bytes.IndexAny(chunk, `"\`)
	if n < 0 {
		n = len(chunk)
	}
	if n == 0 {
		return t.mark(p)
	}
	copy(p, chunk[:n])
	_, _ = t.from.Discard(n) // is buffered
	return n, nil
}

func (t *jsonText) mark(p []byte) (int, error) {
	const number = 4 // digits
	b, err := t.from.ReadByte()
	if err != nil {
		return 0, broken(err)
	}
	if b == '"' {
		t.done = true
		return 0, io.EOF
	}
	if b, err = t.from.ReadByte(); err != nil {
		return 0, broken(err)
	}
	switch b {
	case 'b', 'f', 'n', 'r', 't': // Base64 may be in lines
		b = '\n'
	case 'u':
		digits := make([]byte, number)
		if _, err := io.ReadFull(t.from, digits); err != nil {
			return 0, broken(err)
		}
		code, err := strconv.ParseUint(string(digits), 16, 16)
		if err != nil {
			return 0, err
		}
		if b = '?'; code <= unicode.MaxASCII {
			b = byte(code)
		}
	}
	p[0] = b
	return 1, nil
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
