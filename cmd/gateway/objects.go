package main

import (
	"context"
	"io"
	"iter"
	"time"

	"modelrelay/storage/archive"
	"modelrelay/storage/eventlog"
)

// objects is the archive for packages that know objects only by their keys.
type objects struct{ *archive.Store }

// List yields the keys that begin with the prefix. After an error it yields nothing more.
func (o objects) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for object, err := range o.Store.List(ctx, prefix) {
			if !yield(object.Key, err) {
				return
			}
		}
	}
}

type eventObjects struct{ objects }

// Put implements eventlog.Objects.
func (o eventObjects) Put(ctx context.Context, key string, r io.Reader, size int64, contentType string) (int64, string, error) {
	object, err := o.Store.Put(ctx, key, r, size, archive.PutOptions{ContentType: contentType})
	return object.Size, object.SHA256, err
}

// Open implements eventlog.Objects.
func (o eventObjects) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	return o.Store.Open(ctx, key)
}

// eventLog returns the log of the events of calls. Redis has them for an hour longer than a call may last.
func (p *parts) eventLog() *eventlog.Log {
	return eventlog.New(p.redis, eventObjects{objects{p.archive}}, p.cfg.Background.Deadline+eventSlack, p.log)
}

// eventSlack is how long after the deadline of a call Redis stores its events.
const eventSlack = time.Hour
