// Package clip has the media that fakes answer with: a video with bytes of its own for each output, sounds, painted pictures.
package clip

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
)

//go:embed clip.mp4 thumbnail.webp spritesheet.jpg tone.aac tone.flac tone.mp3 tone.opus tone.wav
var clipFiles embed.FS

// Seconds is the length of the video.
const Seconds = "3"

// Clip is the video every job ends in, marked so that each has its own bytes.
type Clip struct {
	video       []byte
	Thumbnail   []byte
	Spritesheet []byte
	hashed      hash.Cloner // the state after video

	mu      sync.Mutex
	digests map[string]string // by mark and size; hashing a huge content takes seconds
}

// New returns the clip.
func New() *Clip {
	c := &Clip{
		video:       File("clip.mp4"),
		Thumbnail:   File("thumbnail.webp"),
		Spritesheet: File("spritesheet.jpg"),
		digests:     map[string]string{},
	}
	h := sha256.New()
	h.Write(c.video)
	c.hashed, _ = h.(hash.Cloner) // crypto/sha256 promises it
	return c
}

// File returns an embedded file; each name is in the embed line above.
func File(name string) []byte {
	b, err := clipFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return b
}

// Tail returns what follows the clip in the content of one output: a free box with the job's name and, when the content
// is to be larger than that, the head of a second free box that reaches to its end. Players skip free boxes (ISO/IEC 14496-12, 8.1.2).
func (c *Clip) Tail(mark string, size int64) (tail []byte, total int64) {
	tail = appendBox(nil, mark)
	total = int64(len(c.video) + len(tail))
	const head = 16 // size 1 says that 64 bits of size follow the type
	switch rest := size - total; {
	case rest <= 0:
	case rest < head:
		tail = appendBox(nil, mark+string(bytes.Repeat([]byte{' '}, int(rest))))
		total = size
	default:
		tail = binary.BigEndian.AppendUint32(tail, 1)
		tail = append(tail, "free"...)
		tail = binary.BigEndian.AppendUint64(tail, uint64(rest))
		total = size
	}
	return tail, total
}

func appendBox(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(8+len(text)))
	return append(append(b, "free"...), text...)
}

// Content is one output of a job, of any size in little memory.
type Content struct {
	head, tail []byte
	filler     []byte // repeated to the end
	at, size   int64
}

// fillerBlock is a prime, so that filler does not repeat at any power of two.
const fillerBlock = 65521

// Content is the clip marked with mark, filled up to size bytes where that is more.
func (c *Clip) Content(mark string, size int64) *Content {
	tail, total := c.Tail(mark, size)
	o := &Content{head: c.video, tail: tail, size: total}
	if total > int64(len(o.head)+len(tail)) {
		o.filler = make([]byte, fillerBlock)
		_, _ = rand.NewChaCha8(sha256.Sum256(tail)).Read(o.filler) // never fails
	}
	return o
}

// Read implements [io.Reader].
func (o *Content) Read(b []byte) (int, error) {
	if o.at >= o.size {
		return 0, io.EOF
	}
	var n int
	head, tail := int64(len(o.head)), int64(len(o.tail))
	switch {
	case o.at < head:
		n = copy(b, o.head[o.at:])
	case o.at < head+tail:
		n = copy(b, o.tail[o.at-head:])
	default:
		n = copy(b[:min(int64(len(b)), o.size-o.at)], o.filler[(o.at-head-tail)%fillerBlock:])
	}
	o.at += int64(n)
	return n, nil
}

// Seek implements [io.Seeker].
func (o *Content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += o.at
	case io.SeekEnd:
		offset += o.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of the content")
	}
	o.at = offset
	return offset, nil
}

// Digest returns the SHA-256 of one output's content in hex.
func (c *Clip) Digest(mark string, size int64) string {
	o := c.Content(mark, size)
	id := string(o.tail) + strconv.FormatInt(o.size, 10)
	c.mu.Lock()
	known := c.digests[id]
	c.mu.Unlock()
	if known != "" {
		return known
	}
	h, err := c.hashed.Clone()
	if err != nil {
		panic(err) // a SHA-256 always clones
	}
	o.at = int64(len(o.head))
	_, _ = io.Copy(h, o) // neither side fails
	sum := hex.EncodeToString(h.Sum(nil))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.digests[id] = sum
	return sum
}
