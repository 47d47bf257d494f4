package archive

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
)

// source reads, counts and hashes what is stored, and checks its length.
type source struct {
	r        io.Reader
	size     int64 // -1: unknown
	read     int64
	start    int64 // position of an io.ReaderAt that is also a seeker
	begun    bool
	ended    bool
	sum      hash.Hash
	progress func(int64)
}

// fixed reports whether the source can be read in place: its position and its length are known.
func (s *source) fixed() bool {
	seeker, ok := s.r.(io.Seeker)
	if !ok {
		return false
	}
	if s.begun {
		return true
	}
	start, err := seeker.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	end, err := seeker.Seek(0, io.SeekEnd)
	if err != nil {
		return false
	}
	if _, err := seeker.Seek(start, io.SeekStart); err != nil || end-start != s.size {
		return false // as a stream, it fails with the reason
	}
	s.start, s.begun = start, true
	return true
}

// fill reads until buf is full or the source ends.
func (s *source) fill(ctx context.Context, buf []byte) (n int, last bool, err error) {
	for idle := 0; n < len(buf) && !s.ended; {
		if err := ctx.Err(); err != nil {
			return 0, false, err
		}
		got, err := s.r.Read(buf[n:])
		if idle++; got > 0 {
			idle = 0
		}
		n += got
		s.read += int64(got)
		if s.progress != nil && got > 0 {
			s.progress(s.read)
		}
		switch {
		case errors.Is(err, io.EOF):
			s.ended = true
		case err != nil:
			if ctx.Err() != nil {
				return 0, false, ctx.Err()
			}
			return 0, false, fmt.Errorf("%w: %w", ErrSource, err)
		case idle > 100:
			return 0, false, fmt.Errorf("%w: %w", ErrSource, io.ErrNoProgress)
		case s.size >= 0 && s.read > s.size:
			return 0, false, s.long()
		}
	}
	s.sum.Write(buf[:n])
	switch {
	case s.ended && s.size >= 0 && s.read < s.size:
		return 0, false, s.short()
	case s.size >= 0 && s.read > s.size:
		return 0, false, s.long()
	}
	return n, s.ended, nil
}

func (s *source) long() error { return fmt.Errorf("%w: more than %d bytes", ErrLength, s.size) }

func (s *source) short() error {
	return fmt.Errorf("%w: %d of %d bytes", ErrLength, s.read, s.size)
}
