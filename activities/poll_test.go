package activities_test

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
)

// watch polls a job until it ends. It acts as the Temporal server between the tries of one activity.
type watch struct {
	*testEnv
	in activities.PollInput
	// last is the heartbeat a next try starts from, nil before the first.
	last *activities.Progress
	// waits are the delays asked for, words what the tries ended with.
	waits []time.Duration
	words []string
	polls int
	// pace is the vendor's.
	pace providers.Pace
}

// newWatch starts a job now, that is on the bubble's clock.
func newWatch(t *testing.T, poll func(n int) (providers.VideoStatus, error)) *watch {
	t.Helper()
	w := &watch{}
	w.testEnv = newTestEnv(t, fakeAdapter{
		pace: &w.pace,
		poll: func(ctx context.Context, to providers.Target, ticket providers.Ticket) (providers.VideoStatus, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > activities.PollTimeout {
				t.Error("the look is not bounded")
			}
			if to.Key != hushKey || ticket.Job != "job-1" {
				t.Errorf("got key %s, ticket %+v", to.Key.Fingerprint(), ticket)
			}
			w.polls++
			return poll(w.polls)
		},
	})
	now := time.Now()
	w.in = activities.PollInput{
		Job: activities.Job{
			TaskID: "video_1", Model: "sora-2", Assignment: assignment(), Ticket: providers.Ticket{Job: "job-1"}, AcceptedAt: now,
		},
		Deadline: now.Add(6 * time.Hour),
	}
	return w
}

// look runs one try and waits for the delay that it requests. ended reports whether that was the last try.
func (w *watch) look(t *testing.T) (status providers.VideoStatus, err error, ended bool) { //nolint:revive // the error is a value of the test
	t.Helper()
	shown := beats[activities.Progress](t, w.testEnv)
	if w.last != nil {
		w.env.SetHeartbeatDetails(*w.last)
	}
	status, err = do[providers.VideoStatus](t, w.testEnv, w.acts.Poller.Poll, w.in)
	if all := shown(); len(all) > 0 {
		w.last = &all[len(all)-1]
	}
	var app *temporal.ApplicationError
	if err == nil || !errors.As(err, &app) || app.NonRetryable() {
		return status, err, true
	}
	if benign := app.Category() == temporal.ApplicationErrorCategoryBenign; benign != (app.Type() == "Pending") {
		t.Errorf("an error of type %s is benign: %t", app.Type(), benign)
	}
	if app.NextRetryDelay() <= 0 {
		t.Fatalf("got delay %s", app.NextRetryDelay())
	}
	w.waits = append(w.waits, app.NextRetryDelay())
	w.words = append(w.words, app.Message())
	<-time.After(app.NextRetryDelay())
	return status, err, false
}

// end runs tries until the activity ends, and returns the result of the last one.
func (w *watch) end(t *testing.T) (providers.VideoStatus, error) {
	t.Helper()
	for range 10_000 {
		if status, err, ended := w.look(t); ended {
			return status, err
		}
	}
	t.Fatal("the job never ends")
	return providers.VideoStatus{}, nil
}

func usually(d time.Duration) fakeDurations {
	return fakeDurations{usual: func(_ context.Context, channel, model string) (time.Duration, bool, error) {
		return d, channel == "main" && model == "sora-2", nil
	}}
}

func running(progress int) (providers.VideoStatus, error) {
	return providers.VideoStatus{State: providers.JobRunning, Progress: progress, VendorState: "in_progress"}, nil
}

func done() (providers.VideoStatus, error) {
	return providers.VideoStatus{State: providers.JobDone, Progress: 100, VendorState: "completed", Outputs: 1}, nil
}

func TestPollLooksAtTheClockFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return done() })
		w.acts.Poller.Durations = usually(10 * time.Minute)
		began := w.in.Job.AcceptedAt
		if _, err, ended := w.look(t); ended {
			t.Fatalf("got %v", err)
		}
		want := activities.Progress{
			State: providers.JobQueued, Since: began, Usual: activities.Duration(10 * time.Minute),
			Next: began.Add(time.Minute),
		}
		got := *w.last
		if !got.Since.Equal(want.Since) || !got.Next.Equal(want.Next) {
			t.Errorf("got since %s and next %s, want %s and %s", got.Since, got.Next, want.Since, want.Next)
		}
		got.Since, got.Next = want.Since, want.Next
		if got != want {
			t.Errorf("got heartbeat %+v, want %+v", got, want)
		}
		if w.polls != 0 || w.waits[0] != time.Minute || w.words[0] != "queued" {
			t.Errorf("got %d polls, wait %s, word %q, want none, a tenth of the usual time, queued", w.polls, w.waits[0], w.words[0])
		}
		status, err := w.end(t)
		if err != nil || status.State != providers.JobDone || status.Outputs != 1 || w.polls != 1 {
			t.Errorf("got %+v, %v after %d polls", status, err, w.polls)
		}
	})
}

// TestPollNotesHowLongItTook: the duration of a job is the one that the vendor reports, else the middle between the last two polls. So rare
// polls do not make jobs seem longer.
func TestPollNotesHowLongItTook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		runs int           // looks that find it on its way, the first after ten minutes
		says time.Duration // the vendor, of the job
		want time.Duration
		as   string // the model, "" for one that the channel lists
	}{
		{name: "done at the first look", want: time.Second},
		{name: "of a model that a client made up", want: time.Second, as: "made up"},
		{name: "done at the second", runs: 1, want: 15 * time.Minute},
		{name: "the vendor reports it", runs: 1, says: 3 * time.Minute, want: 3 * time.Minute},
		{name: "the vendor reports more than the task took", runs: 1, says: time.Hour, want: 15 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t, func(n int) (providers.VideoStatus, error) {
					if n <= tc.runs {
						return running(-1)
					}
					status, err := done()
					status.Took = tc.says
					return status, err
				})
				if tc.runs > 0 {
					w.pace.Least = 10 * time.Minute
				}
				var took time.Duration
				w.acts.Poller.Durations = fakeDurations{observe: func(_ context.Context, channel, model string, d time.Duration) error {
					want := "sora-2"
					if tc.as != "" {
						want = providers.AnyModel
					}
					if channel != "main" || model != want {
						t.Errorf("noted for %s, %s", channel, model)
					}
					took = d
					return errors.New("redis does not answer")
				}}
				w.in.Job.Model = cmp.Or(tc.as, w.in.Job.Model)
				if _, err := w.end(t); err != nil {
					t.Fatalf("got %v: nothing depends on the note", err)
				}
				if took != tc.want {
					t.Errorf("noted %s, want %s", took, tc.want)
				}
			})
		})
	}
}

// TestPollSchedule: a job of usual length needs few polls, its end is noticed soon after the expected time, and no poll is more frequent
// than the vendor permits.
func TestPollSchedule(t *testing.T) {
	t.Parallel()
	const most = 8
	for _, least := range []time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second} {
		for _, usual := range []time.Duration{
			10 * time.Second, 20 * time.Second, 45 * time.Second, 90 * time.Second, 3 * time.Minute, 10 * time.Minute, 25 * time.Minute, time.Hour,
		} {
			for _, share := range []float64{0.8, 0.9, 0.94, 0.951, 0.99, 1, 1.03, 1.1, 1.19, 1.2} {
				synctest.Test(t, func(t *testing.T) {
					length := time.Duration(share * float64(usual))
					var began, last time.Time
					w := newWatch(t, func(int) (providers.VideoStatus, error) {
						if between := time.Since(last); !last.IsZero() && between < least {
							t.Errorf("usually %s, took %s: two looks %s apart, want %s at least", usual, length, between, least)
						}
						last = time.Now()
						if time.Since(began) < length {
							return running(-1)
						}
						return done()
					})
					w.acts.Poller.Durations, w.pace.Least = usually(usual), least
					began = w.in.Job.AcceptedAt
					if _, err := w.end(t); err != nil {
						t.Fatal(err)
					}
					late := time.Since(began) - length
					if w.polls > most {
						t.Errorf("usually %s, took %s: %d polls, want at most %d; waits %s", usual, length, w.polls, most, w.waits)
					}
					interval := max(w.acts.Poller.PollMin, usual/20, least)
					if share > 0.95 && late > interval {
						t.Errorf("usually %s, took %s: noticed %s late, want at most %s; waits %s", usual, length, late, interval, w.waits)
					}
				})
			}
		}
	}
}

