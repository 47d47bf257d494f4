package activities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

// fakeShelf is an archive in memory that keeps archive.Store's promises: an object appears whole or not at all.
type fakeShelf struct {
	objects map[string][]byte
	types   map[string]string
}

func newShelf() *fakeShelf {
	return &fakeShelf{objects: make(map[string][]byte), types: make(map[string]string)}
}

func (s *fakeShelf) put(_ context.Context, key string, r io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
	var data bytes.Buffer
	for piece := make([]byte, 1<<10); ; {
		n, err := r.Read(piece)
		data.Write(piece[:n])
		if opts.Progress != nil {
			opts.Progress(int64(data.Len()))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return archive.Object{}, fmt.Errorf("put %s: %w: %w", key, archive.ErrSource, err)
		}
	}
	if size >= 0 && size != int64(data.Len()) {
		return archive.Object{}, fmt.Errorf("put %s: %w", key, archive.ErrLength)
	}
	sum := sha256.Sum256(data.Bytes())
	s.objects[key], s.types[key] = data.Bytes(), opts.ContentType
	return archive.Object{Key: key, Size: int64(data.Len()), SHA256: hex.EncodeToString(sum[:]), ContentType: opts.ContentType}, nil
}

func (s *fakeShelf) deletePrefix(_ context.Context, prefix string) error {
	for key := range s.objects {
		if strings.HasPrefix(key, prefix) {
			delete(s.objects, key)
		}
	}
	return nil
}

func (s *fakeShelf) fakes() fakeObjects { return fakeObjects{put: s.put, deletePrefix: s.deletePrefix} }

// body is the body of an upstream's video. It records whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

var expires = time.Date(2026, 5, 17, 23, 59, 0, 0, time.FixedZone("", 3600))

func archiveInput(outputs int) activities.ArchiveInput {
	return activities.ArchiveInput{
		Job: activities.Job{
			TaskID: "video_1", Model: "sora-2", Assignment: assignment(), Ticket: providers.Ticket{Job: "job-1"}, AcceptedAt: time.Now(),
		},
		Outputs: outputs, Expires: expires,
	}
}

func output(n int, data []byte) activities.Output {
	sum := sha256.Sum256(data)
	return activities.Output{
		Object: fmt.Sprintf("outputs/2026-05-17/video_1/%d.mp4", n), ContentType: "video/mp4",
		Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	}
}

func TestArchive(t *testing.T) {
	t.Parallel()
	videos := [][]byte{bytes.Repeat([]byte("first"), 1000), bytes.Repeat([]byte("second"), 1000), []byte("third")}
	var bodies []*body
	r := newTestEnv(t, fakeAdapter{open: func(_ context.Context, to providers.Target, ticket providers.Ticket, n int) (providers.Video,
		error,
	) {
		if to.Key != hushKey || ticket.Job != "job-1" || n != len(bodies) {
			t.Errorf("opened output %d of %q", n, ticket.Job)
		}
		bodies = append(bodies, &body{Reader: bytes.NewReader(videos[n])})
		video := providers.Video{Body: bodies[n], Length: int64(len(videos[n]))}
		if n == 1 {
			video.Length, video.ContentType = -1, "video/webm"
		}
		return video, nil
	}})
	s := newShelf()
	r.keepIn(s.fakes())
	got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(3))
	want := []activities.Output{output(0, videos[0]), output(1, videos[1]), output(2, videos[2])}
	want[1].ContentType = "video/webm"
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for i, b := range bodies {
		if !b.closed {
			t.Errorf("body %d is open", i)
		}
		if !bytes.Equal(s.objects[want[i].Object], videos[i]) || s.types[want[i].Object] != want[i].ContentType {
			t.Errorf("output %d was not stored as it is", i)
		}
	}
	if len(s.objects) != 3 {
		t.Errorf("got %d objects", len(s.objects))
	}
}

// TestArchiveResumes: a next try leaves what is done alone.
func TestArchiveResumes(t *testing.T) {
	t.Parallel()
	data := []byte("the second")
	first := output(0, []byte("the first"))
	var opened []int
	r := newTestEnv(t, fakeAdapter{open: func(_ context.Context, _ providers.Target, _ providers.Ticket, n int) (providers.Video, error) {
		opened = append(opened, n)
		return providers.Video{Body: &body{Reader: bytes.NewReader(data)}, Length: -1}, nil
	}})
	r.keepIn(newShelf().fakes())
	r.env.SetHeartbeatDetails(activities.Copied{Done: []activities.Output{first}, Bytes: first.Size + 3})
	got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(2))
	if err != nil || !reflect.DeepEqual(got, []activities.Output{first, output(1, data)}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if !slices.Equal(opened, []int{1}) {
		t.Errorf("opened %v, want only what is missing", opened)
	}
}

