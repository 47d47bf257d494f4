package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/router"
	"modelrelay/storage"
	"modelrelay/storage/archive"
)

func submitInput() activities.SubmitInput {
	return activities.SubmitInput{
		TaskID: "video_1", Incarnation: "one", Attempt: 2, Assignment: assignment(),
		Request: &providers.VideoRequest{Model: "sora-2", Prompt: "a cat", IdempotencyKey: "the caller's own"},
	}
}

func TestSubmitAccepted(t *testing.T) {
	t.Parallel()
	for _, archive := range []error{nil, storage.ErrUnavailable} {
		t.Run(fmt.Sprintf("archive %v", archive), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ticket := providers.Ticket{Job: "job-1", Data: json.RawMessage(`{"region":"x"}`), ETA: time.Minute}
				var steps []string
				r := newTestEnv(t, fakeAdapter{submit: func(ctx context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket,
					error,
				) {
					steps = append(steps, "submit")
					if to.Key != hushKey || to.Model != "up" || req.Prompt != "a cat" || req.IdempotencyKey != "video_1-one-2" {
						t.Errorf("got model %q, request %+v", to.Model, req)
					}
					if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != activities.SubmitTimeout {
						t.Errorf("got deadline %s, %t", deadline, ok)
					}
					return ticket, nil
				}})
				r.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) {
					if f != nil {
						t.Errorf("reported %v", f)
					}
					steps = append(steps, "report")
				}}
				var kept []byte
				r.acts.Submitter.Objects = fakeObjects{putJSON: func(ctx context.Context, key string, doc any) error {
					steps = append(steps, "keep")
					if _, ok := ctx.Deadline(); !ok {
						t.Error("the write of the ticket is not bounded")
					}
					if key != "tasks/video_1/attempts/one-2" || key != submitInput().TicketObject() {
						t.Errorf("stored at %q", key)
					}
					var err error
					if kept, err = json.Marshal(doc); err != nil {
						t.Error(err)
					}
					return archive
				}}
				got, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
				want := activities.Job{TaskID: "video_1", Model: "sora-2", Assignment: assignment(), Ticket: ticket, AcceptedAt: time.Now().UTC()}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, %v, want %+v", got, err, want)
				}
				if !slices.Equal(steps, []string{"submit", "report", "keep"}) {
					t.Errorf("got steps %v", steps)
				}
				if strings.Contains(string(kept), string(hushKey)) {
					t.Error("the ticket object holds the key")
				}
				// Reconcile finds what was stored.
				r.acts.Submitter.Objects = fakeObjects{getJSON: func(_ context.Context, key string, into any) error {
					if key != "tasks/video_1/attempts/one-2" {
						t.Errorf("looked for %q", key)
					}
					return json.Unmarshal(kept, into)
				}}
				found, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, activities.ReconcileInput{Submit: submitInput()})
				if err != nil || !reflect.DeepEqual(found, want) {
					t.Errorf("found %+v, %v, want %+v", found, err, want)
				}
			})
		})
	}
}

// TestSubmitAfterReset: the same attempt asked for once more, as by a workflow that an operator reset, is not paid again.
func TestSubmitAfterReset(t *testing.T) {
	t.Parallel()
	paid := 0
	r := newTestEnv(t, fakeAdapter{submit: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
		paid++
		return providers.Ticket{Job: fmt.Sprint("job-", paid)}, nil
	}})
	kept := make(map[string][]byte)
	r.acts.Submitter.Objects = fakeObjects{
		putJSON: func(_ context.Context, key string, doc any) error {
			var err error
			kept[key], err = json.Marshal(doc)
			return err
		},
		getJSON: func(_ context.Context, key string, into any) error {
			if kept[key] == nil {
				return storage.ErrNotFound
			}
			return json.Unmarshal(kept[key], into)
		},
	}
	first, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
	if err != nil {
		t.Fatal(err)
	}
	again, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
	if err != nil || !reflect.DeepEqual(again, first) || paid != 1 {
		t.Errorf("got %+v, %v, paid %d times, want %+v once", again, err, paid, first)
	}
	next := submitInput()
	next.Attempt++
	if job, err := do[activities.Job](t, r, r.acts.Submitter.Submit, next); err != nil || job.Ticket.Job != "job-2" {
		t.Errorf("the next attempt got %+v, %v", job, err)
	}
}

func TestSubmitOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  error
		want activities.Record
	}{
		{
			name: "final", err: &providers.Fault{
				Kind: providers.Invalid, Message: "No such size.", Param: "size", Code: "bad_size",
				Accepted: providers.NotAccepted, Upstream: &providers.Reply{Status: 400, Body: []byte("hush")},
			},
			want: activities.Record{
				Kind: providers.Invalid, Message: "No such size.", Param: "size", Code: "bad_size", Status: 400,
				Accepted: providers.NotAccepted, Finished: true,
			},
		},
		{
			name: "elsewhere, another key", err: &providers.Fault{
				Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 9 * time.Second,
				Accepted: providers.NotAccepted, Blame: providers.BlameKey,
			},
			want: activities.Record{
				Kind: providers.RateLimited, Message: "Slowly.", RetryAfter: 9 * time.Second, Accepted: providers.NotAccepted,
				Retryable: true, KeyOnly: true, Finished: true,
			},
		},
		{
			name: "elsewhere, another channel", err: &providers.Fault{
				Kind: providers.Upstream, Message: "Not there.",
				Accepted: providers.NotAccepted, Blame: providers.BlameChannel, Err: errors.New("dial"),
			},
			want: activities.Record{
				Kind: providers.Upstream, Message: "Not there.", Accepted: providers.NotAccepted, Retryable: true,
				Finished: true,
			},
		},
		{
			name: "no such model there", err: &providers.Fault{
				Kind: providers.ModelNotFound, Message: "No such model.",
				Accepted: providers.NotAccepted, Upstream: &providers.Reply{Status: 404},
			},
			want: activities.Record{
				Kind: providers.ModelNotFound, Message: "No such model.", Status: 404, Accepted: providers.NotAccepted,
				Finished: true, NoModel: true,
			},
		},
		{
			name: "no such route there", err: &providers.Fault{
				Kind: providers.NotFound, Message: "Gone.", Accepted: providers.NotAccepted,
				Upstream: &providers.Reply{Status: 410},
			},
			want: activities.Record{
				Kind: providers.NotFound, Message: "Gone.", Status: 410, Accepted: providers.NotAccepted, Finished: true,
				NoModel: true,
			},
		},
		{
			name: "content", err: &providers.Fault{
				Kind: providers.Invalid, Message: "No.", Code: "1301", Failed: providers.FailedContent,
				Accepted: providers.NotAccepted,
			},
			want: activities.Record{
				Kind: providers.Invalid, Message: "No.", Code: "1301", Accepted: providers.NotAccepted, Finished: true,
				Failed: providers.FailedContent,
			},
		},
		{
			name: "unknown", err: &providers.Fault{
				Kind: providers.Overloaded, Message: "Full.", Blame: providers.BlameChannel,
				Upstream: &providers.Reply{Status: 503},
			},
			want: activities.Record{Kind: providers.Overloaded, Message: "Full.", Status: 503, Retryable: true, Finished: true},
		},
		{
			name: "not a fault", err: errors.New("hush"),
			want: activities.Record{Kind: providers.Internal, Message: "The gateway failed to handle the request.", Finished: true},
		},
		{
			name: "timeout", err: fmt.Errorf("post: %w", context.DeadlineExceeded),
			want: activities.Record{Kind: providers.Timeout, Message: "The request took too long.", Retryable: true, Finished: true},
		},
		{
			name: "long words", err: &providers.Fault{Kind: providers.Invalid, Message: strings.Repeat("é", 251), Accepted: providers.NotAccepted},
			want: activities.Record{
				Kind: providers.Invalid, Message: strings.Repeat("é", 250) + "…", Accepted: providers.NotAccepted,
				Finished: true,
			},
		},
		{
			name: "long words cut inside a character", err: &providers.Fault{
				Kind: providers.Invalid, Message: "x" + strings.Repeat("é", 251),
				Accepted: providers.NotAccepted,
			},
			want: activities.Record{
				Kind: providers.Invalid, Message: "x" + strings.Repeat("é", 249) + "…", Accepted: providers.NotAccepted,
				Finished: true,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newTestEnv(t, fakeAdapter{submit: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
				return providers.Ticket{}, tc.err
			}})
			reported := false
			r.upstreams.Channels = fakeChannels{report: func(_ providers.Target, f *providers.Fault) { reported = f != nil }}
			_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
			got, retried, _ := fault(t, err)
			if got != tc.want || retried {
				t.Errorf("got %+v, retried %t, want %+v", got, retried, tc.want)
			}
			if !reported {
				t.Error("the router received no report")
			}
			var app *temporal.ApplicationError
			if errors.As(err, &app); (app.Category() == temporal.ApplicationErrorCategoryBenign) != (tc.want.Kind == providers.Invalid) {
				t.Errorf("kind %s has category %v: only a client's own mistake is benign", tc.want.Kind, app.Category())
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("the error %q has internal details", err)
			}
		})
	}
}

