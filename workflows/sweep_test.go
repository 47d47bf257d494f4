package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"

	"modelrelay/activities"
	"modelrelay/workflows"
)

// TestSweep: expired outputs go every hour, the long walk through tasks' objects once a day.
func TestSweep(t *testing.T) {
	t.Parallel()
	walks := 0
	for hour := range 24 {
		s := newTestEnv(t)
		s.SetStartTime(time.Date(2026, 11, 21, hour, 10, 0, 0, time.UTC))
		s.OnActivity("SweepOutputs", mock.Anything).Return(activities.Swept{Days: []string{"2026-11-19"}}, nil).Once()
		s.OnActivity("SweepTasks", mock.Anything).Return(activities.Swept{Objects: 7}, nil).Maybe()
		s.ExecuteWorkflow(workflows.Sweep)
		var got activities.Swept
		if err := s.GetWorkflowResult(&got); err != nil {
			t.Fatal(err)
		}
		if len(got.Days) != 1 {
			t.Errorf("at %d: swept %+v", hour, got)
		}
		if got.Objects == 7 {
			walks++
		}
	}
	if walks != 1 {
		t.Errorf("%d walks through tasks' objects a day, want 1", walks)
	}
}
