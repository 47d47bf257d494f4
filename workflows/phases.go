package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
)

// How long a task usually is in a phase, generously. What is there longer is stuck: no failure, but worth a look.
const (
	// queueUsual counts from the task's start, however many channels refused it.
	queueUsual  = 10 * time.Minute
	submitUsual = submitLimit + time.Minute
	// pollUsual is for upstreams that give no ETA; for others it is pollETAs times that, and pollSlack.
	pollUsual    = 30 * time.Minute
	pollETAs     = 3
	pollSlack    = 5 * time.Minute
	archiveUsual = 15 * time.Minute
	// endUsual is for what follows the result: settling, and starting its webhook.
	endUsual = 5 * time.Minute
)

// due is when a task that enters the phase now should have left it.
func (p Phase) due(started, now time.Time) time.Time {
	switch p {
	case PhaseQueued:
		return started.Add(queueUsual)
	case PhaseSubmitting:
		return now.Add(submitUsual)
	case PhasePolling:
		return now.Add(pollUsual)
	case PhaseArchiving:
		return now.Add(archiveUsual)
	default:
		return now.Add(endUsual)
	}
}

// pollDue is when a job should have ended.
func pollDue(job activities.Job, now time.Time) time.Time {
	if job.Ticket.ETA <= 0 {
		return PhasePolling.due(now, now)
	}
	return now.Add(pollETAs*job.Ticket.ETA + pollSlack)
}

func dueAt(due time.Time) temporal.SearchAttributeUpdate {
	return Keyword(AttrDue).ValueSet(due.UTC().Format(time.RFC3339))
}

// StuckQuery is the visibility query of the tasks that are stuck at the time. It may be pasted into the Temporal UI.
func StuckQuery(now time.Time) string {
	return fmt.Sprintf("WorkflowType = 'Video' AND ExecutionStatus = 'Running' AND (%s < '%s' OR (%s IS NULL AND StartTime < '%s'))",
		AttrDue, now.UTC().Format(time.RFC3339), AttrDue, now.Add(-queueUsual).UTC().Format(time.RFC3339))
}
