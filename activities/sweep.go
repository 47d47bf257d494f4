package activities

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/storage/audit"
)

const (
	outputsFolder = "outputs/"
	tasksFolder   = "tasks/"
	// dayLength is the time from the beginning of a day until everything in its folder has expired.
	dayLength = 24 * time.Hour
)

// Sweeper removes expired objects and answers at vendors, and finds the tasks that closed without settlement.
type Sweeper struct {
	*Upstreams

	Objects    Objects
	Executions Executions
	// Audit is written to the archive day by day; nil: there is none.
	Audit *audit.Log
	// TaskAge is the age from which no task needs its objects other than outputs.
	TaskAge time.Duration
	// UploadAge is the age from which no copy is in progress: parts of incomplete uploads are removed.
	UploadAge time.Duration
	// AuditRetention is how long the archive stores a finished day of the audit log; 0: permanently.
	AuditRetention time.Duration
	// CallsRetention is how long the archive stores a finished day of the call log; 0: permanently.
	CallsRetention time.Duration
	Log            *slog.Logger
}

// Swept is the result of a sweep.
type Swept struct {
	// Days are the removed folders of expired outputs. Objects is the number of other removed objects of tasks.
	Days    []string `json:"days,omitempty"`
	Objects int      `json:"objects,omitempty"`
}

// SweepOutputs removes expired outputs and the vendors' copies of them, and updates the archived audit and call logs. It is idempotent.
func (a *Sweeper) SweepOutputs(ctx context.Context) (Swept, error) {
	defer heartbeats(ctx, heartbeatEvery, func() { activity.RecordHeartbeat(ctx) })()
	days, err := a.removeDays(ctx, outputsFolder, 0)
	if err == nil {
		a.sweepUploads(ctx)
		err = errors.Join(a.sweepAudit(ctx), a.sweepCalls(ctx), a.sweepTickets(ctx))
	}
	if err != nil {
		return Swept{}, again(record(err), 0)
	}
	return Swept{Days: days}, nil
}

// removeDays removes the folders of the days that ended longer ago than the age, and returns their names.
func (a *Sweeper) removeDays(ctx context.Context, folder string, age time.Duration) (days []string, err error) {
	for day, err := range a.Objects.Folders(ctx, folder) {
		if err != nil {
			return nil, err
		}
		if !expiredFor(day, age) {
			continue
		}
		if err := a.Objects.DeletePrefix(ctx, day); err != nil {
			return nil, err
		}
		days = append(days, path.Base(day))
		a.Log.InfoContext(ctx, "expired objects removed", "folder", folder, "day", path.Base(day))
	}
	return days, nil
}

// expiredFor reports whether the name of a folder or file is a day that ended longer ago than the age.
func expiredFor(key string, age time.Duration) bool {
	day, err := time.Parse(expiryDay, strings.TrimSuffix(path.Base(key), auditEnding))
	return err == nil && time.Since(day) >= age+dayLength
}

// sweepUploads aborts the uploads of killed workers. If a bucket's policy forbids that, the other sweeps continue.
func (a *Sweeper) sweepUploads(ctx context.Context) {
	for _, folder := range [...]string{outputsFolder, tasksFolder} {
		aborted, err := a.Objects.AbortUploads(ctx, folder, time.Now().Add(-a.UploadAge))
		if aborted > 0 {
			a.Log.InfoContext(ctx, "unfinished uploads removed", "folder", folder, "uploads", aborted)
		}
		if err != nil {
			a.Log.WarnContext(ctx, "unfinished uploads not removed", "folder", folder, "error", err)
		}
	}
}

// SweepTasks removes inputs, requests and tickets that are older than any task. It is idempotent.
func (a *Sweeper) SweepTasks(ctx context.Context) (Swept, error) {
	defer heartbeats(ctx, heartbeatEvery, func() { activity.RecordHeartbeat(ctx) })()
	var swept Swept
	for object, err := range a.Objects.List(ctx, tasksFolder) {
		if err == nil && time.Since(object.Modified) >= a.TaskAge {
			err = a.Objects.Delete(ctx, object.Key)
			swept.Objects++
		}
		if err != nil {
			return swept, again(record(err), 0)
		}
	}
	if swept.Objects > 0 {
		a.Log.InfoContext(ctx, "objects of old tasks removed", "objects", swept.Objects)
	}
	return swept, nil
}

const (
	// endedPages bounds one search for tasks that closed without settlement; the next one continues where it stopped.
	endedPages = 20
	// endedLag is the overlap of two searches: visibility lists the end of a task with a delay.
	endedLag = 5 * time.Minute
)

// EndedMark is the progress of the searches for tasks that closed without settlement.
type EndedMark struct {
	// Since is the earliest end of the search; zero: all tasks in Temporal.
	Since time.Time `json:"since,omitzero"`
	// Cursor is the cursor of the next search, empty for a new one. Began is the start of the first search of the cursor.
	Cursor []byte    `json:"cursor,omitempty"`
	Began  time.Time `json:"began,omitzero"`
}

// SweepEnded searches for tasks that closed without settlement, from the mark on, and starts the settlement of each. It is idempotent.
func (a *Sweeper) SweepEnded(ctx context.Context, mark EndedMark) (EndedMark, error) {
	if len(mark.Cursor) == 0 {
		mark.Began = time.Now().UTC()
	}
	for range endedPages {
		next, err := a.Executions.Finish(ctx, mark.Since, mark.Cursor)
		if err != nil {
			return mark, again(record(err), 0)
		}
		activity.RecordHeartbeat(ctx)
		if mark.Cursor = next; len(next) == 0 {
			mark.Since = mark.Began.Add(-endedLag)
			break
		}
	}
	return mark, nil
}
