package workflows_test

import (
	"maps"
	"os"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// TestActionsOfACall counts what Temporal Cloud bills of recorded histories, without heartbeats. operate/temporal-cloud.md of the manual
// has the numbers.
func TestActionsOfACall(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[string]int{
		"call-completed":     {"workflows": 1, "activity tries": 1, "upserts": 1, "memos": 1, "local activities": 1},
		"call-killed-repeat": {"workflows": 1, "activity tries": 2, "upserts": 1, "memos": 1, "local activities": 1},
		"notify":             {"workflows": 1, "activity tries": 2, "upserts": 1}, // its first delivery failed
	} {
		raw, err := os.Open("testdata/histories/1/" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := client.HistoryFromJSON(raw, client.HistoryJSONOptions{})
		_ = raw.Close() // it was only read
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]int)
		for _, event := range recorded.GetEvents() {
			switch event.GetEventType() {
			case enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
				got["workflows"]++
			case enums.EVENT_TYPE_ACTIVITY_TASK_STARTED:
				got["activity tries"] += int(event.GetActivityTaskStartedEventAttributes().GetAttempt())
			case enums.EVENT_TYPE_TIMER_STARTED:
				got["timers"]++
			case enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
				got["signals"]++
			case enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
				got["upserts"]++
			case enums.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
				got["memos"]++
			case enums.EVENT_TYPE_MARKER_RECORDED:
				got["local activities"]++
			case enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
				got["child workflows"]++
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
}
