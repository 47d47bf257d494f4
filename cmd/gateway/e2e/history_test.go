package e2e_test

import (
	"testing"

	"modelrelay/cmd/gateway/e2e/stack"
)

// eventLimit is DESIGN's bound for admit, submit, poll and archive, however often the job is polled.
const eventLimit = 30

// TestHistoryStaysShort counts the events of a task that is polled as often as one of ten minutes would be.
func TestHistoryStaysShort(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{Video: "poll_min: 100ms, poll_max: 200ms"})
	video := g.Create(t.Context(), "sora-2-manual", "ten minutes")
	const polls = 25 // what the default poll_min and poll_max make of ten minutes
	s.Control.Await("video.get", "sora-2-manual", "", polls)
	s.Control.Drive(s.Control.Job("ten minutes").ID, "completed", 100)
	g.AwaitCompleted(video.ID, stack.TaskTimeout)
	n := len(stack.History(t.Context(), t, s.TemporalClient(), video.ID).GetEvents())
	t.Logf("%d events after %d polls", n, polls)
	if n > eventLimit {
		t.Errorf("%d history events, want at most %d", n, eventLimit)
	}
}