// TestPollBeforeResultsDie: a job whose results expire within minutes is polled in time, however long such jobs take.
func TestPollBeforeResultsDie(t *testing.T) {
	t.Parallel()
	const most = 4 * time.Minute
	for _, usual := range []time.Duration{0, 10 * time.Minute, 5 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch(t, func(n int) (providers.VideoStatus, error) {
				if n == 3 { // it would rather not be asked for so long that the result is gone
					return providers.VideoStatus{}, &providers.Fault{Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 10 * time.Minute}
				}
				return running(-1)
			})
			w.acts.Poller.Durations, w.pace.Most = usually(usual), most
			_, _ = w.end(t)
			for _, wait := range w.waits {
				if wait > most {
					t.Fatalf("usually %s: waits %s, want %s at most", usual, w.waits, most)
				}
			}
		})
	}
}

func TestPollWaits(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, tc := range []struct {
		name       string
		usual, eta time.Duration
		pace       providers.Pace
		asked      time.Duration // by an upstream that limits the looks
		min, max   time.Duration // 0: 2s and 30s
		want       []time.Duration
	}{
		{name: "nothing known", want: []time.Duration{2 * s, 4 * s, 8 * s, 16 * s, 30 * s, 30 * s, 30 * s}},
		{name: "bounds alike", min: 5 * s, max: 5 * s, want: []time.Duration{5 * s, 5 * s, 5 * s}},
		{name: "usual", usual: 100 * s, want: []time.Duration{
			10 * s, 40 * s, 45 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 5 * s, 10 * s,
			20 * s, 30 * s, 30 * s,
		}},
		{name: "usual is very short", usual: 3 * s, want: []time.Duration{2850 * time.Millisecond, 2 * s, 2 * s, 4 * s}},
		{name: "eta", eta: 60 * s, want: []time.Duration{
			60 * s, 3 * s, 3 * s, 3 * s, 3 * s, 3 * s, 3 * s, 6 * s, 12 * s, 24 * s, 30 * s,
			30 * s,
		}},
		{name: "eta outweighs usual", usual: time.Hour, eta: 60 * s, want: []time.Duration{60 * s, 3 * s}},
		{name: "the vendor's least", pace: providers.Pace{Least: 7 * s}, want: []time.Duration{7 * s, 14 * s, 28 * s, 30 * s, 30 * s}},
		{name: "least above poll_max", pace: providers.Pace{Least: 40 * s}, want: []time.Duration{40 * s, 40 * s, 40 * s}},
		{
			name: "least and usual", usual: 100 * s, pace: providers.Pace{Least: 7 * s},
			want: []time.Duration{10 * s, 40 * s, 45 * s, 7 * s, 7 * s, 7 * s, 7 * s, 7 * s, 7 * s, 14 * s},
		},
		{name: "usual below least", usual: 10 * s, pace: providers.Pace{Least: 15 * s}, want: []time.Duration{15 * s, 15 * s, 30 * s}},
		{name: "least below poll_min", pace: providers.Pace{Least: time.Millisecond}, want: []time.Duration{2 * s, 4 * s, 8 * s}},
		{
			name: "the vendor's most", usual: time.Hour, pace: providers.Pace{Least: 2 * s, Most: 4 * time.Minute},
			want: []time.Duration{4 * time.Minute, 2 * time.Minute, 4 * time.Minute},
		},
		{name: "asked", asked: 7 * s, want: []time.Duration{2 * s, 7 * s, 7 * s}},
		{name: "asked outweighs usual", usual: 100 * s, asked: 7 * s, want: []time.Duration{10 * s, 7 * s, 7 * s}},
		{name: "asked below the least", asked: time.Millisecond, pace: providers.Pace{Least: 5 * s}, want: []time.Duration{5 * s, 5 * s, 5 * s}},
		{name: "asked beyond belief", asked: 5 * time.Hour, want: []time.Duration{2 * s, 15 * time.Minute, 15 * time.Minute}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t, func(int) (providers.VideoStatus, error) {
					if tc.asked > 0 {
						return providers.VideoStatus{}, &providers.Fault{Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: tc.asked}
					}
					return running(-1)
				})
				w.acts.Poller.Durations, w.pace = usually(tc.usual), tc.pace
				w.in.Job.Ticket.ETA = tc.eta
				if tc.min > 0 {
					w.acts.Poller.PollMin, w.acts.Poller.PollMax = tc.min, tc.max
				}
				for i, want := range tc.want {
					if _, err, ended := w.look(t); ended {
						t.Fatalf("got %v", err)
					}
					if w.waits[i] != want {
						t.Fatalf("got waits %s, want %s", w.waits, tc.want)
					}
				}
			})
		})
	}
}

