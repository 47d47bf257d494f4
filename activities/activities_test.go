package activities_test

import (
	"reflect"
	"slices"
	"testing"

	"modelrelay/activities"
)

// registry notes the names under which a worker gets activities: those of the exported methods.
type registry []string

func (r *registry) RegisterActivity(subject any) {
	for method := range reflect.TypeOf(subject).Methods() {
		*r = append(*r, method.Name)
	}
}

// TestNames: histories contain the names of activities. A running task with an activity that is missing here, or renamed, cannot continue.
// An additional name is a step that became an activity by its capital letter.
func TestNames(t *testing.T) {
	t.Parallel()
	var got registry
	new(activities.Activities).Register(&got)
	slices.Sort(got)
	want := registry{
		"Admit", "Archive", "Await", "AwaitArchive", "Cancel", "Conclude", "Deliver", "Discard", "Poll", "Reconcile",
		"Relay", "Remove", "Settle", "Submit", "SweepEnded", "SweepOutputs", "SweepTasks",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