// TestSubmitBeforeIt: what fails before the adapter is called cost nothing.
func TestSubmitBeforeIt(t *testing.T) {
	t.Parallel()
	away := fakeObjects{getJSON: func(context.Context, string, any) error { return fmt.Errorf("read: %w", storage.ErrUnavailable) }}
	lost := fakeObjects{getJSON: func(context.Context, string, any) error { return fmt.Errorf("read: %w", storage.ErrNotFound) }}
	for _, tc := range []struct {
		name            string
		channels        fakeChannels
		objects         fakeObjects
		elsewhere, gone bool
	}{
		{name: "channel gone", channels: fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
			return providers.Target{}, router.ErrChannelGone
		}}, elsewhere: true, gone: true},
		{name: "archive away", objects: away, elsewhere: true},
		{name: "request lost", objects: lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newTestEnv(t, fakeAdapter{})
			r.upstreams.Channels, r.acts.Submitter.Objects = tc.channels, tc.objects
			in := submitInput()
			in.Request, in.RequestObject = nil, "tasks/video_1/request.json"
			_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in)
			got, retried, _ := fault(t, err)
			if got.Accepted != providers.NotAccepted || got.Retryable != tc.elsewhere || got.Gone != tc.gone || retried {
				t.Errorf("got %+v, retried %t", got, retried)
			}
		})
	}
}

func TestSubmitReadsItsInput(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{submit: func(ctx context.Context, _ providers.Target, req providers.VideoRequest) (providers.Ticket,
		error,
	) {
		if len(req.Inputs) != 2 || req.Inputs[0].Open != nil || req.Inputs[0].URL != "https://example.com/a.png" {
			t.Errorf("got images %+v", req.Inputs)
		}
		_, err := req.Inputs[1].Open(ctx)
		return providers.Ticket{}, &providers.Fault{Kind: providers.Overloaded, Message: "Unreadable.", Accepted: providers.NotAccepted, Err: err}
	}})
	var opened string
	r.acts.Submitter.Objects = fakeObjects{
		getJSON: func(_ context.Context, key string, into any) error {
			switch key {
			case "tasks/video_1/request.json":
			case "tasks/video_1/attempts/one-2":
				return storage.ErrNotFound
			default:
				t.Errorf("read %q", key)
			}
			return json.Unmarshal([]byte(`{"model":"sora-2","inputs":[{"url":"https://example.com/a.png"},{"object":"tasks/video_1/inputs/0"}]}`),
				into)
		},
		open: func(_ context.Context, key string) (*archive.Reader, error) {
			opened = key
			return nil, storage.ErrUnavailable
		},
	}
	in := submitInput()
	in.Request, in.RequestObject = nil, "tasks/video_1/request.json"
	_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in)
	if got, _, _ := fault(t, err); got.Accepted != providers.NotAccepted || !got.Retryable || got.Message != "Unreadable." {
		t.Errorf("got %+v", got)
	}
	if opened != "tasks/video_1/inputs/0" {
		t.Errorf("opened %q", opened)
	}
}

// TestSubmitGoesOn: neither a cancel nor a worker that stops interrupts a paid request, and its ticket is stored.
func TestSubmitGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newTestEnv(t, nil)
		cancel := r.cancelable(t)
		stopping := make(chan struct{})
		r.env.SetWorkerStopChannel(stopping)
		r.upstreams.Catalog["fake"] = providers.Vendor{Name: "fake", Video: fakeAdapter{
			submit: func(ctx context.Context, _ providers.Target, _ providers.VideoRequest) (providers.Ticket, error) {
				cancel()
				close(stopping)
				select {
				case <-ctx.Done():
					return providers.Ticket{}, ctx.Err()
				case <-time.After(50 * time.Second):
					return providers.Ticket{Job: "job-1"}, nil
				}
			},
		}}
		kept := false
		r.acts.Submitter.Objects = fakeObjects{putJSON: func(ctx context.Context, _ string, _ any) error {
			kept = ctx.Err() == nil
			return ctx.Err()
		}}
		job, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
		if err != nil || job.Ticket.Job != "job-1" || !kept {
			t.Errorf("got %+v, %v, ticket stored %t", job, err, kept)
		}
	})
}

// TestSubmitPanics: an adapter that breaks down leaves the outcome unknown.
func TestSubmitPanics(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
	if got, ok := activities.Outcome(err); !ok || got.Accepted != providers.AcceptedUnknown || got.Finished || got.Kind != providers.Internal {
		t.Errorf("got %+v, %t of %v", got, ok, err)
	}
}

