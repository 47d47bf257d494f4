package jobs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// journal is a file of lines that survives a SIGKILL. Lines that come while one sync runs share the next.
type journal struct {
	path string
	file *os.File

	mu      sync.Mutex
	pending []byte
	waiting []chan error
	closed  bool
	wake    chan struct{}
	done    chan struct{}
}

// openJournal opens the file, gives each whole line to line, cuts off a torn last one, and is ready to append.
func openJournal(path string, line func([]byte) error) (*journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) //nolint:gosec // the caller names the file
	if err != nil {
		return nil, err
	}
	whole, err := readLines(file, line)
	if err == nil {
		err = file.Truncate(whole)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), file.Close())
	}
	j := &journal{path: path, file: file, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go j.run()
	return j, nil
}

func readLines(r io.Reader, line func([]byte) error) (whole int64, err error) {
	in := bufio.NewReader(r)
	for {
		b, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		if err := line(bytes.TrimSuffix(b, []byte("\n"))); err != nil {
			return whole, fmt.Errorf("line at byte %d: %w", whole, err)
		}
		whole += int64(len(b))
	}
}

func syncDir(path string) error {
	dir, err := os.Open(path) //nolint:gosec // the caller names the file
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// append takes one line, which must hold no newline, into the file's order and returns what to wait on: it says how
// writing went once the line is on disk.
func (j *journal) append(line []byte) <-chan error {
	written := make(chan error, 1)
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		written <- os.ErrClosed
		return written
	}
	j.pending = append(append(j.pending, line...), '\n')
	j.waiting = append(j.waiting, written)
	select {
	case j.wake <- struct{}{}:
	default:
	}
	return written
}

func (j *journal) run() {
	defer close(j.done)
	for range j.wake {
		j.flush()
	}
	j.flush()
}

func (j *journal) flush() {
	j.mu.Lock()
	lines, waiting := j.pending, j.waiting
	j.pending, j.waiting = nil, nil
	j.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	_, err := j.file.Write(lines)
	if err == nil {
		err = j.file.Sync()
	}
	for _, w := range waiting {
		w <- err
	}
}

// clear empties the file. A concurrent line is written before or after that.
func (j *journal) clear() error {
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	return j.file.Sync()
}

// close writes what is pending and ends the journal.
func (j *journal) close() error {
	j.mu.Lock()
	j.closed = true
	close(j.wake)
	j.mu.Unlock()
	<-j.done
	return j.file.Close()
}
