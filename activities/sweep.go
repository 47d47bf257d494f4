package activities

import (
	"context"
	"iter"
	"path"
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

// Shelves are what a sweep walks through. *archive.Store implements it.
type Shelves interface {
	Folders(ctx context.Context, prefix string) iter.Seq2[string, error]
	List(ctx context.Context, prefix string) iter.Seq2[archive.Object, error]
	Delete(ctx context.Context, key string) error
}

// Swept says what a sweep removed.
type Swept struct {
	// Days are the folders of expired outputs, Objects what tasks kept beside them.
	Days    []string `json:"days,omitempty"`
	Objects int      `json:"objects,omitempty"`
}

// SweepOutputs removes the outputs whose day of expiry is over. Running it again finds the rest.
func (a *Activities) SweepOutputs(ctx context.Context) (Swept, error) {
	defer heartbeats(func() { activity.RecordHeartbeat(ctx) })()
	var swept Swept
	for folder, err := range a.Shelves.Folders(ctx, outputsFolder) {
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
	return swept, nil
}

// SweepTasks removes inputs, requests and tickets that no task can need any more, those of creates that never became a
// task included. Running it again finds the rest.
func (a *Activities) SweepTasks(ctx context.Context) (Swept, error) {
	defer heartbeats(func() { activity.RecordHeartbeat(ctx) })()
	var swept Swept
	if a.TaskAge <= 0 {
		return swept, nil
	}
	for object, err := range a.Shelves.List(ctx, tasksFolder) {
		if err != nil {
			return swept, again(record(err), 0)
		}
		if time.Since(object.Modified) < a.TaskAge {
			continue
		}
		if err := a.Shelves.Delete(ctx, object.Key); err != nil {
			return swept, again(record(err), 0)
		}
		swept.Objects++
	}
	if swept.Objects > 0 {
		a.Log.InfoContext(ctx, "objects of old tasks removed", "objects", swept.Objects)
	}
	return swept, nil
}