// begun is the claim of an attempt that a lost submit has.
func begun(context.Context, string, string) (holder string, err error) { return "the lost submit", nil }

func TestReconcile(t *testing.T) {
	t.Parallel()
	const (
		lost  = "lost"  // the archive has no ticket
		away  = "away"  // it cannot be asked
		found = "found" // it has one
	)
	notThere := &providers.Fault{Kind: providers.NotFound, Message: "No such job.", Accepted: providers.NotAccepted}
	for _, tc := range []struct {
		name    string
		archive string
		// find is the vendor's look-up; nil where it has none.
		find func() (providers.Ticket, error)
		// gone: the channel has left the configuration. requestLost: so has the request's object.
		gone, requestLost bool
		// just: the submit's time has just ended. over: the vendor's time to come to its senses has, too.
		just, over bool
		job        string // "" for a fault
		retried    bool
		delay      time.Duration // of a retry; 0 for the usual
		taken      providers.Accepted
	}{
		{name: "ticket found", archive: found, job: "kept"},
		{name: "ticket found, request lost", archive: found, requestLost: true, over: true, job: "kept"},
		{name: "archive away", archive: away, retried: true},
		{name: "archive away for long", archive: away, over: true, retried: true},
		{
			name: "archive away, vendor surely not", archive: away, over: true,
			find: func() (providers.Ticket, error) { return providers.Ticket{}, notThere }, retried: true,
		},
		{
			name: "vendor has it", archive: lost, find: func() (providers.Ticket, error) { return providers.Ticket{Job: "theirs"}, nil },
			job: "theirs",
		},
		{
			name: "vendor has it not yet", archive: lost, find: func() (providers.Ticket, error) { return providers.Ticket{}, notThere },
			retried: true,
		},
		{
			name: "vendor has it not, just after", archive: lost, just: true,
			find: func() (providers.Ticket, error) { return providers.Ticket{}, notThere }, retried: true,
		},
		{name: "vendor not reached just after", archive: lost, just: true, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "Not there."}
		}, retried: true},
		{name: "vendor requires a wait", archive: lost, just: true, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.Conflict, Message: "Being started.", RetryAfter: 7 * time.Second}
		}, retried: true, delay: 7 * time.Second},
		{name: "no look-up just after", archive: lost, just: true},
		{
			name: "request lost just after", archive: lost, just: true, requestLost: true,
			find: func() (providers.Ticket, error) { return providers.Ticket{Job: "theirs"}, nil },
		},
		{name: "channel gone just now", archive: lost, just: true, gone: true, retried: true},
		{
			name: "vendor surely not", archive: lost, over: true, find: func() (providers.Ticket, error) { return providers.Ticket{}, notThere },
			taken: providers.NotAccepted,
		},
		{name: "vendor's route is missing", archive: lost, over: true, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.NotFound, Message: "No such route."}
		}},
		{name: "vendor not reached yet", archive: lost, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "Not there.", Accepted: providers.NotAccepted}
		}, retried: true},
		{name: "vendor not reached", archive: lost, over: true, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "Not there.", Accepted: providers.NotAccepted}
		}},
		{name: "vendor refuses the look-up", archive: lost, over: true, find: func() (providers.Ticket, error) {
			return providers.Ticket{}, &providers.Fault{Kind: providers.Invalid, Message: "Bad.", Accepted: providers.NotAccepted}
		}},
		{name: "no look-up yet", archive: lost, retried: true},
		{name: "no look-up", archive: lost, over: true},
		{name: "channel gone", archive: lost, over: true, gone: true},
		{
			name: "request lost", archive: lost, over: true, requestLost: true,
			find: func() (providers.Ticket, error) { return providers.Ticket{Job: "theirs"}, nil },
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newTestEnv(t, fakeAdapter{})
				if tc.find != nil {
					r.upstreams.Catalog["fake"] = providers.Vendor{Name: "fake", Video: finder{
						find: func(_ context.Context, to providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
							if to.Key != hushKey || req.IdempotencyKey != "video_1-one-2" {
								t.Errorf("looked up %q", req.IdempotencyKey)
							}
							return tc.find()
						},
					}}
				}
				if tc.gone {
					r.upstreams.Channels = fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
						return providers.Target{}, router.ErrChannelGone
					}}
				}
				accepted := time.Now().Add(-time.Minute).UTC()
				r.acts.Submitter.Objects = fakeObjects{claim: begun, getJSON: func(_ context.Context, key string, into any) error {
					switch {
					case key == "request" && tc.requestLost:
						return storage.ErrNotFound
					case key == "request":
						return json.Unmarshal([]byte(`{"model":"sora-2"}`), into)
					case tc.archive == lost:
						return storage.ErrNotFound
					case tc.archive == away:
						return storage.ErrUnavailable
					}
					return json.Unmarshal(fmt.Appendf(nil, `{"model":"sora-2","assignment":{"channel":"main","vendor":"fake","key":%q,"model":"up"},"ticket":{"job":"kept"},"accepted_at":%q}`,
						hushKey.Fingerprint(), accepted.Format(time.RFC3339Nano)), into)
				}}
				in := activities.ReconcileInput{Submit: submitInput(), Until: time.Now()}
				in.Submit.Request, in.Submit.RequestObject = nil, "request"
				switch {
				case tc.over:
					in.Until = in.Until.Add(-10 * time.Minute)
				case !tc.just:
					in.Until = in.Until.Add(time.Second)
				}
				job, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, in)
				if tc.job != "" {
					want := activities.Job{
						TaskID: "video_1", Model: "sora-2", Assignment: assignment(), Ticket: providers.Ticket{Job: tc.job},
						AcceptedAt: time.Now().UTC(),
					}
					if tc.archive == found {
						want.AcceptedAt = accepted
					}
					if err != nil || !reflect.DeepEqual(job, want) {
						t.Fatalf("got %+v, %v, want %+v", job, err, want)
					}
					return
				}
				got, retried, delay := fault(t, err)
				if got.Accepted != tc.taken || retried != tc.retried {
					t.Errorf("got %+v, retried %t, want taken %d, retried %t", got, retried, tc.taken, tc.retried)
				}
				if retried && delay != max(2*time.Second, tc.delay) {
					t.Errorf("got delay %s", delay)
				}
			})
		})
	}
}