// TestPollWaitsForever: no number of waits makes the delay overflow.
func TestPollWaitsForever(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return running(-1) })
		w.acts.Poller.PollMin, w.acts.Poller.PollMax = 29*time.Second, 30*time.Second
		w.in.Deadline = w.in.Job.AcceptedAt.Add(time.Hour)
		if _, err := w.end(t); err == nil {
			t.Fatal("got no deadline")
		}
		if n := len(w.waits); n < 119 {
			t.Errorf("got %d waits", n)
		}
	})
}

func TestPollDeadline(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		usual time.Duration
		err   error
		want  activities.Record
	}{
		{
			name: "running", want: activities.Record{
				Kind: providers.Timeout, Message: "The upstream did not finish in time.", Deadline: true,
				Progress: 10,
			},
		},
		{
			name: "failing", err: &providers.Fault{
				Kind: providers.Overloaded, Message: "Full.", Blame: providers.BlameChannel,
				Upstream: &providers.Reply{Status: 503},
			},
			want: activities.Record{Kind: providers.Overloaded, Message: "Full.", Status: 503, Retryable: true, Finished: true, Deadline: true},
		},
		{
			name: "failing with a far Retry-After", err: &providers.Fault{
				Kind: providers.RateLimited, Message: "Slowly.",
				RetryAfter: 1000 * time.Hour,
			},
			want: activities.Record{
				Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 1000 * time.Hour, Retryable: true, Finished: true,
				Deadline: true,
			},
		},
		{
			name: "usually much longer", usual: 5 * time.Hour,
			want: activities.Record{Kind: providers.Timeout, Message: "The upstream did not finish in time.", Deadline: true, Progress: 10},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var lastLook time.Time
				w := newWatch(t, func(int) (providers.VideoStatus, error) {
					lastLook = time.Now()
					if tc.err != nil {
						return providers.VideoStatus{}, tc.err
					}
					return running(10)
				})
				w.acts.Poller.Durations = usually(tc.usual)
				w.in.Deadline = w.in.Job.AcceptedAt.Add(20 * time.Minute)
				_, err := w.end(t)
				got, retried, _ := fault(t, err)
				if got != tc.want || retried {
					t.Errorf("got %+v, retried %t, want %+v", got, retried, tc.want)
				}
				// The last wait is shortened so that the last look comes just before the deadline.
				if want := w.in.Deadline.Add(-time.Second); !lastLook.Equal(want) {
					t.Errorf("the last look was at %s, want %s", lastLook, want)
				}
				if tc.usual == 0 && tc.err == nil && w.polls > 50 {
					t.Errorf("got %d polls", w.polls)
				}
			})
		})
	}
}

