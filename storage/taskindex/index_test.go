package taskindex_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
)

// names are the ids of a page.
func names(entries []taskindex.Entry) []string {
	var list []string
	for _, entry := range entries {
		list = append(list, entry.TaskID)
	}
	return list
}

func TestTaskIndexPages(t *testing.T) {
	t.Parallel()
	index := taskindex.New(storagetest.Redis(t), 0)
	start := time.Now().Truncate(time.Millisecond)
	for i := range 5 {
		if _, err := index.Add(t.Context(), "anna", fmt.Sprint("t", i), start.Add(time.Duration(i)*time.Second), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := index.Add(t.Context(), "berta", "other", start, 0); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		after     string
		limit     int
		ascending bool
		want      []string
	}{
		{"", 2, false, []string{"t4", "t3"}},
		{"t3", 2, false, []string{"t2", "t1"}},
		{"t1", 2, false, []string{"t0"}},
		{"t0", 2, false, nil},
		{"", 2, true, []string{"t0", "t1"}},
		{"t1", 10, true, []string{"t2", "t3", "t4"}},
		{"", 0, false, nil},
	} {
		got, err := index.Page(t.Context(), "anna", test.after, test.limit, test.ascending)
		if err != nil || !slices.Equal(names(got), test.want) {
			t.Errorf("after %q, %d, ascending %v: got %v, %v, want %v", test.after, test.limit, test.ascending, names(got), err, test.want)
		}
	}
	page, err := index.Page(t.Context(), "anna", "", 1, true)
	if err != nil || len(page) != 1 || !page[0].At.Equal(start) {
		t.Errorf("oldest = %+v, %v, want created at %v", page, err, start)
	}
	for _, stranger := range []string{"unknown", "other"} {
		if _, err := index.Page(t.Context(), "anna", stranger, 2, false); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after %q: got %v, want ErrNotFound", stranger, err)
		}
	}
	if got, err := index.Page(t.Context(), "unknown", "", 2, false); err != nil || len(got) != 0 {
		t.Errorf("a token without tasks: %v, %v", got, err)
	}
}

