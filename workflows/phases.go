package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
)

// The generous usual durations of the phases. A task that exceeds one is stuck: an operator should check it, but it does not fail.
const (
	// queueUsual counts from the start of the task, for any number of refusals.
	queueUsual  = 10 * time.Minute
	submitUsual = submitLimit + time.Minute
	// pollUsual applies to upstreams without an ETA. For others the duration is pollETAs times the ETA, plus pollSlack.
	pollUsual    = 30 * time.Minute
	pollETAs     = 3
	pollSlack    = 5 * time.Minute
	archiveUsual = 15 * time.Minute
	// endUsual covers the steps after the result: settle, and start the webhook.
	endUsual = 5 * time.Minute
)

// due returns the time by which a task that enters the phase now should have left it.
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

func pollDue(job activities.Job, now time.Time) time.Time {
	if job.Ticket.ETA <= 0 {
		return PhasePolling.due(now, now)
	}
	return now.Add(pollETAs*job.Ticket.ETA + pollSlack)
}

// CallDue returns the time by which a call with this deadline should have ended.
func CallDue(deadline time.Time) temporal.SearchAttributeUpdate { return dueAt(deadline.Add(endUsual)) }

func dueAt(due time.Time) temporal.SearchAttributeUpdate {
	return Keyword(AttrDue).ValueSet(due.UTC().Format(time.RFC3339))
}

// StuckQuery returns the visibility query for the tasks that are stuck at the given time. The Temporal UI accepts it too.
func StuckQuery(now time.Time) string {
	return fmt.Sprintf(OfTasks+" AND ExecutionStatus = 'Running' AND (%s < '%s' OR (%s IS NULL AND StartTime < '%s'))",
		AttrDue, now.UTC().Format(time.RFC3339), AttrDue, now.Add(-queueUsual).UTC().Format(time.RFC3339))
}