func TestPollProgressNeverFalls(t *testing.T) {
	t.Parallel()
	type look struct {
		state    providers.VideoState
		progress int
		word     string
	}
	type shown struct {
		state   providers.VideoState
		percent int
	}
	looks := []look{
		{providers.JobQueued, 0, "queued"},
		{providers.JobRunning, 30, "in_progress"},
		{providers.JobQueued, 10, "queued"},
		{providers.JobRunning, -1, "in_progress"},
		{providers.JobForgotten, -1, ""},
		{providers.VideoState("odd"), 31, "odd"},
		{providers.JobRunning, 70, "finishing"},
	}
	wants := []shown{
		{providers.JobQueued, 0},
		{providers.JobRunning, 30},
		{providers.JobRunning, 30},
		{providers.JobRunning, 30},
		{providers.JobRunning, 30},
		{providers.JobRunning, 31},
		{providers.JobRunning, 70},
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(n int) (providers.VideoStatus, error) {
			return providers.VideoStatus{State: looks[n-1].state, Progress: looks[n-1].progress, VendorState: looks[n-1].word}, nil
		})
		if _, err, ended := w.look(t); ended {
			t.Fatalf("got %v", err)
		}
		for i, want := range wants {
			if _, err, ended := w.look(t); ended {
				t.Fatalf("look %d: got %v", i, err)
			}
			if got := (shown{w.last.State, w.last.Percent}); got != want {
				t.Errorf("look %d: got %+v, want %+v", i, got, want)
			}
			if w.last.Polls != i+1 || w.last.VendorStatus != looks[i].word {
				t.Errorf("look %d: got heartbeat %+v", i, *w.last)
			}
			word := looks[i].word
			if word == "" {
				word = string(want.state)
			}
			if got := w.words[i+1]; got != word {
				t.Errorf("look %d: got word %q, want %q", i, got, word)
			}
		}
	})
}

func TestPollFaults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := &providers.Fault{
			Kind: providers.Upstream, Message: strings.Repeat("ä", 600), Blame: providers.BlameChannel,
			RetryAfter: 9 * time.Second,
		}
		var reports []*providers.Fault
		w := newWatch(t, func(n int) (providers.VideoStatus, error) {
			switch n {
			case 1, 2:
				return providers.VideoStatus{}, broken
			case 3:
				return running(5)
			}
			return done()
		})
		w.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) { reports = append(reports, f) }}
		for i, errs := range []int{0, 1, 2, 0} {
			if _, err, ended := w.look(t); ended {
				t.Fatalf("look %d: got %v", i, err)
			}
			if w.last.Errors != errs || (w.last.Fault != nil) != (errs > 0) {
				t.Errorf("look %d: got heartbeat %+v", i, *w.last)
			}
		}
		if w.waits[1] != 9*time.Second || w.waits[2] != 9*time.Second {
			t.Errorf("got waits %s, want those of Retry-After", w.waits)
		}
		if got := w.words[1]; len(got) > 510 || strings.ContainsRune(got, '\uFFFD') || !strings.HasSuffix(got, "ä…") {
			t.Errorf("got message %q, want it cut between characters", got)
		}
		if _, err := w.end(t); err != nil {
			t.Fatal(err)
		}
		if len(reports) != 4 || reports[0] != broken || reports[1] != broken || reports[2] != nil || reports[3] != nil {
			t.Errorf("got reports %v", reports)
		}
	})
}

// TestPollForgotten: a job is given up if it is unknown for ten times poll_max, at five consecutive polls or more. A job that is known
// again is not, for example after an upstream's load balancer has answered 404 for a while.
func TestPollForgotten(t *testing.T) {
	t.Parallel()
	forgotten := providers.VideoStatus{
		State: providers.JobForgotten, Progress: -1,
		Failure: &providers.VideoFailure{Code: "job_not_found", Message: "Gone."},
	}
	for _, tc := range []struct {
		name    string
		pollMax time.Duration
		least   time.Duration // the vendor's
		// back is the time from the first poll that does not find the job to the one that does. 0: none does.
		back time.Duration
		want time.Duration // from the last time it was lost
		most int           // looks after that
	}{
		{"default", 30 * time.Second, 0, 0, 5 * time.Minute, 15},
		{"a rollout", 30 * time.Second, 0, 4 * time.Minute, 5 * time.Minute, 15},
		{"short waits", 2 * time.Second, 0, 0, 20 * time.Second, 12},
		{"the vendor requires rare polls", 30 * time.Second, 10 * time.Minute, 0, 40 * time.Minute, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var (
					lost  time.Time
					looks int
					back  bool
				)
				w := newWatch(t, func(int) (providers.VideoStatus, error) {
					if lost.IsZero() {
						lost, looks = time.Now(), 0
					}
					if tc.back > 0 && !back && time.Since(lost) >= tc.back {
						back, lost = true, time.Time{}
						return running(1)
					}
					looks++
					return forgotten, nil
				})
				w.pace.Least = tc.least
				w.acts.Poller.PollMax = tc.pollMax
				status, err := w.end(t)
				if err != nil || status.State != providers.JobFailed || status.Failure == nil || status.Failure.Code != "job_not_found" {
					t.Errorf("got %+v, %v, want a failed job", status, err)
				}
				if took := time.Since(lost); took < tc.want || took >= tc.want+tc.pollMax {
					t.Errorf("given up after %s, want %s", took, tc.want)
				}
				if looks < 5 || looks > tc.most {
					t.Errorf("given up after %d looks in a row, want 5 to %d", looks, tc.most)
				}
				if back != (tc.back > 0) {
					t.Errorf("it came back: %t", back)
				}
			})
		})
	}
}

