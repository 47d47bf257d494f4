package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/workflows"
)

// TestRemoveAtOnce: the removal of an ended task is one local activity, and a lasting one where that did not succeed; what
// runs is waited for by the lasting one alone.
func TestRemoveAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		run    string
		fails  int
		locals []bool
	}{
		"ended":       {run: "r", locals: []bool{true}},
		"away before": {run: "r", fails: 1, locals: []bool{true, false}},
		"running":     {fails: 2, locals: []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			in := activities.RemoveInput{TaskID: "video_x", Token: "demo", Run: test.run, Revision: 1}
			var locals []bool
			s.OnActivity("Remove", mock.Anything, in).Return(func(ctx context.Context, _ activities.RemoveInput) error {
				locals = append(locals, activity.GetInfo(ctx).IsLocalActivity)
				if len(locals) <= test.fails {
					return errors.New("away")
				}
				return nil
			})
			s.ExecuteWorkflow(workflows.Remove, in)
			if err := s.GetWorkflowError(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(locals, test.locals) {
				t.Errorf("local activities: %v, want %v", locals, test.locals)
			}
		})
	}
}

// TestRemoveInOrder: in removals from before there was one step for all, objects go before the execution.
func TestRemoveInOrder(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	in := activities.RemoveInput{TaskID: "video_x", Token: "demo"}
	standing := activities.Standing{Run: "r", Started: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Outputs: []string{"outputs/x/"}}
	var steps []string
	tries := 0
	s.OnActivity("CallOff", mock.Anything, in).Return(func(context.Context, activities.RemoveInput) (activities.Standing, error) {
		if tries++; tries < 3 {
			return activities.Standing{}, temporal.NewApplicationError("still running", "Pending")
		}
		steps = append(steps, "end")
		return standing, nil
	})
	s.OnActivity("Erase", mock.Anything, activities.Ended{RemoveInput: in, Standing: standing}).Return(func(context.Context, activities.Ended) error {
		steps = append(steps, "erase")
		return nil
	})
	s.OnActivity("Forget", mock.Anything, activities.Ended{RemoveInput: in, Standing: standing}).Return(func(context.Context, activities.Ended) error {
		steps = append(steps, "forget")
		return nil
	})
	s.ExecuteWorkflow(workflows.Remove, in)
	if err := s.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 || steps[0] != "end" || steps[1] != "erase" || steps[2] != "forget" {
		t.Errorf("steps %v", steps)
	}
}