func TestArchiveHeartbeatUnreadable(t *testing.T) {
	t.Parallel()
	data := []byte("a video")
	r := newTestEnv(t, fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
		return providers.Video{Body: &body{Reader: bytes.NewReader(data)}, Length: -1}, nil
	}})
	r.keepIn(newShelf().fakes())
	r.env.SetHeartbeatDetails([]string{"from another version"})
	got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
	if err != nil || !reflect.DeepEqual(got, []activities.Output{output(0, data)}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestArchiveFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		data    string
		length  int64 // of the announcement
		is      string
		open    error
		source  error // after the data
		put     error
		limit   int64
		kind    providers.Kind
		message string
		delay   time.Duration
		final   bool
		report  bool
	}{
		{name: "shorter than announced", data: "1234", length: 9, kind: providers.Upstream, message: "broke off"},
		{name: "longer than announced", data: "1234", length: 3, kind: providers.Upstream, message: "broke off"},
		{name: "cut off", data: "1234", length: -1, source: io.ErrUnexpectedEOF, kind: providers.Upstream, message: "broke off"},
		{name: "a picture", data: "1234", length: 4, is: "image/gif", kind: providers.Upstream, message: "answer is broken"},
		{name: "empty", length: -1, kind: providers.Upstream, message: "empty"},
		{name: "announced as empty", length: 0, kind: providers.Upstream, message: "empty"},
		{name: "announced as too large", data: "12345", length: 5, limit: 4, kind: providers.TooLarge, message: "of 5 bytes", final: true},
		{name: "too large", data: "12345", length: -1, limit: 4, kind: providers.TooLarge, message: "than the allowed 4", final: true},
		{
			name: "archive away", data: "1234", length: 4, put: fmt.Errorf("put: %w: hush", storage.ErrUnavailable), kind: providers.Internal,
			message: "archive",
		},
		{name: "archive broken", data: "1234", length: 4, put: errors.New("hush"), kind: providers.Internal, message: "failed to handle"},
		{
			name: "upstream away", open: &providers.Fault{
				Kind: providers.Overloaded, Message: "Full.", RetryAfter: 7 * time.Second,
				Blame: providers.BlameChannel,
			},
			kind: providers.Overloaded, message: "Full.", delay: 7 * time.Second, report: true,
		},
		{
			name: "too long a wait", open: &providers.Fault{Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 1000 * time.Hour},
			kind: providers.RateLimited, message: "Slowly.", delay: 15 * time.Minute, report: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := &body{Reader: strings.NewReader(tc.data)}
			if tc.source != nil {
				b.Reader = io.MultiReader(b.Reader, failing{tc.source})
			}
			r := newTestEnv(t, fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
				return providers.Video{Body: b, Length: tc.length, ContentType: tc.is}, tc.open
			}})
			reported := false
			r.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) { reported = f != nil }}
			s := newShelf()
			fakes := s.fakes()
			if tc.put != nil {
				fakes.put = func(context.Context, string, io.Reader, int64, archive.PutOptions) (archive.Object, error) {
					return archive.Object{}, tc.put
				}
			}
			r.acts.Copier.Objects, r.acts.Copier.MaxOutputBytes = fakes, tc.limit
			_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
			got, retried, delay := fault(t, err)
			if got.Kind != tc.kind || !strings.Contains(got.Message, tc.message) || retried == tc.final || delay != tc.delay {
				t.Errorf("got %+v, retried %t after %s", got, retried, delay)
			}
			if reported != tc.report {
				t.Errorf("reported to the router: %t, want %t", reported, tc.report)
			}
			if len(s.objects) != 0 {
				t.Errorf("left objects: %v", s.objects)
			}
			if tc.open == nil && !b.closed {
				t.Error("the body is open")
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error %q has internal details", err)
			}
		})
	}
}

// TestArchiveExactlyTheLimit: the limit itself is allowed.
func TestArchiveExactlyTheLimit(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
		return providers.Video{Body: &body{Reader: strings.NewReader("1234")}, Length: -1}, nil
	}})
	r.acts.Copier.Objects, r.acts.Copier.MaxOutputBytes = newShelf().fakes(), 4
	if got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1)); err != nil || len(got) != 1 || got[0].Size != 4 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestArchiveChannelGone(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.upstreams.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
		return providers.Target{}, router.ErrChannelGone
	}}
	_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
	if got, retried, _ := fault(t, err); !got.Gone || !retried {
		t.Errorf("got %+v, retried %t", got, retried)
	}
}