// TestPollRefused: a job whose looks are all refused as bad requests is given up after half an hour, and one that is known again is not.
func TestPollRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := &providers.Fault{
			Kind: providers.Invalid, Message: "No such parameter.", Accepted: providers.NotAccepted,
			Upstream: &providers.Reply{Status: 400},
		}
		var since time.Time
		back := false
		w := newWatch(t, func(int) (providers.VideoStatus, error) {
			if since.IsZero() {
				since = time.Now()
			}
			if !back && time.Since(since) > 20*time.Minute {
				back, since = true, time.Time{}
				return running(1)
			}
			return providers.VideoStatus{}, refused
		})
		w.acts.Poller.PollMax = 30 * time.Second
		status, err := w.end(t)
		if err != nil || status.State != providers.JobFailed || status.Failure == nil || status.Failure.Code != providers.FailedForgotten ||
			!strings.Contains(status.Failure.Message, "No such parameter") {
			t.Errorf("got %+v, %v, want a failed job", status, err)
		}
		if took := time.Since(since); took < 30*time.Minute || took > 32*time.Minute || !back {
			t.Errorf("given up after %s, back %v", took, back)
		}
	})
}

func TestPollFailedJob(t *testing.T) {
	t.Parallel()
	for _, failure := range []*providers.VideoFailure{nil, {Code: "moderation", Message: "No."}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch(t, func(int) (providers.VideoStatus, error) {
				return providers.VideoStatus{State: providers.JobFailed, Progress: 40, Failure: failure}, nil
			})
			w.acts.Poller.Durations = fakeDurations{observe: func(context.Context, string, string, time.Duration) error {
				t.Error("the length of a failed job was noted")
				return nil
			}}
			status, err := w.end(t)
			if err != nil || status.State != providers.JobFailed || (status.Failure == nil) != (failure == nil) {
				t.Errorf("got %+v, %v", status, err)
			}
			if listed := (providers.VideoFailure{Code: providers.FailedContent, Message: "moderation: No."}); failure != nil &&
				*status.Failure != listed {
				t.Errorf("got failure %+v, want %+v", *status.Failure, listed)
			}
		})
	}
}

// TestPollProgressDoesNotFall: the progress does not fall when a job fails, whatever progress the vendor reports.
func TestPollProgressDoesNotFall(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]providers.VideoState{"failed": providers.JobFailed, "deadline": providers.JobRunning} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch(t, func(n int) (providers.VideoStatus, error) {
				if n == 1 {
					return running(60)
				}
				return providers.VideoStatus{State: last, Progress: 0}, nil
			})
			status, err := w.end(t)
			got := status.Progress
			if err != nil {
				r, _ := activities.Outcome(err)
				got = r.Progress
			}
			if got != 60 {
				t.Errorf("%s: got %d, want the 60 that were shown", name, got)
			}
		})
	}
}

