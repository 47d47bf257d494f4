package activities

import (
	"bytes"
	"context"
	"time"

	"modelrelay/storage/archive"
)

const (
	// auditFolder has a file of each finished day, audit/2026-11-22.jsonl, with an entry per line.
	auditFolder = "audit/"
	auditEnding = ".jsonl"
	// callsFolder has a folder of each day of the call log, calls/2026-11-22/.
	callsFolder = "calls/"
)

// sweepAudit writes the finished days of the audit log to the archive, and removes expired ones. Concurrent sweeps write the same text.
func (a *Sweeper) sweepAudit(ctx context.Context) error {
	if a.Audit == nil {
		return nil
	}
	days, err := a.Audit.Unfiled(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, day := range days {
		lines, entries, err := a.Audit.Day(ctx, day)
		if err == nil && entries > 0 { // a loss of data in Redis must not empty a file
			_, err = a.Objects.Put(ctx, auditFolder+day+auditEnding, bytes.NewReader(lines), int64(len(lines)),
				archive.PutOptions{ContentType: "application/jsonl"})
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
		if expiredFor(object.Key, a.AuditRetention) {
			if err := a.Objects.Delete(ctx, object.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Sweeper) sweepCalls(ctx context.Context) error {
	if a.CallsRetention <= 0 {
		return nil
	}
	_, err := a.removeDays(ctx, callsFolder, a.CallsRetention)
	return err
}