// TestArchiveWorkerStops: a long copy leaves a stopping worker at once, with what is done in its heartbeat.
func TestArchiveWorkerStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping := make(chan struct{})
		r := newTestEnv(t, fakeAdapter{open: func(ctx context.Context, _ providers.Target, _ providers.Ticket, n int) (providers.Video, error) {
			if n == 0 {
				return providers.Video{Body: &body{Reader: strings.NewReader("1234")}, Length: 4}, nil
			}
			close(stopping)
			return providers.Video{Body: &body{Reader: hanging{ctx}}, Length: 4}, nil
		}})
		r.env.SetWorkerStopChannel(stopping)
		s := newShelf()
		r.keepIn(s.fakes())
		shown := beats[activities.Copied](t, r)
		began := time.Now()
		_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(2))
		_, retried, delay := fault(t, err)
		if !retried || delay <= 0 || delay > time.Second || !time.Now().Equal(began) {
			t.Errorf("retried %t after %s, left after %s", retried, delay, time.Since(began))
		}
		synctest.Wait()
		all := shown()
		last := all[len(all)-1]
		if want := (activities.Copied{Done: []activities.Output{output(0, []byte("1234"))}, Bytes: 4, VariantsDone: 1}); !reflect.DeepEqual(last,
			want) {
			t.Errorf("got heartbeat %+v, want %+v", last, want)
		}
		if len(s.objects) != 1 {
			t.Errorf("left objects %v", s.objects)
		}
	})
}

func TestArchiveCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newTestEnv(t, nil)
		cancel := r.cancelable(t)
		r.upstreams.Catalog["fake"] = providers.Vendor{Name: "fake", Video: fakeAdapter{
			open: func(ctx context.Context, _ providers.Target, _ providers.Ticket, _ int) (providers.Video, error) {
				cancel()
				return providers.Video{Body: &body{Reader: hanging{ctx}}, Length: 4}, nil
			},
		}}
		r.keepIn(newShelf().fakes())
		_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
		if !temporal.IsCanceledError(err) {
			t.Errorf("got %v, want a cancelled activity", err)
		}
	})
}

// TestArchiveStalls: an upstream that falls silent, before its answer or amid it, ends the try before the server takes
// the worker for lost; while it is only slow, or the archive is, the heartbeats go on.
func TestArchiveStalls(t *testing.T) {
	t.Parallel()
	for _, amid := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newTestEnv(t, fakeAdapter{open: func(ctx context.Context, _ providers.Target, _ providers.Ticket, _ int) (providers.Video, error) {
				if amid {
					return providers.Video{Body: &body{Reader: io.MultiReader(strings.NewReader("12"), hanging{ctx})}, Length: 4}, nil
				}
				<-ctx.Done()
				return providers.Video{}, context.Cause(ctx)
			}})
			var blamed *providers.Fault
			r.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) { blamed = f }}
			s := newShelf()
			r.keepIn(s.fakes())
			began := time.Now()
			_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
			got, retried, _ := fault(t, err)
			if got.Kind != providers.Timeout || !strings.Contains(got.Message, "stopped sending") || !retried || len(s.objects) != 0 {
				t.Errorf("got %+v, retried %t, objects %v", got, retried, s.objects)
			}
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("gave up after %s", took)
			}
			if !amid && (blamed == nil || blamed.Blame != providers.BlameChannel) {
				t.Errorf("reported %v", blamed)
			}
		})
	}
}

func TestArchiveSlowly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		upstream, store time.Duration
	}{{"upstream", 40 * time.Second, 0}, {"archive", 0, time.Minute}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newTestEnv(t, fakeAdapter{open: func(ctx context.Context, _ providers.Target, _ providers.Ticket, _ int) (providers.Video, error) {
					return providers.Video{Body: &body{Reader: slow{ctx: ctx, r: strings.NewReader("12345678"), by: tc.upstream}}, Length: 8}, nil
				}})
				s := newShelf()
				fakes := s.fakes()
				fakes.put = func(ctx context.Context, key string, src io.Reader, size int64, opts archive.PutOptions) (archive.Object, error) {
					return s.put(ctx, key, slow{ctx: ctx, r: src, by: tc.store}, size, opts)
				}
				r.keepIn(fakes)
				shown := beats[activities.Copied](t, r)
				began := time.Now()
				if got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1)); err != nil || len(got) != 1 {
					t.Fatalf("got %+v, %v", got, err)
				}
				// The environment throttles heartbeats to one in thirty seconds.
				synctest.Wait()
				all := shown()
				if took := time.Since(began); took < 4*time.Minute || len(all) < int(took/time.Minute) {
					t.Errorf("got %d heartbeats in %s", len(all), took)
				}
				for i, beat := range all {
					if i > 0 && beat.Bytes < all[i-1].Bytes {
						t.Errorf("the bytes fall: %+v", all)
					}
				}
			})
		})
	}
}

