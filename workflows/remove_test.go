package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"

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
			in := activities.RemoveInput{TaskID: "video_x", Token: "demo", Run: test.run, Revision: workflows.Revision}
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