// TestSubmitAfterDelete: a task that took a deleted one's id is another job to an upstream that remembers keys.
func TestSubmitAfterDelete(t *testing.T) {
	t.Parallel()
	var keys []string
	r := newTestEnv(t, fakeAdapter{submit: func(_ context.Context, _ providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
		keys = append(keys, req.IdempotencyKey)
		return providers.Ticket{Job: "j"}, nil
	}})
	r.keepIn(fakeObjects{putJSON: func(context.Context, string, any) error { return nil }})
	for _, life := range []string{"first", "second", "second"} {
		in := submitInput()
		in.Incarnation = life
		if _, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"video_1-first-2", "video_1-second-2", "video_1-second-2"}; !slices.Equal(keys, want) {
		t.Errorf("keys = %q, want %q", keys, want)
	}
}

// TestSubmitsAreEvidence: failed submits of one token close the channel to the tasks of that token alone. Failed submits of
// several tokens close it to all. A second attempt of a task counts against no channel.
func TestSubmitsAreEvidence(t *testing.T) {
	t.Parallel()
	fails := fakeAdapter{submit: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
		return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "No.", Blame: providers.BlameChannel}
	}}
	r := newTestEnv(t, fails)
	fake := r.upstreams.Catalog["fake"]
	fake.Video = fails
	routes := router.New(providers.Catalog{"fake": fake}, []providers.Channel{{
		Name: "main", Vendor: "fake", Keys: []providers.Secret{hushKey}, Models: map[string]string{"sora-2": "up"}, Groups: []string{"default"},
	}}, nil)
	r.upstreams.Channels = routes
	submits := func(token string, n, attempt int) {
		for i := range n {
			in := submitInput()
			in.TaskID, in.Attempt, in.Assignment.Token = fmt.Sprint("video_", token, i), attempt, token
			if _, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in); err == nil {
				t.Fatal("a submit that fails is accepted")
			}
		}
	}
	admitted := func(token string) bool {
		in := admitInput("1")
		in.Waiter.Token = token
		return admit(t, r, in).Assignment != nil
	}
	submits("poison", 20, 2)
	if !admitted("poison") {
		t.Error("attempts that fell over are held against the channel")
	}
	submits("poison", health.DefaultCooldownFailures, 1)
	if admitted("poison") || !admitted("demo") {
		t.Errorf("admitted: the token whose submits fail %t, another %t", admitted("poison"), admitted("demo"))
	}
	submits("demo", 3, 1)
	submits("third", 1, 1)
	if admitted("fourth") {
		t.Error("a channel where the submits of several tokens fail is open to all")
	}
}