// failing reads as its error, hanging as nothing until its context ends, slow as its source with a wait before each piece.
type (
	failing struct{ err error }
	hanging struct{ ctx context.Context } //nolint:containedctx // a body's end is its request's
	slow    struct {
		ctx context.Context //nolint:containedctx // as above
		r   io.Reader
		by  time.Duration
	}
)

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (h hanging) Read([]byte) (int, error) {
	<-h.ctx.Done()
	return 0, h.ctx.Err()
}

func (s slow) Read(p []byte) (int, error) {
	select {
	case <-time.After(s.by):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	return s.r.Read(p[:min(1, len(p))])
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	s := newShelf()
	for _, key := range []string{"outputs/2026-05-17/video_1/0.mp4", "outputs/2026-05-17/video_1/1.mp4", "outputs/2026-05-17/video_10/0.mp4"} {
		s.objects[key] = []byte("x")
	}
	r.keepIn(s.fakes())
	in := activities.DiscardInput{TaskID: "video_1", Expires: expires}
	for range 2 { // again finds nothing
		if _, err := r.env.ExecuteActivity(r.acts.Copier.Discard, in); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.objects) != 1 || s.objects["outputs/2026-05-17/video_10/0.mp4"] == nil {
		t.Errorf("left %v, want only the other task's", s.objects)
	}
	r.keepIn(fakeObjects{deletePrefix: func(context.Context, string) error { return storage.ErrUnavailable }})
	_, err := r.env.ExecuteActivity(r.acts.Copier.Discard, in)
	if _, retried, _ := fault(t, err); !retried {
		t.Error("a discard while the archive is away is not retried")
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	job := archiveInput(1).Job
	for _, tc := range []struct {
		name  string
		err   error
		final bool
		delay time.Duration
	}{
		{name: "done"},
		{name: "vendor away", err: &providers.Fault{
			Kind: providers.Upstream, Message: "Not there.", Accepted: providers.NotAccepted,
			Blame: providers.BlameChannel,
		}},
		{name: "vendor slow", err: &providers.Fault{
			Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 3 * time.Second,
			Accepted: providers.NotAccepted,
		}, delay: 3 * time.Second},
		{name: "refused", err: &providers.Fault{Kind: providers.Conflict, Message: "No.", Accepted: providers.NotAccepted}, final: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			r := newTestEnv(t, canceler{cancel: func(_ context.Context, to providers.Target, ticket providers.Ticket) error {
				if to.Key != hushKey || ticket.Job != "job-1" {
					t.Errorf("cancelled %q", ticket.Job)
				}
				asked++
				return tc.err
			}})
			_, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job)
			if asked != 1 {
				t.Errorf("asked for %d cancels", asked)
			}
			if tc.err == nil {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if got, retried, delay := fault(t, err); retried == tc.final || delay != tc.delay {
				t.Errorf("got %+v, retried %t after %s", got, retried, delay)
			}
		})
	}
	t.Run("a vendor that cannot", func(t *testing.T) {
		t.Parallel()
		r := newTestEnv(t, fakeAdapter{})
		if _, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job); err != nil {
			t.Errorf("got %v", err)
		}
	})
	t.Run("channel gone", func(t *testing.T) {
		t.Parallel()
		asked := 0
		r := newTestEnv(t, canceler{cancel: func(context.Context, providers.Target, providers.Ticket) error {
			asked++
			return nil
		}})
		r.upstreams.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
			return providers.Target{}, router.ErrChannelGone
		}}
		_, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job)
		if got, retried, _ := fault(t, err); !got.Gone || !retried || asked != 0 {
			t.Errorf("got %+v, retried %t, want it retried: another worker may know the channel", got, retried)
		}
		r.upstreams.Channels = fakeChannels{}
		if _, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job); err != nil || asked != 1 {
			t.Errorf("after the channel is back: %v, %d cancels", err, asked)
		}
	})
}
