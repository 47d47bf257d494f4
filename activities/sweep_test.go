package activities_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/storagetest"
)

// sweeper is an environment over an archive with the objects.
func sweeper(t *testing.T, keys ...string) (*testEnv, *storagetest.MemoryArchive) {
	t.Helper()
	bucket := storagetest.NewMemoryArchive()
	for _, key := range keys {
		if _, err := bucket.Put(t.Context(), key, bytes.NewReader(nil), 0, archive.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	r := newTestEnv(t, nil)
	r.keepIn(bucket)
	return r, bucket
}

func sweep(t *testing.T, r *testEnv, fn any) (swept activities.Swept, err error) {
	t.Helper()
	value, err := r.env.ExecuteActivity(fn)
	if err != nil {
		return swept, err
	}
	return swept, value.Get(&swept)
}

// TestSweepOutputs: the sweep removes whole days in which everything has expired.
func TestSweepOutputs(t *testing.T) {
	t.Parallel()
	day := func(ago int) string {
		return fmt.Sprintf("outputs/%s/video_x/0.mp4", time.Now().UTC().AddDate(0, 0, -ago).Format(time.DateOnly))
	}
	old := []string{day(1), day(2), day(300)}
	stay := []string{day(0), day(-1), day(-5), "outputs/strange/1", "tasks/video_x/attempts/1", "elsewhere/2020-01-01/x"}
	r, bucket := sweeper(t, append(old, stay...)...)
	swept, err := sweep(t, r, r.acts.Sweeper.SweepOutputs)
	if err != nil || len(swept.Days) != len(old) {
		t.Errorf("swept %+v, %v", swept, err)
	}
	slices.Sort(stay)
	if got := bucket.Keys(); !slices.Equal(got, stay) {
		t.Errorf("left %v\nwant %v", got, stay)
	}
	for _, operation := range []string{"list", "delete"} {
		r, bucket = sweeper(t, old...)
		bucket.Fail = func(asked, _ string) error {
			if asked == operation {
				return storage.ErrUnavailable
			}
			return nil
		}
		_, err = sweep(t, r, r.acts.Sweeper.SweepOutputs)
		if _, retried, _ := fault(t, err); !retried {
			t.Errorf("%s fails: %v, want another try", operation, err)
		}
	}
}

// TestSweepUploads: the sweep aborts uploads that are too old for a running copy. If the store forbids that, the other sweeps continue.
func TestSweepUploads(t *testing.T) {
	t.Parallel()
	r, bucket := sweeper(t)
	r.acts.Sweeper.UploadAge = time.Hour
	old, young := time.Now().Add(-2*time.Hour), time.Now()
	bucket.Uploads = map[string]time.Time{
		"outputs/2030-01-01/video_a/0.mp4": old, "tasks/video_b/inputs/x": old,
		"outputs/2030-01-01/video_c/0.mp4": young, "others": old,
	}
	if _, err := sweep(t, r, r.acts.Sweeper.SweepOutputs); err != nil || len(bucket.Uploads) != 2 || bucket.Uploads["others"].IsZero() {
		t.Errorf("left %v, %v", bucket.Uploads, err)
	}
	bucket.Fail = func(asked, _ string) error {
		if asked == "uploads" {
			return storage.ErrUnavailable
		}
		return nil
	}
	if _, err := sweep(t, r, r.acts.Sweeper.SweepOutputs); err != nil {
		t.Errorf("without the right: %v", err)
	}
}

// TestSweepTasks: the sweep removes objects that are older than any task can be.
func TestSweepTasks(t *testing.T) {
	t.Parallel()
	all := []string{"outputs/2020-01-01/video_a/0.mp4", "tasks/video_a/attempts/1", "tasks/video_a/inputs/x"}
	for life, want := range map[time.Duration][]string{time.Hour: all, time.Nanosecond: all[:1]} {
		r, bucket := sweeper(t, all...)
		r.acts.Sweeper.TaskAge = life
		swept, err := sweep(t, r, r.acts.Sweeper.SweepTasks)
		if err != nil || swept.Objects != len(all)-len(want) || !slices.Equal(bucket.Keys(), want) {
			t.Errorf("life %v: left %v (%+v), %v; want %v", life, bucket.Keys(), swept, err, want)
		}
	}
}

// standing is a Temporal where the task stands so, and is deleted at once.
type standing struct {
	fakeExecutions

	is activities.Execution
}

func (e *standing) End(context.Context, activities.RemoveInput) (activities.Execution, error) {
	return e.is, nil
}

func (e *standing) Delete(context.Context, string, activities.Execution) ([]string, error) {
	return nil, nil
}

// remove runs a removal to its end.
func remove(t *testing.T, r *testEnv, is activities.Execution) {
	t.Helper()
	is.Closed = true
	r.acts.Remover.Executions = &standing{is: is}
	if _, err := r.env.ExecuteActivity(r.acts.Remover.Remove, activities.RemoveInput{TaskID: "video_1"}); err != nil {
		t.Fatal(err)
	}
}

// TestRemoveWithoutExecution: a removal that comes after another has nothing to erase. What is there belongs to a task
// that is about to start under the same id.
func TestRemoveWithoutExecution(t *testing.T) {
	t.Parallel()
	for _, run := range []string{"", "r"} {
		r, bucket := sweeper(t, activities.TaskPrefix("video_1")+"one/inputs/x")
		remove(t, r, activities.Execution{Run: run, Incarnation: "one"})
		if left := len(bucket.Keys()); left == 0 != (run != "") {
			t.Errorf("run %q: %d objects left", run, left)
		}
	}
}

// TestRemoveOneIncarnation: a task's removal takes the task's own objects, and of the other objects of its id those that no create
// will use any more.
func TestRemoveOneIncarnation(t *testing.T) {
	t.Parallel()
	const own, other, old = "mabc1", "mabc1x", "tasks/video_1/mabc0/request.json"
	request := func(incarnation string) string {
		return activities.IncarnationPrefix("video_1", incarnation) + "request.json"
	}
	ticket := activities.SubmitInput{TaskID: "video_1", Incarnation: own, Attempt: 1}.TicketObject()
	stay := []string{request(other), "tasks/video_2/request.json"}
	r, bucket := sweeper(t, slices.Concat(stay, []string{request(own), ticket, old, "outputs/2030-01-01/video_1/0.mp4"})...)
	r.keepIn(aging{bucket, []string{old}})
	is := activities.Execution{Closed: true, Run: "r", Incarnation: own, Outputs: []string{"outputs/2030-01-01/video_1/"}}
	r.acts.Remover.Executions = &standing{is: is}
	if _, err := r.env.ExecuteActivity(r.acts.Remover.Remove, activities.RemoveInput{TaskID: "video_1"}); err == nil ||
		!strings.Contains(err.Error(), "another create") {
		t.Errorf("with the inputs of a create under way: %v", err)
	}
	if got := bucket.Keys(); !slices.Equal(got, stay) {
		t.Errorf("left %v, want %v", got, stay)
	}
	r.keepIn(aging{bucket, stay[:1]})
	remove(t, r, is)
	if got := bucket.Keys(); !slices.Equal(got, stay[1:]) {
		t.Errorf("left %v in the end, want %v", got, stay[1:])
	}
}

// aging is an archive some of whose objects are an hour old.
type aging struct {
	*storagetest.MemoryArchive

	old []string
}

func (a aging) List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error] {
	return func(yield func(archive.Object, error) bool) {
		for object, err := range a.MemoryArchive.List(ctx, prefix) {
			if slices.Contains(a.old, object.Key) {
				object.Modified = object.Modified.Add(-time.Hour)
			}
			if !yield(object, err) {
				return
			}
		}
	}
}
