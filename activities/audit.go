package activities

import (
	"bytes"
	"context"
	"path"
	"strings"
	"time"

	"modelrelay/storage/archive"
)

const (
	// auditFolder has a file of each finished day, audit/2026-11-22.jsonl, with an entry a line.
	auditFolder = "audit/"
	auditEnding = ".jsonl"
	// callsFolder has a folder of each day of the history of calls, calls/2026-11-22/.
	callsFolder = "calls/"
)

// AuditLog is what the sweep needs of the audit log. *audit.Log implements it.
type AuditLog interface {
	Unfiled(ctx context.Context, now time.Time) (days []string, err error)
	Day(ctx context.Context, day string) (lines []byte, entries int, err error)
	Filed(ctx context.Context, day string, entries int) error
}

// sweepAudit puts the finished days of the audit log into the archive and removes those whose retention is over. A day that
// two sweeps write at a time has the same text in both.
func (a *Sweeper) sweepAudit(ctx context.Context, now time.Time) error {
	if a.Audit == nil {
		return nil
	}
	days, err := a.Audit.Unfiled(ctx, now)
	if err != nil {
		return err
	}
	for _, day := range days {
		lines, entries, err := a.Audit.Day(ctx, day)
		if err == nil && entries > 0 { // what Redis has lost must not empty a file
			_, err = a.Objects.Put(ctx, auditFolder+day+auditEnding, bytes.NewReader(lines), int64(len(lines)), archive.PutOptions{ContentType: "application/jsonl"})
		}
		if err == nil {
			err = a.Audit.Filed(ctx, day, entries)
		}
		if err != nil {
			return err
		}
	}
	if a.AuditRetention <= 0 {
		return nil
	}
	for object, err := range a.Objects.List(ctx, auditFolder) {
		if err != nil {
			return err
		}
		day, err := time.Parse(time.DateOnly, strings.TrimSuffix(path.Base(object.Key), auditEnding))
		if err != nil || now.Sub(day) < a.AuditRetention+dayLength {
			continue // not ours, or not yet
		}
		if err := a.Objects.Delete(ctx, object.Key); err != nil {
			return err
		}
	}
	return nil
}

// sweepCalls removes the days of the history of calls whose retention is over.
func (a *Sweeper) sweepCalls(ctx context.Context, now time.Time) error {
	if a.CallsRetention <= 0 {
		return nil
	}
	for folder, err := range a.Objects.Folders(ctx, callsFolder) {
		if err != nil {
			return err
		}
		day, err := time.Parse(time.DateOnly, path.Base(folder))
		if err != nil || now.Sub(day) < a.CallsRetention+dayLength {
			continue // not ours, or not yet
		}
		if err := a.Objects.DeletePrefix(ctx, folder); err != nil {
			return err
		}
		a.Log.InfoContext(ctx, "calls whose retention is over removed", "day", path.Base(folder))
	}
	return nil
}
