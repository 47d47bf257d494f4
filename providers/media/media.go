// Package media reads the duration of a sound or video file from the file's headers, without decoding it: WAV, FLAC, Ogg (Opus and
// Vorbis), MP3, AAC (ADTS), MP4 with M4A and MOV, and WebM with Matroska.
//
// Files come from clients and vendors: every length in them is checked against the file's size, and the work is linear in it.
// The package imports nothing of the product.
package media

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"time"
)

const (
	// longest bounds the duration in a header.
	longest = 1000 * time.Hour
	// maxParts bounds the boxes or elements of a file that are read: an hour of Opus in WebM has 180,000 blocks.
	maxParts = 500_000
)

// Length returns the duration of the file of size bytes. It reports false if the format is unknown, or the headers have no duration.
func Length(file io.ReaderAt, size int64) (time.Duration, bool) {
	f := &reader{file: file, size: size}
	head := bytes.Clone(f.bytes(0, 12))
	var seconds float64
	switch {
	case len(head) < 12:
	case string(head[:4]) == "RIFF" && string(head[8:]) == "WAVE":
		seconds = f.wav()
	case string(head[:4]) == "fLaC":
		seconds = f.flac()
	case string(head[:4]) == "OggS":
		seconds = f.ogg()
	case string(head[4:8]) == "ftyp", string(head[4:8]) == "moov", string(head[4:8]) == "wide", string(head[4:8]) == "mdat":
		seconds = f.mp4(0, size, 0)
	case binary.BigEndian.Uint32(head) == ebmlHeader:
		seconds = f.webm()
	default:
		seconds = f.frames()
	}
	if !(seconds > 0 && seconds <= longest.Seconds()) { // also for NaN
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

type reader struct {
	file  io.ReaderAt
	size  int64
	parts int // read so far
	small [32]byte
}

// bytes returns n bytes at an offset, fewer at the file's end, and none outside of the file. The next call may overwrite them.
func (f *reader) bytes(at int64, n int) []byte {
	if at < 0 || at >= f.size {
		return nil
	}
	n = int(min(int64(n), f.size-at))
	b := f.small[:]
	if n > len(b) {
		b = make([]byte, n)
	}
	b = b[:n]
	read, _ := f.file.ReadAt(b, at) // a file that cannot be read has no length
	return b[:read]
}

// more counts a part of the file, and reports whether it may be read.
func (f *reader) more() bool {
	f.parts++
	return f.parts <= maxParts
}

// wav divides the size of the samples by their bytes per second.
func (f *reader) wav() float64 {
	var perSecond uint32
	for at := int64(12); f.more(); {
		chunk := f.bytes(at, 20)
		if len(chunk) < 8 {
			return 0
		}
		length := int64(binary.LittleEndian.Uint32(chunk[4:]))
		switch string(chunk[:4]) {
		case "fmt ":
			if len(chunk) == 20 {
				perSecond = binary.LittleEndian.Uint32(chunk[16:])
			}
		case "data":
			if perSecond == 0 {
				return 0
			}
			return float64(min(length, f.size-at-8)) / float64(perSecond) // a streaming recorder writes the largest length
		}
		at += 8 + length + length&1
	}
	return 0
}

// flac reads STREAMINFO, the first block (RFC 9639, section 8.2).
func (f *reader) flac() float64 {
	info := f.bytes(8, 18)
	if len(info) < 18 {
		return 0
	}
	packed := binary.BigEndian.Uint64(info[10:])
	rate, samples := packed>>44, packed&(1<<36-1)
	if rate == 0 {
		return 0
	}
	return float64(samples) / float64(rate)
}

// oggTail is how many bytes of the file's end are searched for the header of the last page, which has at most 65,307 bytes (RFC 3533).
const oggTail = 66 << 10

// ogg divides the last page's position by the rate. That of Opus is always 48 kHz, after the samples to skip (RFC 7845).
func (f *reader) ogg() float64 {
	head := f.bytes(0, 512)
	rate, skip := 0.0, 0.0
	if at := bytes.Index(head, []byte("OpusHead")); at >= 0 && len(head) >= at+12 {
		rate, skip = 48000, float64(binary.LittleEndian.Uint16(head[at+10:]))
	} else if at := bytes.Index(head, []byte("\x01vorbis")); at >= 0 && len(head) >= at+16 {
		rate = float64(binary.LittleEndian.Uint32(head[at+12:]))
	}
	tail := f.bytes(max(0, f.size-oggTail), oggTail)
	at := bytes.LastIndex(tail, []byte("OggS"))
	if rate == 0 || at < 0 || len(tail) < at+14 {
		return 0
	}
	return (float64(binary.LittleEndian.Uint64(tail[at+6:])) - skip) / rate
}

// mp4Depth bounds how deep boxes are opened: the header of a film is at the second level.
const mp4Depth = 2

// mp4 searches for the movie header between two offsets (ISO/IEC 14496-12).
func (f *reader) mp4(at, end int64, depth int) float64 {
	for at < end && f.more() {
		head := f.bytes(at, 16)
		if len(head) < 8 {
			return 0
		}
		length, body := int64(binary.BigEndian.Uint32(head)), int64(8)
		switch {
		case length == 1 && len(head) == 16:
			length, body = int64(min(binary.BigEndian.Uint64(head[8:]), math.MaxInt64)), 16
		case length == 0:
			length = end - at
		}
		if length < body {
			return 0
		}
		switch string(head[4:8]) {
		case "moov":
			if depth < mp4Depth {
				return f.mp4(at+body, at+min(length, end-at), depth+1)
			}
		case "mvhd":
			return movieHeader(f.bytes(at+body, 32))
		}
		at += min(length, end-at)
	}
	return 0
}

// movieHeader reads the time scale and duration of an mvhd box, whose version decides their width.
func movieHeader(b []byte) float64 {
	if len(b) < 32 {
		return 0
	}
	scale, duration := binary.BigEndian.Uint32(b[12:]), uint64(binary.BigEndian.Uint32(b[16:]))
	if b[0] == 1 {
		scale, duration = binary.BigEndian.Uint32(b[20:]), binary.BigEndian.Uint64(b[24:])
	}
	if scale == 0 {
		return 0
	}
	return float64(duration) / float64(scale)
}

// The elements of EBML that lead to a length (RFC 9559).
const (
	ebmlHeader     = 0x1A45DFA3
	ebmlSegment    = 0x18538067
	ebmlInfo       = 0x1549A966
	ebmlScale      = 0x2AD7B1
	ebmlDuration   = 0x4489
	ebmlCluster    = 0x1F43B675
	ebmlTimestamp  = 0xE7
	ebmlSimple     = 0xA3
	ebmlBlockGroup = 0xA0
	ebmlBlock      = 0xA1
)

// webm reads the duration, or, in a recording of unknown length, the time of the last block.
func (f *reader) webm() float64 {
	scale, duration, cluster, last := 1e6, 0.0, 0.0, 0.0
	for at := int64(0); at < f.size && f.more(); {
		head := f.bytes(at, 12)
		id, n := ebmlNumber(head, false)
		if n == 0 {
			break
		}
		length, m := ebmlNumber(head[n:], true)
		if m == 0 {
			break
		}
		at += int64(n + m)
		switch id {
		case ebmlSegment, ebmlInfo, ebmlCluster, ebmlBlockGroup:
			continue // its elements follow
		case ebmlScale:
			scale = float64(ebmlUint(f.bytes(at, 8), length))
		case ebmlDuration:
			duration = ebmlFloat(f.bytes(at, 8), length)
		case ebmlTimestamp:
			cluster = float64(ebmlUint(f.bytes(at, 8), length))
		case ebmlSimple, ebmlBlock:
			if block := f.bytes(at, 4); len(block) == 4 {
				last = max(last, cluster+float64(int16(binary.BigEndian.Uint16(block[1:]))))
			}
		}
		if length > uint64(f.size) {
			break
		}
		at += int64(length)
	}
	if duration == 0 {
		duration = last
	}
	return duration * scale / 1e9
}

// ebmlNumber reads a number of variable width, with or without the bit that shows its width. n is its width, 0 if there is none.
func ebmlNumber(b []byte, plain bool) (number uint64, n int) {
	if len(b) == 0 || b[0] == 0 {
		return 0, 0
	}
	n = 1
	for mask := byte(0x80); b[0]&mask == 0; mask >>= 1 {
		n++
	}
	if n > len(b) {
		return 0, 0
	}
	for i, c := range b[:n] {
		if i == 0 && plain {
			c &= 1<<(8-n) - 1
		}
		number = number<<8 | uint64(c)
	}
	return number, n
}

func ebmlUint(b []byte, length uint64) uint64 {
	var number uint64
	for _, c := range b[:min(length, uint64(len(b)))] {
		number = number<<8 | uint64(c)
	}
	return number
}

func ebmlFloat(b []byte, length uint64) float64 {
	switch {
	case length == 4 && len(b) >= 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case length == 8 && len(b) == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	default:
		return 0
	}
}
