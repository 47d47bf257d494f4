package activities_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"modelrelay/activities"
)

// fakeEndings finds what ended.
type fakeEndings struct {
	activities.Executions // nil: what is not below panics

	finish func(since time.Time, cursor []byte) ([]byte, error)
}

func (e fakeEndings) Finish(_ context.Context, since time.Time, cursor []byte) ([]byte, error) {
	return e.finish(since, cursor)
}

// TestSweepEnded: a search reads a bounded number of pages, and the next one continues there. A new search starts shortly before the start
// of the last complete one.
func TestSweepEnded(t *testing.T) {
	t.Parallel()
	const pages = 45
	var seen []int
	r := newTestEnv(t, fakeAdapter{})
	r.acts.Sweeper.Executions = fakeEndings{finish: func(since time.Time, cursor []byte) ([]byte, error) {
		if !since.IsZero() {
			t.Errorf("looks for ends since %v in the first round", since)
		}
		page := 0
		if len(cursor) > 0 {
			page = int(cursor[0])
		}
		if seen = append(seen, page); page+1 == pages {
			return nil, nil
		}
		return []byte{byte(page + 1)}, nil
	}}
	began := time.Now()
	var (
		mark  activities.EndedMark
		looks int
		err   error
	)
	for looks = 1; ; looks++ {
		if mark, err = do[activities.EndedMark](t, r, r.acts.Sweeper.SweepEnded, mark); err != nil {
			t.Fatal(err)
		}
		if len(mark.Cursor) == 0 {
			break
		}
	}
	if looks != 3 || len(seen) != pages || !slices.IsSorted(seen) {
		t.Errorf("%d looks saw %v, want %d pages in 3", looks, seen, pages)
	}
	if late := began.Sub(mark.Since); mark.Since.IsZero() || late < time.Minute || late > 10*time.Minute {
		t.Errorf("the next round looks from %v before this one on", late)
	}
	r.acts.Sweeper.Executions = fakeEndings{finish: func(time.Time, []byte) ([]byte, error) { return nil, errors.New("away") }}
	if _, err := r.env.ExecuteActivity(r.acts.Sweeper.SweepEnded, mark); err == nil {
		t.Error("a look that failed counts")
	}
}
