package activities

import (
	"context"
	"errors"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/storage/archive"
)

const (
	outputsFolder = "outputs/"
	tasksFolder   = "tasks/"
	// dayLength is how long after its beginning everything in a day's folder has expired.
	dayLength = 24 * time.Hour
)

// Sweeper removes what has expired, and finds the tasks that ended without their finish.
type Sweeper struct {
	Objects    Objects
	Executions Executions
	// Audit is put into the archive day by day; nil: there is none.
	Audit AuditLog
	// TaskAge is the age from which no task needs an object beside its outputs; 0: they stay.
	TaskAge time.Duration
	// UploadAge is the age from which no copy is under way any more: its parts are removed.
	UploadAge time.Duration
	// AuditRetention is how long the archive keeps a day of the audit log after its end; 0: for ever.
	AuditRetention time.Duration
	// CallsRetention is how long the archive keeps a day of the history of calls after its end; 0: nothing is removed.
	CallsRetention time.Duration
	Log            *slog.Logger
}

// Swept says what a sweep removed.
type Swept struct {
	// Days are the folders of expired outputs, Objects what tasks kept beside them.
	Days    []string `json:"days,omitempty"`
	Objects int      `json:"objects,omitempty"`
}

// SweepOutputs removes the outputs whose day of expiry is over, and looks after the days of the audit log and of the
// history of calls. Running it again finds the rest.
func (a *Sweeper) SweepOutputs(ctx context.Context) (Swept, error) {
	defer heartbeats(func() { activity.RecordHeartbeat(ctx) })()
	var swept Swept
	for folder, err := range a.Objects.Folders(ctx, outputsFolder) {
		if err != nil {
			return swept, again(record(err), 0)
		}
		day, err := time.Parse(expiryDay, path.Base(folder))
		if err != nil || time.Since(day) < dayLength {
			continue // not ours, or not yet
		}
		if err := a.Objects.DeletePrefix(ctx, folder); err != nil {
			return swept, again(record(err), 0)
		}
		swept.Days = append(swept.Days, path.Base(folder))
		a.Log.InfoContext(ctx, "expired outputs removed", "day", path.Base(folder))
	}
	a.sweepUploads(ctx)
	if err := errors.Join(a.sweepAudit(ctx, time.Now()), a.sweepCalls(ctx, time.Now())); err != nil {
		return swept, again(record(err), 0)
	}
	return swept, nil
}

// sweepUploads ends the uploads of workers that were killed. Where a bucket's policy does not let it, the other sweeps go on.
func (a *Sweeper) sweepUploads(ctx context.Context) {
	if a.UploadAge <= 0 {
		return
	}
	for _, folder := range [...]string{outputsFolder, tasksFolder} {
		aborted, err := a.Objects.AbortUploads(ctx, folder, time.Now().Add(-a.UploadAge))
		if aborted > 0 {
			a.Log.InfoContext(ctx, "unfinished uploads removed", "folder", folder, "uploads", aborted)
		}
		if err != nil {
			a.Log.WarnContext(ctx, "unfinished uploads stay", "folder", folder, "error", err)
		}
	}
}

// SweepTasks removes inputs, requests and tickets that are older than any task, and those of creates that lost the id to another create.
// Running it again finds the rest.
func (a *Sweeper) SweepTasks(ctx context.Context) (Swept, error) {
	defer heartbeats(func() { activity.RecordHeartbeat(ctx) })()
	var swept Swept
	if a.TaskAge <= 0 {
		return swept, nil
	}
	var one staged
	for object, err := range a.Objects.List(ctx, tasksFolder) {
		if err != nil {
			return swept, again(record(err), 0)
		}
		if time.Since(object.Modified) >= a.TaskAge {
			if err := a.Objects.Delete(ctx, object.Key); err != nil {
				return swept, again(record(err), 0)
			}
			swept.Objects++
			continue
		}
		if id, _, _ := strings.Cut(strings.TrimPrefix(object.Key, tasksFolder), "/"); id != one.id {
			if err := a.sweepLosers(ctx, one, &swept); err != nil {
				return swept, err
			}
			one = staged{id: id}
		}
		one.add(object)
	}
	if err := a.sweepLosers(ctx, one, &swept); err != nil {
		return swept, err
	}
	if swept.Objects > 0 {
		a.Log.InfoContext(ctx, "objects of old tasks removed", "objects", swept.Objects)
	}
	return swept, nil
}

// staged is what creates staged for one task id.
type staged struct {
	id string
	// generations are in ascending order, as the archive lists them. settled are the keys older than StageLimit.
	generations, settled []string
}

func (s *staged) add(object archive.Object) {
	generation, _, _ := strings.Cut(strings.TrimPrefix(object.Key, TaskPrefix(s.id)), "/")
	if generation == attemptsFolder {
		return
	}
	if !slices.Contains(s.generations, generation) {
		s.generations = append(s.generations, generation)
	}
	if time.Since(object.Modified) > StageLimit {
		s.settled = append(s.settled, object.Key)
	}
}

// sweepLosers removes what creates staged that lost the id to the task that has it.
func (a *Sweeper) sweepLosers(ctx context.Context, one staged, swept *Swept) error {
	if len(one.generations) < 2 || len(one.settled) == 0 {
		return nil
	}
	winner, err := a.Executions.Generation(ctx, one.id)
	if err != nil || winner == "" {
		return err
	}
	for _, key := range one.settled {
		if strings.HasPrefix(key, GenerationPrefix(one.id, winner)) {
			continue
		}
		if err := a.Objects.Delete(ctx, key); err != nil {
			return again(record(err), 0)
		}
		swept.Objects++
	}
	return nil
}

const (
	// endedPages bounds one look for tasks that ended without their finish; the next one goes on where it stopped.
	endedPages = 20
	// endedLag is how far each look goes back behind the one before: visibility knows of an end a moment late.
	endedLag = 5 * time.Minute
)

// EndedMark is how far the looks for tasks that ended without their finish have come.
type EndedMark struct {
	// Since is the earliest end that is looked for; zero: whatever Temporal remembers.
	Since time.Time `json:"since,omitzero"`
	// Cursor is where the next look goes on, empty where it begins, and Began when the first of these looks did.
	Cursor []byte    `json:"cursor,omitempty"`
	Began  time.Time `json:"began,omitzero"`
}

// SweepEnded looks for tasks that ended without their finish, from the mark on, and has each finished. Running it again
// finds those that it has found and changes nothing for them.
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
