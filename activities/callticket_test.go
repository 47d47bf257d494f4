package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/storagetest"
)

// keeper is a vendor that stores answers: it answers each request for one with the next status, and with the last one from then on.
type keeper struct {
	providers.Relayer // nil: nothing else is called

	mu       sync.Mutex
	statuses []int
	asked    []string
}

func (k *keeper) Stored(_ context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, strings.Join([]string{string(request.Do), request.ID, to.Channel.Name, to.Key.Fingerprint()}, " "))
	status := k.statuses[0]
	if len(k.statuses) > 1 {
		k.statuses = k.statuses[1:]
	}
	if status/100 == 2 {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	fault := &providers.Fault{Kind: providers.Invalid, Accepted: providers.NotAccepted, Upstream: &providers.Reply{Status: status}}
	if status >= http.StatusInternalServerError {
		fault.Kind = providers.Upstream
	}
	return nil, fault
}

// forgets is the request that deletes an answer of the tests.
func forgets() string { return "delete resp_up main " + hushKey.Fingerprint() }

func ticket() *activities.CallTicket {
	return &activities.CallTicket{ID: "resp_up", Channel: "main", Key: hushKey.Fingerprint(), Object: "tickets/2030-01-01/resp_1/life"}
}

// ended is a Temporal whose task has ended with an answer that its vendor stores.
type ended struct{ fakeExecutions }

func (e *ended) End(context.Context, activities.RemoveInput) (activities.Execution, error) {
	return activities.Execution{Closed: true, Run: "run", Incarnation: "life", Copy: ticket()}, nil
}

// TestRemoveForgets: a removal deletes what the vendor stores after the task's own objects, and tries for a day.
func TestRemoveForgets(t *testing.T) {
	t.Parallel()
	gone := fakeChannels{resolve: func(string, string, string) (providers.Target, error) {
		return providers.Target{}, router.ErrChannelGone
	}}
	for name, test := range map[string]struct {
		statuses []int
		channels activities.Channels
		asked    int
	}{
		"deleted":                  {statuses: []int{200}, asked: 1},
		"the vendor forgot it":     {statuses: []int{404}, asked: 1},
		"the vendor fails":         {statuses: []int{503, 500, 200}, asked: 3},
		"the vendor refuses":       {statuses: []int{400}, asked: 1},
		"the channel is gone":      {statuses: []int{200}, channels: gone},
		"the executions stay long": {statuses: []int{200}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := new(ended)
			if name == "the executions stay long" {
				engine.left = 3
			}
			vendor := &keeper{statuses: test.statuses}
			archive := storagetest.NewMemoryArchive()
			mustPut(t, archive, activities.IncarnationPrefix("resp_1", "life")+"inputs/body")
			mustPut(t, archive, ticket().Object)
			var last json.RawMessage
			for try := 1; ; try++ {
				r := newTestEnv(t, nil)
				r.upstreams.Catalog = providers.Catalog{"fake": {Name: "fake", Relay: vendor}}
				if test.channels != nil {
					r.upstreams.Channels = test.channels
				}
				r.acts.Remover.Executions, r.acts.Remover.Objects = engine, archive
				if last != nil {
					r.env.SetHeartbeatDetails(last)
				}
				seen := beats[json.RawMessage](t, r)
				_, err := r.env.ExecuteActivity(r.acts.Remover.Remove, activities.RemoveInput{TaskID: "resp_1"})
				if all := seen(); len(all) > 0 {
					last = all[len(all)-1]
				}
				if keys := archive.Keys(); slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "tasks/") }) {
					t.Errorf("try %d: left %q", try, keys)
				}
				if err == nil {
					break
				}
				if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || app.NonRetryable() || app.NextRetryDelay() <= 0 || try > 10 {
					t.Fatalf("try %d: %v", try, err)
				}
			}
			if len(vendor.asked) != test.asked || test.asked > 0 && vendor.asked[0] != forgets() {
				t.Errorf("asked %q, want %d times %q", vendor.asked, test.asked, forgets())
			}
			if keys := archive.Keys(); len(keys) > 0 {
				t.Errorf("left %q", keys)
			}
		})
	}
}

// TestSweepTickets: what vendors store of expired answers is deleted there. A failure is tried again by the sweeps of a day.
func TestSweepTickets(t *testing.T) {
	t.Parallel()
	day := func(ago int) string {
		return "tickets/" + time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly) + "/resp_1/life"
	}
	for name, test := range map[string]struct {
		ago, status int
		asked, left bool
	}{
		"not expired": {ago: 0, status: 200, left: true}, "expired": {ago: 1, status: 200, asked: true},
		"forgotten":        {ago: 1, status: 404, asked: true},
		"the vendor fails": {ago: 1, status: 500, asked: true, left: true}, "and fails for a day": {ago: 3, status: 500, asked: true},
		"the vendor refuses": {ago: 1, status: 400, asked: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendor := &keeper{statuses: []int{test.status}}
			r, bucket := sweeper(t)
			r.upstreams.Catalog = providers.Catalog{"fake": {Name: "fake", Relay: vendor}}
			if err := bucket.PutJSON(t.Context(), day(test.ago), ticket()); err != nil {
				t.Fatal(err)
			}
			if _, err := sweep(t, r, r.acts.Sweeper.SweepOutputs); err != nil {
				t.Fatal(err)
			}
			if asked := slices.Equal(vendor.asked, []string{forgets()}); asked != test.asked || len(vendor.asked) > 1 {
				t.Errorf("asked %q", vendor.asked)
			}
			if left := len(bucket.Keys()) == 1; left != test.left {
				t.Errorf("left %q", bucket.Keys())
			}
		})
	}
}

// TestRelayKeepsTicket: the ticket of an answer that its vendor stores is in the archive under the day of expiry, and in the answer.
func TestRelayKeepsTicket(t *testing.T) {
	t.Parallel()
	c := newCalls(t, new(fakeCaller).answers(http.StatusOK, "{}"))
	serve := c.caller.serve
	c.caller.serve = func(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
		serve(w, r, run)
		run.Copy = activities.TicketOf(providers.KeyRef{Channel: "main", Fingerprint: "f"}, "resp_up")
	}
	c.in.Expires = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	got, err := c.try(t)
	want := activities.CallTicket{ID: "resp_up", Channel: "main", Key: "f", Object: "tickets/2030-01-02/call_1/one"}
	var stored activities.CallTicket
	if err != nil || got.Copy == nil || *got.Copy != want || c.archive.GetJSON(t.Context(), want.Object, &stored) != nil || stored != want {
		t.Errorf("got %+v, %v; stored %+v", got.Copy, err, stored)
	}
}