func TestPollChannelGone(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{9 * time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := newWatch(t, func(int) (providers.VideoStatus, error) { return done() })
			began := w.in.Job.AcceptedAt
			w.upstreams.Channels = fakeChannels{resolve: func(channel, fingerprint, model string) (providers.Target, error) {
				if channel != "main" || fingerprint != hushKey.Fingerprint() || model != "up" {
					t.Errorf("asked for %s, %s, %s", channel, fingerprint, model)
				}
				if time.Since(began) < back {
					return providers.Target{}, router.ErrChannelGone
				}
				return theTarget(), nil
			}}
			status, err := w.end(t)
			if back < 10*time.Minute {
				if err != nil || status.State != providers.JobDone {
					t.Errorf("back after %s: got %+v, %v", back, status, err)
				}
				return
			}
			got, retried, _ := fault(t, err)
			if !got.Gone || retried || got.Deadline || !strings.Contains(got.Message, `"main"`) {
				t.Errorf("got %+v, retried %t", got, retried)
			}
			if waited := time.Since(began); waited < 10*time.Minute || waited > 11*time.Minute {
				t.Errorf("gave up after %s, want ten minutes", waited)
			}
		})
	}
}

// TestPollChannelGoneTwice: two slips are not one long one.
func TestPollChannelGoneTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return running(1) })
		began := w.in.Job.AcceptedAt
		w.in.Deadline = began.Add(time.Hour)
		w.upstreams.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
			if slip := time.Since(began) % (10 * time.Minute); slip < 8*time.Minute {
				return providers.Target{}, router.ErrChannelGone
			}
			return theTarget(), nil
		}}
		_, err := w.end(t)
		if got, _, _ := fault(t, err); !got.Deadline || time.Since(began) < 59*time.Minute {
			t.Errorf("got %+v after %s, want the deadline", got, time.Since(began))
		}
	})
}

// TestPollVendorGone: a channel whose vendor makes no videos any more is as gone as one that is not there.
func TestPollVendorGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, nil)
		w.upstreams.Catalog = providers.Catalog{"fake": {Name: "fake"}}
		_, err := w.end(t)
		if got, _, _ := fault(t, err); !got.Gone {
			t.Errorf("got %+v", got)
		}
	})
}

func TestPollHeartbeatUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return done() })
		w.env.SetHeartbeatDetails("from another version")
		if _, err, ended := w.look(t); ended {
			t.Fatalf("got %v", err)
		}
		if w.polls != 0 || !w.last.Since.Equal(w.in.Job.AcceptedAt) {
			t.Errorf("got %d polls, heartbeat %+v, want a start over", w.polls, *w.last)
		}
		if status, err := w.end(t); err != nil || status.State != providers.JobDone {
			t.Errorf("got %+v, %v", status, err)
		}
	})
}

// TestPollDurationsAway: a memory that does not answer delays the first look by a second at most.
func TestPollDurationsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return done() })
		w.acts.Poller.Durations = fakeDurations{usual: func(ctx context.Context, _, _ string) (time.Duration, bool, error) {
			<-ctx.Done()
			return time.Hour, true, ctx.Err()
		}}
		if _, err := w.end(t); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(w.in.Job.AcceptedAt); took != 3*time.Second {
			t.Errorf("noticed after %s, want 3s", took)
		}
	})
}

func TestPollCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newTestEnv(t, nil)
		cancel := r.cancelable(t)
		r.upstreams.Catalog["fake"] = providers.Vendor{Name: "fake", Video: fakeAdapter{
			poll: func(ctx context.Context, _ providers.Target, _ providers.Ticket) (providers.VideoStatus, error) {
				cancel()
				<-ctx.Done()
				return providers.VideoStatus{}, &providers.Fault{Kind: providers.Canceled, Message: "The request was canceled.", Err: ctx.Err()}
			},
		}}
		r.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) { t.Errorf("a cancel was reported: %v", f) }}
		r.env.SetHeartbeatDetails(activities.Progress{Since: time.Now()})
		_, err := do[providers.VideoStatus](t, r, r.acts.Poller.Poll,
			activities.PollInput{Job: activities.Job{Assignment: assignment()}, Deadline: time.Now().Add(time.Hour)})
		if record, ok := activities.Outcome(err); !temporal.IsCanceledError(err) || ok {
			t.Errorf("got %v, outcome %+v, want a cancelled activity, which has none", err, record)
		}
	})
}
