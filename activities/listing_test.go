package activities_test

import (
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
)

// TestPollRestoresTheEntry: a task that was made while Redis was away is listed, and counts as unfinished, with the first
// look after that; the next one does not ask again. Its settling restores the entry without the record, and nothing restores
// that of a task under removal.
func TestPollRestoresTheEntry(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	connection := storagetest.Redis(t)
	index := taskindex.New(connection, 0)
	r.listing.Index = index
	created := time.Now().UTC()
	in := activities.PollInput{
		Job:      activities.Job{TaskID: "video_x", Assignment: assignment(), AcceptedAt: time.Now(), Ticket: providers.Ticket{ETA: time.Minute}},
		Deadline: time.Now().Add(time.Hour), Entry: activities.Entry{Token: "demo", Created: created},
	}
	listed := func(want, unfinished int) {
		t.Helper()
		page, err := index.Page(t.Context(), "demo", "", 10, false)
		if err != nil || len(page) != want {
			t.Errorf("listed %+v, %v, want %d", page, err, want)
		}
		if _, all, err := index.Unfinished(t.Context(), "demo", 0, 10); err != nil || all != unfinished {
			t.Errorf("%d unfinished, %v, want %d", all, err, unfinished)
		}
	}
	seen := beats[activities.Progress](t, r)
	if _, err := r.env.ExecuteActivity(r.acts.Poller.Poll, in); err == nil {
		t.Fatal("the first try looked")
	}
	if all := seen(); len(all) != 1 || !all[0].Listed {
		t.Fatalf("heartbeats %+v, want listed", all)
	}
	listed(1, 1)
	if err := connection.FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	settle := activities.SettleInput{TaskID: "video_x", Token: "demo", Entry: in.Entry}
	if err := r.acts.Settler.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	listed(1, 0)
	if err := index.MarkRemoval(t.Context(), "demo", "video_x", created); err != nil {
		t.Fatal(err)
	}
	if err := r.acts.Settler.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	if _, err := r.env.ExecuteActivity(r.acts.Poller.Poll, in); err == nil {
		t.Fatal("the first try looked")
	}
	listed(0, 0)
	// The removal of an earlier task with the id is none of this one's.
	settle.Entry.Created = created.Add(time.Second)
	if err := r.acts.Settler.Settle(t.Context(), settle); err != nil {
		t.Fatal(err)
	}
	listed(1, 0)
}

// TestPollWithoutTheList: an unavailable list does not delay a poll, and the next poll restores the entry.
func TestPollWithoutTheList(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{})
	r.listing.Index = taskindex.New(storagetest.Client(t, "redis://127.0.0.1:1"), 0)
	seen := beats[activities.Progress](t, r)
	if _, err := r.env.ExecuteActivity(r.acts.Poller.Poll, activities.PollInput{
		Job:      activities.Job{TaskID: "video_x", Assignment: assignment(), AcceptedAt: time.Now(), Ticket: providers.Ticket{ETA: time.Minute}},
		Deadline: time.Now().Add(time.Hour), Entry: activities.Entry{Token: "demo", Created: time.Now()},
	}); err == nil {
		t.Fatal("the first try looked")
	}
	if all := seen(); len(all) != 1 || all[0].Listed {
		t.Errorf("heartbeats %+v, want one that is not listed", all)
	}
}
