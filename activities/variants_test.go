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
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
)

func variant(n int, name, contentType string, data string) activities.Variant {
	sum := sha256.Sum256([]byte(data))
	return activities.Variant{
		Name: name, Object: fmt.Sprintf("outputs/2026-05-17/video_1/%d.%s", n, name), ContentType: contentType,
		Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
	}
}

func picture(contentType, data string) providers.Video {
	return providers.Video{Body: io.NopCloser(strings.NewReader(data)), Length: int64(len(data)), ContentType: contentType}
}

// TestArchiveVariants: the pictures of a video are archived with it. A picture that fails does not delay the video.
func TestArchiveVariants(t *testing.T) {
	t.Parallel()
	var opened []string
	videos := []string{"first", "second"}
	r := newTestEnv(t, picturing{
		fakeAdapter{open: func(_ context.Context, _ providers.Target, _ providers.Ticket, n int) (providers.Video, error) {
			opened = append(opened, fmt.Sprint(n))
			return picture("video/mp4", videos[n]), nil
		}},
		func(_ context.Context, ticket providers.Ticket, n int, name string) (providers.Video, error) {
			opened = append(opened, fmt.Sprint(n, name))
			if ticket.Job != "job-1" {
				t.Errorf("asked for job %q", ticket.Job)
			}
			switch {
			case n == 0 && name == providers.Thumbnail:
				return picture("image/webp", "small"), nil
			case n == 0:
				return picture("image/jpeg", "sheet"), nil
			case name == providers.Thumbnail:
				return providers.Video{}, providers.Faultf(providers.NotFound, "No such thing.")
			}
			return picture("video/mp4", "the video again"), nil
		},
	})
	s := newShelf()
	r.keepIn(s.fakes())
	reported := 0
	r.upstreams.Channels = fakeChannels{report: func(providers.Target, *providers.Fault) { reported++ }}
	got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(2))
	want := []activities.Output{output(0, []byte(videos[0])), output(1, []byte(videos[1]))}
	want[0].Variants = []activities.Variant{variant(0, "thumbnail", "image/webp", "small"), variant(0, "spritesheet", "image/jpeg", "sheet")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if want := []string{"0", "0thumbnail", "0spritesheet", "1", "1thumbnail", "1spritesheet"}; !reflect.DeepEqual(opened, want) {
		t.Errorf("opened %q, want %q", opened, want)
	}
	if !bytes.Equal(s.objects["outputs/2026-05-17/video_1/0.thumbnail"], []byte("small")) || len(s.objects) != 4 || reported != 0 {
		t.Errorf("got %d objects, %d reports of the channel", len(s.objects), reported)
	}
}

// TestArchiveVariantsFail: neither a broken picture nor one that never comes ends the archive or fails the task.
func TestArchiveVariantsFail(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(context.Context) (providers.Video, error){
		"not reached": func(context.Context) (providers.Video, error) { return providers.Video{}, errors.New("hush") },
		"never comes": func(ctx context.Context) (providers.Video, error) {
			<-ctx.Done()
			return providers.Video{}, ctx.Err()
		},
		"broken off": func(context.Context) (providers.Video, error) {
			return providers.Video{Body: io.NopCloser(brokenOff{}), Length: 9, ContentType: "image/webp"}, nil
		},
		"empty":        func(context.Context) (providers.Video, error) { return picture("image/webp", ""), nil },
		"far too much": func(context.Context) (providers.Video, error) { return endless(), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				r := newTestEnv(t, picturing{
					fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
						return picture("video/mp4", "clip"), nil
					}},
					func(ctx context.Context, _ providers.Ticket, _ int, _ string) (providers.Video, error) {
						return open(ctx)
					},
				})
				s := newShelf()
				r.keepIn(s.fakes())
				got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
				if err != nil || !reflect.DeepEqual(got, []activities.Output{output(0, []byte("clip"))}) || len(s.objects) != 1 {
					t.Errorf("got %+v, %v, %d objects", got, err, len(s.objects))
				}
				if took := time.Since(began); took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// TestArchiveVariantsResume: a worker that stops amid the pictures leaves them to the next try, which copies no video
// again.
func TestArchiveVariantsResume(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	r := newTestEnv(t, picturing{
		fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
			return picture("video/mp4", "clip"), nil
		}},
		func(ctx context.Context, _ providers.Ticket, _ int, _ string) (providers.Video, error) {
			close(stopping)
			<-ctx.Done()
			return providers.Video{}, ctx.Err()
		},
	})
	r.keepIn(newShelf().fakes())
	r.env.SetWorkerStopChannel(stopping)
	_, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
	var again *temporal.ApplicationError
	if !errors.As(err, &again) || again.NonRetryable() {
		t.Fatalf("got %v, want another try", err)
	}

	r = newTestEnv(t, picturing{
		fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
			t.Error("the video is copied again")
			return picture("video/mp4", "clip"), nil
		}},
		func(context.Context, providers.Ticket, int, string) (providers.Video, error) {
			return picture("image/webp", "small"), nil
		},
	})
	r.keepIn(newShelf().fakes())
	r.env.SetHeartbeatDetails(activities.Copied{Done: []activities.Output{output(0, []byte("clip"))}})
	got, err := do[[]activities.Output](t, r, r.acts.Copier.Archive, archiveInput(1))
	if err != nil || len(got) != 1 || len(got[0].Variants) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// brokenOff breaks off; endless never ends.
type brokenOff struct{}

func (brokenOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func endless() providers.Video {
	return providers.Video{Body: io.NopCloser(zeros{}), Length: -1, ContentType: "image/png"}
}
