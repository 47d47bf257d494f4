package activities

import (
	"bytes"
	"context"
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/storage"
	"modelrelay/storage/archive"
	"modelrelay/storage/taskindex"
)

// Repeats remembers unkeyed creates for ten minutes. *taskindex.Repeats implements it.
type Repeats interface {
	// Begin gives a create its task's id: newID, or that of the task which it repeats.
	Begin(ctx context.Context, tokenID, requestHash, newID string, retry bool, age time.Duration) (taskindex.Beginning, error)
	// Note leaves an open note of a task that may have started, or closes it.
	Note(ctx context.Context, tokenID, requestHash, taskID string, open bool) error
	// Recall answers storage.ErrNotFound for a request never seen.
	Recall(ctx context.Context, tokenID, requestHash string) (string, error)
}

// Intake is what happens to a create before its workflow exists: uploads and large requests go to the archive, and an
// unkeyed request is remembered, so that an SDK's own retry finds its task.
type Intake struct {
	Objects Objects
	Repeats Repeats
	// Index lists the tasks of tokens; nil: they are not listed, limited or hidden.
	Index *taskindex.Index
	// Changes carries hints between processes; nil: none.
	Changes *taskindex.Changes
	// Budgets and Prices are what creates reserve by; nil: nothing is reserved.
	Budgets Budgets
	Prices  *pricing.List
}

// Upload stores one input under the key.
func (i Intake) Upload(ctx context.Context, key, contentType string, data []byte) error {
	_, err := i.Objects.Put(ctx, key, bytes.NewReader(data), int64(len(data)), archive.PutOptions{ContentType: contentType})
	return err
}

// PutRequest stores a request that may not travel in a history. One that is too large for a document is a *Fault.
func (i Intake) PutRequest(ctx context.Context, key string, req providers.VideoRequest) error {
	err := i.Objects.PutJSON(ctx, key, req)
	if errors.Is(err, archive.ErrTooLarge) {
		return TooLarge(err)
	}
	return err
}

// MaxRequest is how many bytes a request without its media may have.
const MaxRequest = archive.MaxDocument

// ArchiveAway tells whether an error says that the archive does not answer.
func ArchiveAway(err error) bool { return errors.Is(err, storage.ErrUnavailable) }

// Missing tells whether an error says that there is no such object.
func Missing(err error) bool { return errors.Is(err, storage.ErrNotFound) }

// TooLarge is the fault of a request that no document of the archive can hold.
func TooLarge(err error) *providers.Fault {
	return &providers.Fault{
		Kind: providers.TooLarge, Message: "The request is too large without its media.", Accepted: providers.NotAccepted, Err: err,
	}
}

// Unstage removes what was uploaded and put for a life that did not begin.
func (i Intake) Unstage(ctx context.Context, taskID, life string) error {
	return i.Objects.DeletePrefix(ctx, LifePrefix(taskID, life))
}

// Request reads what PutRequest stored.
func (i Intake) Request(ctx context.Context, key string) (providers.VideoRequest, error) {
	var req providers.VideoRequest
	err := i.Objects.GetJSON(ctx, key, &req)
	return req, err
}

// Begin gives an unkeyed create its task's id: newID, or that of the task which it repeats.
func (i Intake) Begin(ctx context.Context, tokenID, requestHash, newID string, retry bool, age time.Duration) (taskindex.Beginning, error) {
	return i.Repeats.Begin(ctx, tokenID, requestHash, newID, retry, age)
}

// Note leaves an open note of a task that may have started, for the next equal create, or closes it.
func (i Intake) Note(ctx context.Context, tokenID, requestHash, taskID string, open bool) error {
	return i.Repeats.Note(ctx, tokenID, requestHash, taskID, open)
}

// Recall gives the task id noted for an equal request; "" where there is none.
func (i Intake) Recall(ctx context.Context, tokenID, requestHash string) (string, error) {
	id, err := i.Repeats.Recall(ctx, tokenID, requestHash)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	return id, err
}
