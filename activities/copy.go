package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/media"
	"modelrelay/providers/upstream"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

const (
	// stallLimit bounds the wait for an upstream's answer, or for its next bytes.
	stallLimit = 45 * time.Second
	// slowRetry is the wait before a slow copy requests a slot again.
	slowRetry = 5 * time.Second
)

// errSlow ends a slow copy whose slot another copy waits for.
var errSlow = errors.New("below the minimal pace")

// copying is the state of a running Archive. Its heartbeats read it; only the activity's own goroutine changes it.
type copying struct {
	mu    sync.Mutex
	state Copied
	// pace and end are those of the current output; nil between two.
	pace *pace
	end  context.CancelCauseFunc
}

func (c *copying) begin(p *pace, end context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pace, c.end = p, end
}

// release ends the copy of the current output if it is slow and wanted reports that its slot is needed.
func (c *copying) release(wanted func() bool) {
	c.mu.Lock()
	pace, end := c.pace, c.end
	c.mu.Unlock()
	if pace != nil && pace.isSlow() && wanted() {
		end(&providers.Fault{Kind: providers.Timeout, Message: "The upstream sends the video slowly, and other copies wait.", Err: errSlow})
	}
}

func (c *copying) shown() Copied {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := c.state
	shown.Done = slices.Clone(shown.Done)
	return shown
}

func (c *copying) update(change func(*Copied)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.state)
}

func (a *Copier) copyOutput(ctx context.Context, in ArchiveInput, n int, c *copying) (output Output, err error) {
	pick, adapter, err := a.target(in.Job.Assignment)
	if err != nil {
		return Output{}, err
	}
	ctx, span := a.turn(ctx, pick.Target, upstream.Step{Does: "open"})
	defer func() { span.End(providers.AsFault(err)) }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stalled := time.AfterFunc(stallLimit, func() {
		end(&providers.Fault{Kind: providers.Timeout, Message: "The upstream stopped sending the video.", Blame: providers.BlameChannel})
	})
	defer stalled.Stop()
	pace := new(pace)
	c.begin(pace, end)
	defer c.begin(nil, nil)
	pace.wait()
	video, err := adapter.Open(ctx, pick.Target, in.Job.Ticket, n)
	stalled.Stop()
	pace.received(0)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSlow) {
			return Output{}, context.Cause(ctx)
		}
		a.Channels.ReportPoll(pick, providers.AsFault(err))
		return Output{}, fmt.Errorf("open output %d: %w", n, err)
	}
	defer video.Body.Close()
	span.Answered(0, false)

	if a.MaxOutputBytes > 0 && video.Length > a.MaxOutputBytes {
		return Output{}, providers.Faultf(providers.TooLarge, "The video of %d bytes is larger than the allowed %d.", video.Length,
			a.MaxOutputBytes)
	}
	if !strings.HasPrefix(video.ContentType, "video/") {
		return Output{}, upstream.BrokenAnswer("a picture in place of the video", nil)
	}
	var before int64
	for _, done := range c.state.Done {
		before += done.Size
	}
	key := fmt.Sprintf("%s%d.mp4", OutputPrefix(in.Job.TaskID, in.Expires), n)
	object, err := a.Objects.Put(ctx, key, &source{body: video.Body, limit: a.MaxOutputBytes, stalled: stalled, pace: pace}, video.Length,
		archive.PutOptions{
			ContentType: video.ContentType,
			Progress:    func(read int64) { c.update(func(s *Copied) { s.Bytes = before + read }) },
		})
	if err != nil {
		return Output{}, fmt.Errorf("copy output %d: %w", n, copyFault(ctx, err))
	}
	output = Output{Object: object.Key, ContentType: video.ContentType, Size: object.Size, SHA256: object.SHA256}
	if in.Unmeasured {
		output.Seconds = a.length(ctx, output)
	}
	return output, nil
}

// length returns the length of an archived video in seconds, "" if the file does not contain it or cannot be read.
func (a *Copier) length(ctx context.Context, output Output) string {
	file, err := a.Objects.Open(ctx, output.Object)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	length, ok := media.Length(seeking{file}, output.Size)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(length.Seconds(), 'f', 3, 64)
}

// seeking is an io.ReaderAt for use by one goroutine.
type seeking struct{ io.ReadSeeker }

// ReadAt implements io.ReaderAt.
func (s seeking) ReadAt(p []byte, at int64) (int, error) {
	if _, err := s.Seek(at, io.SeekStart); err != nil {
		return 0, err
	}
	return io.ReadFull(s, p)
}

func copyFault(ctx context.Context, err error) error {
	var fault *providers.Fault
	switch {
	case errors.As(err, &fault):
		return err
	case errors.As(context.Cause(ctx), &fault):
		return fault
	case ctx.Err() != nil:
		return err
	case errors.Is(err, archive.ErrSource), errors.Is(err, archive.ErrLength):
		return &providers.Fault{Kind: providers.Upstream, Message: "The transfer of the video from the upstream broke off.", Err: err}
	case errors.Is(err, storage.ErrUnavailable):
		return &providers.Fault{Kind: providers.Internal, Message: "The archive cannot be written now.", Err: err}
	}
	return err
}

// source reads an upstream's video for the archive. It fails for an empty or too large video. One that stalls ends the copy.
type source struct {
	body io.Reader
	// limit is in bytes, 0 for none.
	limit   int64
	read    int64
	stalled *time.Timer
	pace    *pace
}

func (s *source) Read(p []byte) (int, error) {
	s.stalled.Reset(stallLimit)
	s.pace.wait()
	n, err := s.body.Read(p)
	s.pace.received(n)
	s.stalled.Stop()
	s.read += int64(n)
	switch {
	case s.limit > 0 && s.read > s.limit:
		return n, providers.Faultf(providers.TooLarge, "The video is larger than the allowed %d bytes.", s.limit)
	case errors.Is(err, io.EOF) && s.read == 0:
		return n, providers.Faultf(providers.Upstream, "The upstream sent an empty video.")
	}
	return n, err
}
