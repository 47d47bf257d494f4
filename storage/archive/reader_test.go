package archive_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"modelrelay/storage/archive"
)

func TestReaderGoesOnWhereAConnectionBroke(t *testing.T) {
	t.Parallel()
	body := []byte(strings.Repeat("0123456789", 400_000))
	opened, broken := 0, errors.New("connection lost")
	r := archive.NewReader(archive.Object{Size: int64(len(body))}, func(offset, length int64) (io.ReadCloser, error) {
		opened++
		piece := bytes.NewReader(body[offset : offset+length])
		switch opened % 3 {
		case 0: // breaks
			return io.NopCloser(io.MultiReader(io.LimitReader(piece, length/2), iotest.ErrReader(broken))), nil
		case 1: // ends too early
			return io.NopCloser(io.LimitReader(piece, length/3)), nil
		}
		return io.NopCloser(piece), nil
	})
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestReaderGivesUp(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	for name, body := range map[string]io.Reader{"broken": iotest.ErrReader(broken), "empty": strings.NewReader("")} {
		opened := 0
		r := archive.NewReader(archive.Object{Size: 10}, func(int64, int64) (io.ReadCloser, error) {
			opened++
			return io.NopCloser(body), nil
		})
		if _, err := io.ReadAll(r); err == nil || opened > 3 {
			t.Errorf("%s: %v after %d tries", name, err, opened)
		}
	}
	refused := archive.NewReader(archive.Object{Size: 10}, func(int64, int64) (io.ReadCloser, error) { return nil, broken })
	if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestReaderAsksOnlyForWhatIsNear(t *testing.T) {
	t.Parallel()
	const size = 1 << 32
	var most int64
	r := archive.NewReader(archive.Object{Size: size}, func(_, length int64) (io.ReadCloser, error) {
		most = max(most, length)
		return io.NopCloser(io.LimitReader(zeros{}, length)), nil
	})
	for _, at := range []int64{size - 10, 0, size / 2} {
		if _, err := r.Seek(at, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if most > 1<<20 {
		t.Errorf("asked for %d bytes at once to read ten", most)
	}
	if _, err := io.CopyN(io.Discard, r, 200<<20); err != nil || most > 16<<20 {
		t.Errorf("asked for %d bytes at once (%v)", most, err)
	}
}