// TestTaskIndexLimit: of creates at the same moment exactly as many pass as may, and a repeat is never refused.
func TestTaskIndexLimit(t *testing.T) {
	t.Parallel()
	index := taskindex.New(storagetest.Redis(t), 0)
	const most = 3
	var group sync.WaitGroup
	var passed atomic.Int32
	for i := range 40 {
		group.Go(func() {
			switch _, err := index.Add(t.Context(), "anna", fmt.Sprint("t", i), time.Now(), most); {
			case err == nil:
				passed.Add(1)
			case !errors.Is(err, taskindex.ErrTooMany):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if passed.Load() != most {
		t.Fatalf("%d passed, want %d", passed.Load(), most)
	}
	open, _, err := index.Unfinished(t.Context(), "anna", 0, 10)
	if err != nil || len(open) != most {
		t.Fatalf("unfinished = %v, %v", open, err)
	}
	first := open[0].TaskID
	if added, err := index.Add(t.Context(), "anna", first, time.Now(), most); err != nil || added {
		t.Errorf("a repeat at the limit: added %v, %v", added, err)
	}
	if err := index.Restore(t.Context(), "anna", first, open[0].At, false); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Add(t.Context(), "anna", first, time.Now(), most); err != nil {
		t.Errorf("a repeat of a finished one: %v", err)
	}
	if _, err := index.Add(t.Context(), "anna", "next", time.Now(), most); err != nil {
		t.Errorf("after an end, which the repeat must not take back: %v", err)
	}
	if _, err := index.Add(t.Context(), "anna", "more", time.Now(), most); !errors.Is(err, taskindex.ErrTooMany) {
		t.Errorf("beyond the limit: %v, want ErrTooMany", err)
	}
	if err := index.Remove(t.Context(), "anna", "next", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := index.Add(t.Context(), "anna", "more", time.Now(), most); err != nil {
		t.Errorf("after a removal: %v", err)
	}
	listed, err := index.Page(t.Context(), "anna", "", 10, false)
	if err != nil || slices.Contains(names(listed), "next") || !slices.Contains(names(listed), first) {
		t.Errorf("listed %v, %v, want the finished one and not the removed", names(listed), err)
	}
}

func TestTaskIndexRestores(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	index := taskindex.New(client, 0)
	created := time.Now().Add(-time.Hour).Truncate(time.Millisecond).UTC()
	restore := func() {
		for i, unfinished := range []bool{false, true} {
			if err := index.Restore(t.Context(), "anna", fmt.Sprint("t", i), created.Add(time.Duration(i)*time.Second), unfinished); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := index.Add(t.Context(), "anna", "t0", created, 0); err != nil {
		t.Fatal(err)
	}
	for _, lost := range []bool{false, true} {
		if lost {
			storagetest.Empty(t, client)
		}
		restore()
		listed, err := index.Page(t.Context(), "anna", "", 10, true)
		if err != nil || !slices.Equal(names(listed), []string{"t0", "t1"}) || !listed[0].At.Equal(created) {
			t.Errorf("lost %v: listed %v, %v", lost, listed, err)
		}
		open, _, err := index.Unfinished(t.Context(), "anna", 0, 10)
		if err != nil || !slices.Equal(names(open), []string{"t1"}) {
			t.Errorf("lost %v: unfinished %v, %v", lost, names(open), err)
		}
	}
}

func TestTaskIndexForgetsOld(t *testing.T) {
	t.Parallel()
	index := taskindex.New(storagetest.Redis(t), time.Hour)
	for id, age := range map[string]time.Duration{"old": 2 * time.Hour, "young": time.Minute} {
		if _, err := index.Add(t.Context(), "anna", id, time.Now().Add(-age), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := index.Add(t.Context(), "anna", "new", time.Now(), 0); err != nil {
		t.Fatal(err)
	}
	if got, err := index.Page(t.Context(), "anna", "", 10, false); err != nil || !slices.Equal(names(got), []string{"new", "young"}) {
		t.Errorf("got %v, %v", names(got), err)
	}
}

// TestTaskIndexBuries: the mark of a removal hides one task, and not a later task with the same id.
func TestTaskIndexBuries(t *testing.T) {
	t.Parallel()
	var (
		first  = time.Now()
		second = first.Add(1500 * time.Microsecond)
		always time.Time
	)
	for name, tc := range map[string]struct {
		there, buried time.Time // the task that is there, and the one that is deleted
		first, second bool      // under removal afterwards
		listed        int
	}{
		"the task": {there: first, buried: first, first: true},
		"another":  {there: second, buried: first, first: true, listed: 1},
	} {
		index := taskindex.New(storagetest.Redis(t), 0)
		buried := func(want bool, created time.Time) {
			t.Helper()
			if got, err := index.UnderRemoval(t.Context(), "t1", created); err != nil || got != want {
				t.Errorf("%s: buried = %v, %v, want %v", name, got, err, want)
			}
		}
		if _, err := index.Add(t.Context(), "anna", "t1", tc.there, 1); err != nil {
			t.Fatal(err)
		}
		buried(false, always)
		if err := index.MarkRemoval(t.Context(), "anna", "t1", tc.buried); err != nil {
			t.Fatal(err)
		}
		buried(tc.first, first)
		buried(tc.second, second)
		buried(true, always)
		if got, err := index.Page(t.Context(), "anna", "", 10, false); err != nil || len(got) != tc.listed {
			t.Errorf("%s: listed: %v, %v", name, got, err)
		}
		if got, _, err := index.Unfinished(t.Context(), "anna", 0, 10); err != nil || len(got) != tc.listed {
			t.Errorf("%s: unfinished: %v, %v", name, got, err)
		}
		if err := index.Remove(t.Context(), "anna", "t1", first); err != nil {
			t.Fatal(err)
		}
		if got, err := index.Page(t.Context(), "anna", "", 10, false); err != nil || len(got) != tc.listed {
			t.Errorf("%s: listed after its removal: %v, %v", name, got, err)
		}
		if err := index.EndRemoval(t.Context(), "t1", second); err != nil {
			t.Fatal(err)
		}
		buried(!tc.buried.IsZero(), always) // lifted for another
		if err := index.EndRemoval(t.Context(), "t1", first); err != nil {
			t.Fatal(err)
		}
		buried(false, always)
	}
}

func TestTaskIndexAway(t *testing.T) {
	t.Parallel()
	index := taskindex.New(storagetest.Client(t, "redis://127.0.0.1:1"), 0)
	_, add := index.Add(t.Context(), "anna", "t1", time.Now(), 1)
	_, page := index.Page(t.Context(), "anna", "", 1, false)
	_, _, open := index.Unfinished(t.Context(), "anna", 0, 1)
	_, buried := index.UnderRemoval(t.Context(), "t1", time.Now())
	for name, err := range map[string]error{
		"add":    add,
		"remove": index.Remove(t.Context(), "anna", "t1", time.Now()), "bury": index.MarkRemoval(t.Context(), "anna", "t1", time.Now()),
		"restore": index.Restore(t.Context(), "anna", "t1", time.Now(), true), "lift": index.EndRemoval(t.Context(), "t1", time.Now()),
		"page": page, "unfinished": open, "buried": buried,
	} {
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrUnavailable", name, err)
		}
	}
}
